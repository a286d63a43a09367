#pragma once
// The gradient of a step as the sum of its micro-batches over a fixed binary tree.

#include <glassgrad/autograd/variable.hpp>

#include <cstdint>
#include <vector>

namespace glassgrad {

/// Sums gradients that are numbered 0, 1, 2, … over the tree ((0 + 1) + (2 + 3)) + … , whose shape
/// depends on the numbers alone: however the micro-batches of a step are spread over passes or
/// processes, the sum has the same bits. It keeps one sum a level of the tree.
///
///     GradientTree tree(parameters);
///     for (each micro-batch) { backward(loss); tree.add(number); }
///     tree.finish();      // each parameter's gradient is the whole sum
class GradientTree {
  public:
    explicit GradientTree(std::vector<Variable> parameters);

    /// Takes the parameters' gradients, of micro-batch `number`, and leaves them without. Throws
    /// ValueError unless the numbers come one after the other from 0.
    void add(std::int64_t number);
    std::int64_t count() const noexcept { return count_; }
    /// Gives each parameter factor times its sum, and begins anew. A parameter that no micro-batch
    /// reached has no gradient.
    void finish(double factor = 1);

  private:
    using Gradients = std::vector<Tensor>;
    static void merge(Gradients& left, const Gradients& right);

    std::vector<Variable> parameters_;
    std::vector<Gradients> levels_;  ///< a sum of 2^i micro-batches, or empty
    std::int64_t count_ = 0;
};

}  // namespace glassgrad
