#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers/mask.hpp>
#include <glassgrad/tensor.hpp>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

/// A mask as text, a row a query: 1 where it may look.
std::string shown(const Tensor& allowed, const Shape& scores) {
    const Tensor full = broadcast_to(allowed, scores);
    std::string text;
    for (std::int64_t i = 0; i < full.numel(); ++i) {
        if (i > 0 && i % scores.back() == 0) text += ' ';
        text += full.values<bool>()[static_cast<std::size_t>(i)] ? '1' : '0';
    }
    return text;
}

}  // namespace

TEST_CASE("no mask lets every query see every key") {
    CHECK(Mask::none().is_none());
    CHECK(shown(Mask().allowed({2, 3}), {2, 3}) == "111 111");
}

TEST_CASE("a causal mask is aligned at the lower right") {
    CHECK(shown(Mask::causal().allowed({3, 3}), {3, 3}) == "100 110 111");
    CHECK(shown(Mask::causal().allowed({2, 5}), {2, 5}) == "11110 11111");
    CHECK(shown(Mask::causal().allowed({3, 2}), {3, 2}) == "00 10 11");
    CHECK(Mask::causal().allowed({0, 3}).numel() == 0);
}

TEST_CASE("a padding mask hides the keys that are not kept") {
    const Tensor keep = tensor({{1, 1, 0}, {1, 0, 0}}, boolean);
    CHECK(shown(Mask::padding(keep).allowed({2, 2, 3}), {2, 2, 3}) == "110 110 100 100");
    CHECK(Mask::padding(keep).allowed({2, 5, 4, 3}).shape() == Shape{2, 1, 1, 3});
    CHECK(shown(Mask::padding(tensor({0, 1, 1}, boolean)).allowed({2, 3}), {2, 3}) == "011 011");
}

TEST_CASE("joined masks allow what all of them allow") {
    const Mask mask = Mask::causal() & Mask::padding(tensor({0, 1, 1}, boolean));
    CHECK(shown(mask.allowed({3, 3}), {3, 3}) == "000 010 011");
    const Mask twice = Mask::padding(tensor({1, 1, 0}, boolean)) & mask;
    CHECK(shown(twice.allowed({3, 3}), {3, 3}) == "000 010 010");
    CHECK((Mask() & Mask()).is_none());
}

TEST_CASE("paddings that cannot be are refused with shape, type and fix") {
    CHECK(text_of<TypeError>([] {
              Mask::padding(ones({2, 3}));
          }) ==
          "mask: padding must be boolean, got f32 (2, 3); true marks the tokens to keep; compare "
          "first, or use astype(boolean)");
    CHECK(text_of<ShapeError>([] {
              Mask::padding(ones({1, 2, 3}, boolean));
          }) == "mask: padding must be (key,) or (batch, key), got (1, 2, 3)");
    CHECK(text_of<ValueError>([] { Mask::padding(Tensor()); }) == "mask: the padding is undefined");
    const Mask mask = Mask::padding(ones({4, 3}, boolean));
    CHECK(text_of<ShapeError>([&] {
              (void)mask.allowed({4, 2, 5});
          }) ==
          "mask: padding (4, 3) does not fit scores (4, 2, 5); it must be (key,) or (batch, key)");
    CHECK(text_of<ShapeError>([&] {
              (void)mask.allowed({5, 2, 3});
          }) ==
          "mask: padding (4, 3) does not fit scores (5, 2, 3); it must be (key,) or (batch, key)");
    CHECK(text_of<ShapeError>([&] {
              (void)mask.allowed({2, 3});
          }) ==
          "mask: padding (4, 3) does not fit scores (2, 3); it must be (key,) or (batch, key)");
}
