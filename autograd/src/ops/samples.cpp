#include <glassgrad/tensor/ops.hpp>

#include "reduce_support.hpp"

#include <cmath>
#include <initializer_list>

namespace glassgrad::detail {

Tensor spread(const Shape& shape, Interval interval, int seed) {
    Tensor values = Tensor::empty(shape, f64);
    auto* out = values.mutable_data<double>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
        // Multiples of the golden ratio, modulo 1, fill an interval evenly.
        const double turn = 0.6180339887498949 * static_cast<double>(i + 1) + 0.2718 * seed;
        out[i] = interval.low + (interval.high - interval.low) * (turn - std::floor(turn));
    }
    return values;
}

Tensor checkerboard(const Shape& shape) {
    Tensor mask = Tensor::empty(shape, boolean);
    bool* out = mask.mutable_data<bool>();
    for (std::int64_t i = 0; i < mask.numel(); ++i) out[i] = i % 3 != 1;
    return mask;
}

Tensor two_sided(const Shape& shape, Interval distance, int seed) {
    const Tensor size = spread(shape, distance, seed);
    return where(checkerboard(shape), size, -size);
}

Samples unary_samples(Variable (*f)(const Variable&), Interval domain, std::string_view torch) {
    Samples samples;
    int seed = 0;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 3}}) {
        samples.push_back(sample(to_string(shape), spread(shape, domain, ++seed), f, torch));
    }
    return samples;
}

Samples binary_samples(Variable (*f)(const Variable&, const Variable&), Interval a, Interval b,
                       std::string_view torch) {
    const std::initializer_list<Shape> shapes = {{}, {3}, {2, 3}, {1, 3}, {2, 1}};
    const std::initializer_list<std::pair<Shape, Shape>> empty = {
        {{0}, {0}}, {{0, 3}, {3}}, {{2, 1}, {2, 0}}, {{0, 1}, {1, 3}}};
    Samples samples;
    int seed = 0;
    const auto add = [&](const Shape& left, const Shape& right) {
        seed += 2;
        samples.push_back(sample(to_string(left) + " with " + to_string(right),
                                 spread(left, a, seed), spread(right, b, seed + 1), f, torch));
    };
    for (const Shape& left : shapes) {
        for (const Shape& right : shapes) add(left, right);
    }
    for (const auto& [left, right] : empty) add(left, right);
    return samples;
}

std::string torch_dims(const Shape& shape, const ReduceOptions& options) {
    const std::uint32_t mask = normalize_axes("torch_dims", options.axes, shape);
    std::string dims;
    for (int i = 0; i < shape.rank(); ++i) {
        if (mask >> i & 1u) dims += std::to_string(i) + ", ";
    }
    if (shape.rank() == 0) dims = "0, ";  // a scalar has that axis, for PyTorch
    return "dim=(" + dims + "), keepdim=" + (options.keepdims ? "True" : "False");
}

}  // namespace glassgrad::detail
