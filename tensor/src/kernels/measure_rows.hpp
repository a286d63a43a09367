#pragma once
// What rows are shifted and scaled by to be normalised: several rows at once, so that none waits
// for the sums of another, each with the same bits as alone. Sums are of T in lanes within a block,
// f64 from block to block.

#include "row_vectors.hpp"
#include "sums.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// How far lanes add up in T.
constexpr N block = 1024;

/// Rows that are worked on side by side, so that none waits for the sums of another.
constexpr int together = 4;

/// Sums of a row that don't wait for one another, as far as there are registers.
#ifdef __AVX512F__
constexpr int chains = 2;
#else
constexpr int chains = 1;
#endif

/// f(begin, end) of each block.
template <class F>
GLASSGRAD_INLINE void by_blocks(N n, const F& f) noexcept {
    for (N begin = 0; begin < n; begin += block) f(begin, n - begin < block ? n : begin + block);
}

/// Adds the sums of R rows' vectors to those of before.
template <int R, class V>
GLASSGRAD_INLINE void add_sums(const V (&parts)[chains][R], double (&sums)[R]) noexcept {
    each<R>([&](auto r) {
        V all = parts[0][r];
        for (int chain = 1; chain < chains; ++chain) all += parts[chain][r];
        sums[r] += static_cast<double>(sum_of_lanes(all));
    });
}

/// What a row is shifted and scaled by. The mean in two parts, since differences from it are all
/// that counts and a float holds too little of it.
template <class T>
struct Measure {
    T mean;
    T mean_low;
    T scale;  // 1 / sqrt(var + eps)

    template <class V>
    GLASSGRAD_INLINE V of(V x) const noexcept {
        return ((x - all<V>(mean)) - all<V>(mean_low)) * all<V>(scale);
    }
};

/// With `Centred`, about the mean; else about 0. In f64, for numbers whose squares T holds. False
/// if it doesn't hold the scale.
template <bool Centred, class T>
[[gnu::noinline]] bool measure_any(N n, const T* x, double eps, Measure<T>& m) noexcept {
    const auto size = static_cast<double>(n);
    m = {};
    if constexpr (Centred) {
        double mean = sum_of<double>(n, [=](N i) { return static_cast<double>(x[i]); }) / size;
        // Leaves 0 of equal numbers.
        mean += sum_of<double>(n, [=](N i) { return static_cast<double>(x[i]) - mean; }) / size;
        m.mean = static_cast<T>(mean);
        m.mean_low = static_cast<T>(mean - static_cast<double>(m.mean));
    }
    const double squares = sum_of<double>(n, [=](N i) {
        const auto d = static_cast<double>((x[i] - m.mean) - m.mean_low);
        return d * d;
    });
    const double scale = 1 / std::sqrt(squares / size + eps);
    m.scale = static_cast<T>(scale);
    return scale < static_cast<double>(std::numeric_limits<T>::max());
}

/// The sum of gy weight times the norm of x.
template <class T>
[[gnu::noinline]] double sum_along(N n, const T* x, const T* gy, const T* weight,
                                   const Measure<T>& m) noexcept {
    return sum_of<T>(n, [=](N i) { return gy[i] * (weight ? weight[i] : T{1}) * m.of(x[i]); });
}

/// How a row was measured: as all are, for itself, or not at all since T doesn't hold its sums.
enum class Measured { usual, apart, wild };

/// What is known of R rows of x, and of g = gy weight if that is asked for.
template <class T, int R>
struct Known {
    Measure<T> measure[R];
    Measured how[R];
    double plain[R];  // the sum of g
    double along[R];  // the sum of g times the norm of x
};

/// Measures R rows by sums in T. Those of differences from a mean that is nearly right mend it.
template <bool Centred, bool Pulling, int R, class T>
GLASSGRAD_INLINE Known<T, R> measure(N n, const T* x, const T* gy, const T* weight,
                                     double eps) noexcept {
    using V = Vector<T>;
    const auto size = static_cast<double>(n);
    const auto pulled = [=](int r, N i, V w, auto places) {
        return weight ? get(gy + r * n + i, places) * w : get(gy + r * n + i, places);
    };
    double sums[R] = {};
    double plain[R] = {};
    if constexpr (Centred) {
        by_blocks(n, [&](N begin, N end) {
            V part[chains][R] = {};
            V part_g[chains][R] = {};
            by_vectors<T, chains>(begin, end, [&](N i, auto places, auto chain) {
                const V w = Pulling && weight ? get(weight + i, places) : V{};
                each<R>([&](auto r) {
                    part[chain][r] += get(x + r * n + i, places);
                    if constexpr (Pulling) part_g[chain][r] += pulled(r, i, w, places);
                });
            });
            add_sums(part, sums);
            if constexpr (Pulling) add_sums(part_g, plain);
        });
    }
    T near[R];
    for (int r = 0; r < R; ++r) near[r] = static_cast<T>(sums[r] / size);
    double off[R] = {};
    double squares[R] = {};
    double along[R] = {};
    by_blocks(n, [&](N begin, N end) {
        V part[chains][R] = {};
        V part_squares[chains][R] = {};
        V part_along[chains][R] = {};
        by_vectors<T, chains>(begin, end, [&](N i, auto places, auto chain) {
            const V w = Pulling && weight ? get(weight + i, places) : V{};
            each<R>([&](auto r) {
                const V d = kept(get(x + r * n + i, places) - splat(near[r]), places);
                if constexpr (Centred) part[chain][r] += d;
                part_squares[chain][r] = mul_add(d, d, part_squares[chain][r]);
                if constexpr (Pulling) {
                    part_along[chain][r] =
                        mul_add(pulled(r, i, w, places), d, part_along[chain][r]);
                }
            });
        });
        if constexpr (Centred) add_sums(part, off);
        add_sums(part_squares, squares);
        if constexpr (Pulling) add_sums(part_along, along);
    });
    constexpr double least = sizeof(T) == sizeof(float) ? 1e-24 : 1e-280;
    constexpr double most = std::numeric_limits<T>::max();
    Known<T, R> known;
    for (int r = 0; r < R; ++r) {
        const double shift = off[r] / size;
        const double variance = squares[r] / size - shift * shift;
        const double scale = 1 / std::sqrt(variance + eps);
        known.measure[r] = {near[r], static_cast<T>(shift), static_cast<T>(scale)};
        // Else squares may be too small for T, or the mean is no better than the spread.
        const bool usual = variance > least && variance > shift * shift;
        known.how[r] = !(squares[r] < most) ? Measured::wild
                       : usual              ? Measured::usual
                                            : Measured::apart;
        known.plain[r] = plain[r];
        known.along[r] = scale * (along[r] - shift * plain[r]);
    }
    for (int r = 0; r < R; ++r) {
        if (known.how[r] != Measured::apart) continue;
        Measure<T>& m = known.measure[r];
        if (!measure_any<Centred>(n, x + r * n, eps, m)) {
            known.how[r] = Measured::wild;
        } else if constexpr (Pulling) {
            known.along[r] = sum_along(n, x + r * n, gy + r * n, weight, m);
        }
    }
    return known;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
