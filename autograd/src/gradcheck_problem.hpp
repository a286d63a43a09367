#pragma once
// A function under gradcheck, seen as a function of numbers: slots in, one row of results out.

#include <glassgrad/autograd/gradcheck.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace glassgrad::proof {

/// gradcheck's own form: several results, so that a gradient of several inputs is one, too.
using Function = std::function<std::vector<Variable>(std::span<const Variable>)>;

/// Something that gradients are checked for: a floating input, or a parameter the function reads.
struct Slot {
    std::string name;
    Tensor value;               ///< f64, where the check is made
    std::vector<double> scale;  ///< a natural step for each element, a power of two
    std::size_t argument = 0;   ///< its place among the inputs
    Variable captured;          ///< the parameter; undefined for an input
};

/// Ends a check before gradients can be compared.
struct Refusal {
    Verdict verdict;
    GradFault fault;
    std::string text;
};

/// One recorded call.
struct Recorded {
    std::vector<Variable> leaves;  ///< one a slot
    std::vector<Variable> results;
};

class Problem {
  public:
    /// Throws ValueError or TypeError when the call makes no sense.
    Problem(std::string_view op, Function f, std::span<const Variable> inputs,
            std::span<const Variable> parameters);
    /// Puts values and gradients of the parameters back.
    ~Problem();
    Problem(const Problem&) = delete;
    Problem& operator=(const Problem&) = delete;

    const std::vector<Slot>& slots() const noexcept { return slots_; }
    /// Parameters that were given but want no gradient.
    const std::vector<std::string>& frozen() const noexcept { return frozen_; }

    /// Calls the function in grad mode on fresh leaves. Throws Refusal.
    Recorded record();
    /// As above, at other values of the slots.
    Recorded record(std::span<const Tensor> values);
    /// Calls it once more on the leaves of `run`; gives the results of both.
    Recorded record_again(const Recorded& run);
    /// All results, one after the other, at other values of the slots. Throws Refusal.
    std::vector<double> evaluate(std::span<const Tensor> values);
    /// As above, with one slot moved.
    std::vector<double> evaluate(std::size_t slot, const Tensor& moved);

    /// Shapes of the results; known after `record`.
    const std::vector<Shape>& shapes() const noexcept { return shapes_; }
    std::int64_t total() const noexcept { return total_; }
    /// `at (0, 2)`, or `at (0, 2) of result 1`.
    std::string place(std::int64_t result) const;

  private:
    std::vector<Variable> call(std::span<const Variable> leaves, bool record);

    Function f_;
    std::vector<Variable> arguments_;  // constants in place, undefined where a slot goes
    std::vector<Slot> slots_;
    std::vector<Tensor> values_;
    std::vector<std::string> frozen_;
    std::vector<Shape> shapes_;
    std::int64_t total_ = 0;
    struct Kept {
        Variable parameter;
        Tensor value;
        Tensor gradient;
    };
    std::vector<Kept> kept_;
};

/// Row-major index of element `flat`.
Shape index_of(std::int64_t flat, const Shape& shape);

/// Six digits: `0.5`, `1.23457e-08`.
std::string number(double x);

}  // namespace glassgrad::proof
