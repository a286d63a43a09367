#pragma once
// What targets given as class numbers weigh, for the losses over classes and their derivatives.

#include <glassgrad/tensor/ops/loss.hpp>

#include <string_view>

namespace glassgrad::detail {

/// Throws TypeError, ShapeError, ValueError or IndexError, naming `op`, unless logits, class
/// numbers and options fit together. The classes lie along the last axis.
void check_classes(std::string_view op, const Tensor& logits, const Tensor& target,
                   const CrossEntropyOptions& options);
/// The same for the call of a derivative: `gy` has the shape of the loss.
void check_classes_vjp(std::string_view op, const Tensor& logits, const Tensor& target,
                       const Tensor& gy, const CrossEntropyOptions& options);
/// The same as `check_classes` for probabilities.
void check_probabilities(std::string_view op, const Tensor& logits, const Tensor& target,
                         const CrossEntropyOptions& options);
/// The part of it that asks no axis: probabilities have the type and the shape of the logits.
void check_whole(std::string_view op, const Tensor& logits, const Tensor& target);

/// q (..., classes): what the loss of a row is, `-sum_c q[c] log_p[c]`; rows that don't count are
/// 0.
Tensor class_weights(const Shape& logits, DType dtype, const Tensor& target,
                     const CrossEntropyOptions& options);
/// boolean (..., 1): rows whose target counts.
Tensor counted_rows(const Tensor& target, const CrossEntropyOptions& options);
/// What the sum of the rows' losses is multiplied by: 1, or 1 over what they weigh together (0 if
/// that is 0).
double class_share(const Tensor& target, const CrossEntropyOptions& options);

/// What the sum over `count` elements is multiplied by; `first` is the size of the first axis.
double share(Reduction reduction, std::int64_t count, std::int64_t first);

}  // namespace glassgrad::detail
