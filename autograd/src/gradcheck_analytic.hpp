#pragma once
// What the backward pass says, and what it promises whatever the numbers are.

#include "gradcheck_stencil.hpp"

#include <glassgrad/autograd/engine.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace glassgrad::proof {

/// Signed random cotangents, then one-hot ones: for every result, or for some of many.
std::vector<Cotangent> make_cotangents(std::int64_t results, const GradcheckOptions& options);

/// The gradients of one slot for each cotangent, row by row.
struct Gradients {
    std::vector<Tensor> rows;   ///< f64, of the slot's shape; zeros where no path was found
    std::vector<Tensor> noise;  ///< what rounding of the inputs does to each
};

/// Gradients of all slots for one cotangent; undefined where no path was found. Throws Refusal when
/// the backward pass throws.
std::vector<Variable> sweep(const Problem& problem, const Recorded& run, const Cotangent& cotangent,
                            GradOptions options);

/// One a slot. Throws Refusal when the backward pass throws.
std::vector<Gradients> analytic_gradients(Problem& problem, const Recorded& run,
                                          std::span<const Cotangent> cotangents);

/// A promise that was broken.
struct Breach {
    std::size_t slot;
    GradFault fault;
    std::string text;
};

/// The promises of every backward pass:
/// - two passes over one graph, and over a graph made anew, give the same bits
/// - a cotangent of zeros gives zeros, and a graph of two calls gives the sum
/// - a leaf's gradient is assigned whole where there was none, then added to
/// - gradients have the shape and type of their input
std::vector<Breach> check_promises(Problem& problem, const Recorded& run,
                                   std::span<const Cotangent> cotangents,
                                   std::span<const Gradients> gradients);

/// Leaves behind the results that are no slots: parameters that the function reads unlisted.
std::vector<detail::NodePtr> other_leaves(const Recorded& run);

/// Throws Refusal unless the function gives the same finite, full-precision bits each time, and in
/// grad mode the numbers that it gives without. `second`: the function is itself a backward pass.
void check_function(Problem& problem, const Recorded& run, std::span<const double> base,
                    bool second);

}  // namespace glassgrad::proof
