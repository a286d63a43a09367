#pragma once
// The one place that includes xtensor: 0.24 and 0.25 have flat headers, 0.26 and later have
// folders. Up to 0.25 a guard in xexpression_traits.hpp tests for exactly C++17; under g++ and
// C++20 derived containers then become xt::xtensor<T, 4> and read out of bounds, unless the
// specialisation below is seen before anything else of xtensor.

#include <cstddef>

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xexpression_traits.hpp>
#if defined(__GNUC__) && !defined(__clang__) && __cplusplus > 201703L
namespace xt::detail {
template <template <class, std::size_t, class, bool> class S, class X, std::size_t N, class A,
          bool Init>
struct xtype_for_shape<S<X, N, A, Init>> {
    template <class T, layout_type L>
    using type = xarray<T, L>;
};
}  // namespace xt::detail
#endif
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif
