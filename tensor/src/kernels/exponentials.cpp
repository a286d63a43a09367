// exp, log, roots, erf.

#include "each.hpp"
#include "fast_log.hpp"
#include "gauss.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

template <class T>
void add(Maps<T>& maps) {
    using N = std::int64_t;
    maps.exp = [](N n, const T* x, T* y) {
        each_vector(n, x, y, [](auto v) { return fast_exp(v); });
    };
    maps.expm1 = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return fast_expm1(v); }); };
    maps.log = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return fast_log(v); }); };
    maps.log1p = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return fast_log1p(v); }); };
    maps.sqrt = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return std::sqrt(v); }); };
    maps.rsqrt = [](N n, const T* x, T* y) {
        each(n, x, y, [](T v) { return T{1} / std::sqrt(v); });
    };
    maps.reciprocal = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return T{1} / v; }); };
    maps.erf = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return fast_erf(v); }); };
}

}  // namespace

void add_exponentials(KernelTable& table) {
    add(table.of_float.map);
    add(table.of_double.map);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
