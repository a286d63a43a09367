#include <glassgrad/layers/positions.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <vector>

#include "names.hpp"

namespace glassgrad {
namespace {

constexpr detail::Named<RotaryPairing> pairings[] = {{RotaryPairing::neighbours, "neighbours"},
                                                     {RotaryPairing::halves, "halves"}};

/// 2^(-8/n), its square, … for a power of two n.
double slope(std::int64_t n, std::int64_t number) {
    return std::exp2(-8.0 * static_cast<double>(number) / static_cast<double>(n));
}

}  // namespace

std::string_view name(RotaryPairing pairing) { return detail::name_of(pairings, pairing); }
RotaryPairing rotary_pairing_from(std::string_view text) {
    return detail::value_named(pairings, text, "rotary pairing");
}

Tensor sinusoidal_positions(std::int64_t length, std::int64_t d_model, DType dtype) {
    if (length < 1 || d_model < 2 || d_model % 2 != 0) {
        throw ShapeError(
            fmt::format("sinusoidal_positions: ({}, {}): the length must be positive, "
                        "d_model even and positive",
                        length, d_model));
    }
    Tensor table = Tensor::empty({length, d_model}, f64);
    auto* out = table.mutable_data<double>();
    for (std::int64_t p = 0; p < length; ++p) {
        for (std::int64_t i = 0; i < d_model; i += 2) {
            const double angle =
                static_cast<double>(p) /
                std::pow(10000.0, static_cast<double>(i) / static_cast<double>(d_model));
            *out++ = std::sin(angle);
            *out++ = std::cos(angle);
        }
    }
    return table.astype(dtype);
}

Tensor alibi_slopes(std::int64_t heads, DType dtype) {
    if (heads < 1) {
        throw ShapeError(fmt::format("alibi_slopes: {} heads, there must be one", heads));
    }
    const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
    Tensor slopes = Tensor::empty({heads}, f64);
    auto* out = slopes.mutable_data<double>();
    for (std::int64_t h = 0; h < power; ++h) *out++ = slope(power, h + 1);
    for (std::int64_t h = 0; h < heads - power; ++h) *out++ = slope(2 * power, 2 * h + 1);
    return slopes.astype(dtype);
}

RotaryTable rotary_table(const Tensor& positions, std::int64_t head_dim,
                         const RotaryOptions& options, DType dtype) {
    if (!positions.defined() || positions.dtype() != i64) {
        throw TypeError(
            fmt::format("rotary_table: positions must be i64, got {}",
                        positions.defined() ? name(positions.dtype()) : "an undefined tensor"));
    }
    if (positions.rank() != 1 && positions.rank() != 2) {
        throw ShapeError(
            fmt::format("rotary_table: positions must be (tokens,) or (batch, tokens), got {}",
                        to_string(positions.shape())));
    }
    if (head_dim < 2 || head_dim % 2 != 0) {
        throw ShapeError(
            fmt::format("rotary_table: heads of width {} have no pairs; it must be even and "
                        "positive",
                        head_dim));
    }
    if (!(options.base > 0) || !std::isfinite(options.base)) {
        throw ValueError(fmt::format("rotary_table: the base is {}, it must be positive and finite",
                                     options.base));
    }
    const std::int64_t pairs = head_dim / 2;
    Shape shape = positions.shape();
    if (shape.rank() == 2) shape.insert(1, 1);
    shape.push_back(pairs);
    Tensor cos = Tensor::empty(shape, f64);
    Tensor sin = Tensor::empty(shape, f64);
    std::vector<double> speeds(static_cast<std::size_t>(pairs));
    for (std::int64_t i = 0; i < pairs; ++i) {
        speeds[static_cast<std::size_t>(i)] =
            std::pow(options.base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    }
    auto* c = cos.mutable_data<double>();
    auto* s = sin.mutable_data<double>();
    for (const std::int64_t position : positions.values<std::int64_t>()) {
        if (position < 0) {
            throw ValueError(fmt::format("rotary_table: position {} is negative", position));
        }
        for (const double speed : speeds) {
            const double angle = static_cast<double>(position) * speed;
            *c++ = std::cos(angle);
            *s++ = std::sin(angle);
        }
    }
    return {cos.astype(dtype), sin.astype(dtype)};
}

}  // namespace glassgrad
