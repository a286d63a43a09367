#pragma once
// What the library knows about an op besides its function: a row of its family's table. Rows
// drive the gradient tests, the documentation and the formulas in traces.

#include <glassgrad/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad {

class Variable;

/// A call of an op that its derivative is checked on: f64 inputs inside the op's domain.
struct OpSample {
    std::string label;
    std::vector<Tensor> inputs;
    std::function<Variable(std::span<const Variable>)> apply;
    /// The same call in Python, for the comparison with PyTorch: `F.softmax(a, 1)`, where a, b, c,
    /// d are the inputs (`inputs` all of them), F is torch.nn.functional and np is NumPy.
    std::string torch = {};
};

struct OpRow {
    std::string_view name;        ///< as recorded and traced: `matmul`
    std::string_view forward;     ///< `y = a b`
    std::string_view backward;    ///< `ga = gy bᵀ; gb = aᵀ gy`; empty: no derivative
    std::string_view holds = {};  ///< what is true of every result: `sum(y, axis) = 1; y >= 0`
    /// Where the function is defined, and what it gives where the field disagrees: `x > 0; -inf at
    /// 0, NaN below`. Empty: any number.
    std::string_view domain = {};
    /// Names of the inputs, `condition a b`; where empty, they are read from the gradients named in
    /// `backward`.
    std::string_view inputs = {};
    std::string_view torch = {};  ///< PyTorch's name for it: `torch.nn.functional.gelu`
    /// For a function that is made of other ops: all names that it records.
    std::string_view records = {};
    /// Largest error in f32, in units in the last place of the largest element of the result.
    double f32_ulp = 4;
    std::vector<OpSample> (*samples)() = nullptr;
};

namespace detail {
/// The pieces between separators, without blanks around them; empty ones are left out.
std::vector<std::string> split(std::string_view text, char separator);
/// One name an input: those of the row, or from the formula of its gradients, where
/// `ga = gy bᵀ; gb = aᵀ gy` has the inputs a and b; else x, or a and b, or x1, x2, …
std::vector<std::string> input_names(const OpRow& row, std::size_t count);
}  // namespace detail

/// The rows of all families.
std::vector<const OpRow*> op_table();

/// A setting of a call, such as the axis, as traces show it.
struct Attribute {
    enum class Kind : std::uint8_t { integer, number, flag, text, list };

    Attribute(std::string_view key, std::int64_t value) : name(key), integer(value) {}
    Attribute(std::string_view key, int value) : Attribute(key, std::int64_t{value}) {}
    Attribute(std::string_view key, double value) : name(key), kind(Kind::number), number(value) {}
    Attribute(std::string_view key, bool value)
        : name(key), kind(Kind::flag), integer(value ? 1 : 0) {}
    Attribute(std::string_view key, const char* value) : name(key), kind(Kind::text), text(value) {}
    Attribute(std::string_view key, const Shape& value)
        : name(key), kind(Kind::list), list(value) {}

    std::string_view name;
    Kind kind = Kind::integer;
    std::int64_t integer = 0;
    double number = 0;
    std::string text;
    Shape list;
};
using Attributes = std::vector<Attribute>;

}  // namespace glassgrad
