#pragma once
// The bridge to xtensor, for those who ask for it: no other public header sees xtensor.

#include <glassgrad/tensor/detail/xtensor_shim.hpp>
#include <glassgrad/tensor/tensor.hpp>

#include <algorithm>
#include <vector>

namespace glassgrad {

/// Evaluates an xtensor expression (container, view, function, any strides) into a Tensor at
/// once, so nothing of it may dangle later. Element types float, double, std::int64_t and bool
/// are kept; int and long long become i64. Throws ShapeError above rank 8.
template <class E>
Tensor from_xtensor(const xt::xexpression<E>& expression) {
    const E& e = expression.derived_cast();
    using From = std::remove_cv_t<typename E::value_type>;
    using To = std::conditional_t<std::is_integral_v<From> && !std::is_same_v<From, bool>,
                                  std::int64_t, From>;
    const std::vector<std::int64_t> sizes(e.shape().begin(), e.shape().end());
    const Shape shape{std::span<const std::int64_t>(sizes)};
    Tensor result = Tensor::empty(shape, dtype_of<To>());
    auto out = xt::adapt(result.mutable_data<To>(), static_cast<std::size_t>(shape.numel()),
                         xt::no_ownership(), std::vector<std::size_t>(sizes.begin(), sizes.end()));
    out.assign(xt::cast<To>(e));  // without a temporary
    return result;
}

/// The elements of `x` as a read-only xtensor container that points into its buffer: keep `x`
/// alive meanwhile. Throws TypeError unless T is the element type.
template <class T>
auto as_xtensor(const Tensor& x) {
    const std::vector<std::size_t> sizes(x.shape().begin(), x.shape().end());
    return xt::adapt(x.data<T>(), static_cast<std::size_t>(x.numel()), xt::no_ownership(), sizes);
}

}  // namespace glassgrad
