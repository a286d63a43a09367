// One number throughout, and copies past the caches.

#include "isa.hpp"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

using N = std::int64_t;

#if defined(__AVX512F__)
using Wide = __m512i;
void put(const char* x, char* y) {
    _mm512_stream_si512(reinterpret_cast<Wide*>(y), _mm512_loadu_si512(x));
}
#elif defined(__AVX__)
using Wide = __m256i;
void put(const char* x, char* y) {
    _mm256_stream_si256(reinterpret_cast<Wide*>(y),
                        _mm256_loadu_si256(reinterpret_cast<const Wide*>(x)));
}
#elif defined(__SSE2__)
using Wide = __m128i;
void put(const char* x, char* y) {
    _mm_stream_si128(reinterpret_cast<Wide*>(y), _mm_loadu_si128(reinterpret_cast<const Wide*>(x)));
}
#endif

template <class T>
void stream(N n, const T* x, T* y) {
    N i = 0;
#ifdef __SSE2__
    constexpr N step = sizeof(Wide) / sizeof(T);
    if (reinterpret_cast<std::uintptr_t>(y) % sizeof(Wide) == 0) {
        for (; i + step <= n; i += step) {
            put(reinterpret_cast<const char*>(x + i), reinterpret_cast<char*>(y + i));
        }
        _mm_sfence();
    }
#endif
    for (; i < n; ++i) y[i] = x[i];
}

template <class T>
void fill(N n, T value, T* y) {
    for (N i = 0; i < n; ++i) y[i] = value;
}

template <class T>
void add(Maps<T>& maps) {
    maps.fill = fill<T>;
    maps.stream = stream<T>;
}

}  // namespace

void add_stream(KernelTable& table) {
    add(table.of_float.map);
    add(table.of_double.map);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
