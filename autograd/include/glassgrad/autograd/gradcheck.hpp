#pragma once
// Proof that derivatives are right, by comparing them with differences of the function itself.

#include <glassgrad/autograd/variable.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad {

/// What is checked: any number of Variables in, one out. It has to give the same bits for the
/// same inputs, and to compute in f64 when its inputs are f64.
using CheckedFunction = std::function<Variable(std::span<const Variable>)>;

enum class Verdict : std::uint8_t {
    passed,
    failed,              ///< a gradient is wrong, or the backward pass breaks one of its promises
    not_differentiable,  ///< a kink, a jump or the edge of the domain where the check was made
    no_power,            ///< a gradient that can't be told from zero: a wrong one might pass
    invalid,             ///< the function throws, isn't finite, isn't repeatable or isn't f64
};

/// What is likely wrong, told from the pattern over all elements.
enum class GradFault : std::uint8_t {
    none,
    sign,            ///< analytic = -numeric
    factor,          ///< analytic = c numeric, the same c everywhere
    missing_path,    ///< zeros where the numeric gradient is not zero
    extra_path,      ///< not zero where the numeric gradient is
    transposed,      ///< right numbers, two axes exchanged
    shifted,         ///< right numbers, moved along an axis
    reversed,        ///< right numbers, an axis back to front
    exchanged,       ///< the gradient of another input
    missing_sum,     ///< only part of what broadcasting repeated is summed up
    dropped_term,    ///< a term that couples the elements along an axis is missing or too much
    wrong_factor,    ///< a factor that depends on the element, as from a wrong saved value
    not_finite,      ///< NaN or infinity in the gradient
    unknown,         ///< wrong without a pattern
    threw,           ///< the backward pass threw
    wrong_type,      ///< shape or element type of a gradient
    not_repeatable,  ///< two backward passes gave different bits
    not_linear,      ///< a cotangent of zeros gave something else, or two did not add up
    accumulation,    ///< a second pass did not add to the gradient that was there
    passes_differ,   ///< grad mode, or a recorded pass, changes the numbers
};

std::string_view name(Verdict verdict) noexcept;
std::string_view name(GradFault fault) noexcept;

struct GradcheckOptions {
    /// Accepted differences, on top of the estimated errors of both gradients: relative to the
    /// larger of the two numbers, and relative to the largest gradient of the same input for the
    /// same cotangent.
    double rtol = 1e-6;
    double floor = 1e-9;
    /// Inputs of up to so many elements are checked one by one. Larger ones are checked along
    /// `directions` signed random directions and at `samples` random elements.
    std::int64_t full_elements = 1000;
    int directions = 16;
    int samples = 24;
    /// Results of up to so many elements get a one-hot cotangent for each; larger ones for
    /// `samples` of them. All get `cotangents` signed random ones.
    std::int64_t full_results = 64;
    int cotangents = 3;
    std::uint64_t seed = 1;
    /// Accepts an input whose gradient is zero; by default that is refused as a check without
    /// power.
    bool accept_zero = false;
    /// Leaves that the function reads besides its inputs, such as the parameters of a module.
    /// They must be f64; their values and gradients are put back afterwards.
    std::vector<Variable> parameters = {};
};

/// What was found for one input or parameter.
struct GradcheckFinding {
    std::string input;  ///< its name, or `input 1`
    Shape shape;
    Verdict verdict = Verdict::passed;
    GradFault fault = GradFault::none;
    Shape index;                ///< the element that is worst
    double analytic = 0;        ///< there
    double numeric = 0;         ///< there
    double uncertainty = 0;     ///< estimated error of `numeric`
    std::int64_t wrong = 0;     ///< elements that are wrong
    std::int64_t compared = 0;  ///< elements that were compared
    std::string explanation;    ///< a sentence; empty when passed
};

struct GradcheckReport {
    Verdict verdict = Verdict::passed;
    GradFault fault = GradFault::none;
    /// Largest difference of the two gradients, relative to the largest gradient of its input.
    double worst_error = 0;
    std::vector<GradcheckFinding> inputs;
    /// Parameters that the function reads but that were not checked: frozen ones, and those that
    /// are not listed in the options.
    std::vector<std::string> unchecked;
    std::string text;  ///< all of it, for people

    explicit operator bool() const noexcept { return verdict == Verdict::passed; }
    /// The worst finding; throws ValueError when there is none.
    const GradcheckFinding& worst() const;
};

/// Compares the gradients of `f` at `inputs` with central differences in f64 (Richardson's
/// extrapolation, with an estimated error for each number). f32 inputs are converted; i64 and
/// boolean ones are constants. Beside the numbers it proves that the backward pass is repeatable
/// and linear, assigns and then adds to leaves, and gives the shape and type of each input.
///
///     const auto report = gradcheck([](auto x) { return softmax(x[0]); }, {parameter(x, "x")});
///     if (!report) std::cerr << report.text;
///
/// What `f` or its backward pass throws is reported, not passed on. Throws ValueError or TypeError
/// for a call that can't be a check: no floating input, an undefined one, an f32 parameter.
GradcheckReport gradcheck(const CheckedFunction& f, const std::vector<Variable>& inputs,
                          const GradcheckOptions& options = {});

/// As `gradcheck`, for the second order: checks the gradients of x, v -> vᵀ df/dx, computed by
/// `grad` with create_graph, with random cotangents v as inputs too.
GradcheckReport gradgradcheck(const CheckedFunction& f, const std::vector<Variable>& inputs,
                              const GradcheckOptions& options = {});

}  // namespace glassgrad
