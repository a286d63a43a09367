#include <glassgrad/tensor/detail/finite.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace glassgrad::detail {

// One is added to each exponent: only that of a NaN or an infinity, which is all ones, carries into
// the sign. Integers, so that compilers may reorder the loop into vector code.
template <class Bits, class T>
static bool all_finite(std::span<const T> values) {
    constexpr Bits one = Bits{1} << (std::numeric_limits<T>::digits - 1);
    constexpr Bits sign = Bits{1} << (sizeof(Bits) * 8 - 1);
    constexpr Bits exponent = sign - one;
    constexpr std::size_t chunk = 2048;
    for (std::size_t begin = 0; begin < values.size(); begin += chunk) {
        const std::size_t end = std::min(values.size(), begin + chunk);
        Bits carried = 0;
        for (std::size_t i = begin; i < end; ++i) {
            carried |= (std::bit_cast<Bits>(values[i]) & exponent) + one;
        }
        if (carried & sign) return false;
    }
    return true;
}

bool all_finite(const Tensor& x) {
    switch (x.dtype()) {
        case f32: return all_finite<std::uint32_t>(x.values<float>());
        case f64: return all_finite<std::uint64_t>(x.values<double>());
        default: return true;
    }
}

}  // namespace glassgrad::detail
