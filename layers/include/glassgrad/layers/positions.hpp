#pragma once
// What tells tokens their places: sums, rotations, penalties for distance.

#include <glassgrad/tensor/ops/rotary.hpp>
#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {

/// (length, d_model): sin(p / 10000^(2i / d_model)) in column 2i, the cosine in column 2i + 1.
/// Throws ShapeError unless d_model is even and both are positive. Source: Vaswani et al. 2017,
/// section 3.5.
Tensor sinusoidal_positions(std::int64_t length, std::int64_t d_model, DType dtype = f32);

/// (heads,): how much each head's scores fall with the distance: 2^(-8/n), 2^(-16/n), … for n
/// heads when n is a power of two; otherwise those of the next smaller power, then every second
/// one of twice that power. Source: Press, Smith and Lewis 2022, and their code.
Tensor alibi_slopes(std::int64_t heads, DType dtype = f32);

struct RotaryOptions {
    /// Which elements make a pair; files of GPT-J, LLaMA (Meta's) and llama2.c have neighbours,
    /// Hugging Face's have halves.
    RotaryPairing pairing = RotaryPairing::neighbours;
    double base = 10000;

    friend bool operator==(const RotaryOptions&, const RotaryOptions&) = default;
};

/// "neighbours" or "halves".
std::string_view name(RotaryPairing pairing);
/// The inverse of `name`. Throws ValueError that lists the names.
RotaryPairing rotary_pairing_from(std::string_view text);

/// Cosine and sine of position times base^(-2i / head_dim), computed in f64: (..., tokens,
/// head_dim / 2).
struct RotaryTable {
    Tensor cos;
    Tensor sin;
};
/// For positions (tokens,), or (batch, tokens), whose table is (batch, 1, tokens, head_dim / 2) to
/// go with (batch, heads, tokens, head_dim). Throws TypeError unless they are i64, ShapeError
/// unless head_dim is even and positive, ValueError on a negative position or a base that isn't
/// positive. Source: Su et al. 2021, section 3.4.
RotaryTable rotary_table(const Tensor& positions, std::int64_t head_dim,
                         const RotaryOptions& options = {}, DType dtype = f32);

}  // namespace glassgrad
