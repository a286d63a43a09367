// to_string against np.array2string, over the cases of tests/data/tensor/make_print_cases.py.

#include <glassgrad/tensor/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <sstream>

using namespace glassgrad;
using namespace glassgrad::testing;
using nlohmann::json;

namespace {

/// The values of `grid` in make_print_cases.py.
Tensor grid(const Shape& shape, DType dtype) {
    Tensor x = Tensor::empty({shape.numel()}, f64);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
        const auto k = double(i * 37 % 101 - 29);
        x.set({i}, dtype == i64       ? k
                   : dtype == boolean ? std::abs(i * 37 % 101 - 29) % 2 == 0
                                      : k / 8);
    }
    return reshape(x.astype(dtype), shape);
}

PrintOptions options_of(const json& item) {
    PrintOptions options;
    options.precision = item.value("precision", options.precision);
    options.threshold = item.value("threshold", options.threshold);
    options.edge_items = item.value("edgeitems", options.edge_items);
    options.line_width = item.value("max_line_width", options.line_width);
    return options;
}

}  // namespace

TEST_CASE("tensors print as NumPy prints them") {
    const json file = load_json("print_cases.json");
    REQUIRE(file["cases"].size() > 400);
    for (const json& item : file["cases"]) {
        const json& x = item["x"];
        INFO(x.dump().substr(0, 200) << " with " << item["options"]);
        const Tensor value =
            x.contains("v") ? tensor_of(x) : grid(shape_of(x["s"]), dtype_named(x["t"]));
        CHECK(to_string(value, options_of(item["options"])) == item["text"].get<std::string>());
    }
}

TEST_CASE("a stream gets the text with the default options") {
    std::ostringstream out;
    out << tensor({{1, 2.5}, {-3, 1.0 / 3}});
    CHECK(out.str() == "[[ 1.      2.5   ]\n [-3.      0.3333]]");
}

TEST_CASE("an undefined tensor prints as undefined") {
    CHECK(to_string(Tensor()) == "undefined");
    Tensor x = ones({2});
    const Tensor y = std::move(x);
    CHECK(to_string(x) == "undefined");
    CHECK(to_string(y) == "[1. 1.]");
}

TEST_CASE("odd print options are taken as the nearest sane ones") {
    CHECK(to_string(tensor({0.5, 1.25}, f64), {.precision = -3}) == "[0. 1.]");
    CHECK(to_string(tensor({0.1, 1}, f64), {.precision = 1000}) == "[0.1 1. ]");
    CHECK(to_string(arange(9), {.threshold = 0, .edge_items = 0}) == "[0 ... 8]");
    CHECK(to_string(arange(3), {.line_width = -5}) == "[0\n 1\n 2]");
}
