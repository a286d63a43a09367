#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers/mask.hpp>
#include <glassgrad/tensor.hpp>

#include <limits>

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

TEST_CASE("a sliding window sees near keys on both sides, with causal the last ones") {
    CHECK(shown(Mask::sliding_window(2).allowed({4, 4}), {4, 4}) == "1100 1110 0111 0011");
    const Mask last = Mask::causal() & Mask::sliding_window(2);
    CHECK(shown(last.allowed({2, 5}), {2, 5}) == "00110 00011");
    CHECK((Mask::sliding_window(3) & Mask::sliding_window(2)).window() == 2);
    CHECK_FALSE(Mask::sliding_window(3).is_none());
    CHECK(text_of<ValueError>([] { Mask::sliding_window(0); }) ==
          "mask: a sliding window of 0 keys sees nothing");
}

TEST_CASE("boolean and additive masks join with the others") {
    const Tensor seen = tensor({{1, 0, 1}, {1, 1, 0}}, boolean);
    const double inf = std::numeric_limits<double>::infinity();
    const Mask added = Mask::additive(Variable(tensor({0.5, 2.0, -inf}, f64)));
    CHECK(shown(Mask::boolean(seen).allowed({2, 3}), {2, 3}) == "101 110");
    CHECK(shown((Mask::boolean(seen) & added).allowed({2, 3}), {2, 3}) == "100 110");
    CHECK((added & added).bias().value().values<double>()[1] == 4);
    CHECK_FALSE((Mask::causal() & added).listed({2, 3}).defined());
    CHECK(shown((Mask::boolean(seen) & Mask::padding(tensor({0, 1, 1}, boolean))).listed({2, 3}),
                {2, 3}) == "001 010");
    CHECK(text_of<ShapeError>([&] {
              (void)Mask::boolean(seen).allowed({3, 3});
          }) ==
          "mask: cannot broadcast (2, 3) with (3, 3): sizes 2 and 3 differ at axis -2; sizes must "
          "agree or be 1, counted from the right");
    CHECK(text_of<ShapeError>([&] {
              (void)Mask::boolean(seen).allowed({1, 3});
          }) == "mask: allowed keys (2, 3) does not broadcast to scores (1, 3)");
    CHECK(text_of<TypeError>([&] { Mask::additive(Variable(seen)); }) ==
          "mask: a bias is added to the scores, got boolean (2, 3); Mask::boolean takes what may "
          "be looked at");
    CHECK(text_of<TypeError>([&] { Mask::boolean(ones({3})); }) ==
          "mask: allowed keys must be boolean, got f32 (3,); true marks the keys that a query may "
          "look at; compare first, or use astype(boolean)");
}
