#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/training/gradient_tree.hpp>

#include <fmt/format.h>

namespace glassgrad {

GradientTree::GradientTree(std::vector<Variable> parameters) : parameters_(std::move(parameters)) {}

void GradientTree::merge(Gradients& left, const Gradients& right) {
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (!right[i].defined()) continue;
        left[i] = left[i].defined() ? left[i] + right[i] : right[i];
    }
}

void GradientTree::add(std::int64_t number) {
    if (number != count_) {
        throw ValueError(
            fmt::format("gradient_tree: micro-batch {} comes where {} is due", number, count_));
    }
    Gradients sum;
    for (const Variable& each : parameters_) sum.push_back(each.grad());
    // As a binary counter carries: full levels below are older, so they stand on the left.
    std::size_t level = 0;
    for (; level < levels_.size() && !levels_[level].empty(); ++level) {
        Gradients older = levels_[level];
        merge(older, sum);
        sum = std::move(older);
    }
    if (level == levels_.size()) levels_.emplace_back();
    for (std::size_t below = 0; below < level; ++below) levels_[below].clear();
    levels_[level] = std::move(sum);
    for (Variable& each : parameters_) each.zero_grad();
    ++count_;
}

void GradientTree::finish(double factor) {
    Gradients total;
    for (const Gradients& each : levels_) {
        if (each.empty()) continue;
        if (total.empty()) {
            total = each;
        } else {
            Gradients older = each;
            merge(older, total);
            total = std::move(older);
        }
    }
    for (Tensor& each : total) {
        if (each.defined() && factor != 1) each = scale(each, factor);
    }
    for (std::size_t i = 0; i < total.size(); ++i) {
        if (total[i].defined()) parameters_[i].set_grad(total[i]);
    }
    levels_.clear();
    count_ = 0;
}

}  // namespace glassgrad
