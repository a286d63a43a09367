#pragma once
// What attention in tiles does to scores between its products.

#include <cstdint>

namespace glassgrad::detail {

/// Tiles have rows of as many numbers as a panel of columns (`panel_columns`).
template <class T>
struct AttentionKernels {
    /// Scores (keys, panel) of some queries become weights relative to the largest so far:
    /// exp(score factor - top), 0 where a score is -inf. Of each query: `top`, the largest so far,
    /// NaN apart; `total`, the sum of weights so far; `by`, what earlier sums have to be multiplied
    /// by. Returns whether one of these isn't 1.
    bool (*weigh)(std::int64_t keys, T factor, T* scores, T* top, double* total, T* by);
    /// x (rows, panel) times by, of each column; 0 where that is 0.
    void (*rescale)(std::int64_t rows, const T* by, T* x);
    /// Scores (queries, panel) become weights: exp(score factor - top) inverse, 0 where a score is
    /// -inf; top and inverse are of each query.
    void (*weigh_again)(std::int64_t queries, T factor, const T* top, const T* inverse, T* scores);
    /// g = w (g - dot) factor, and 0 where w is: the gradients of scores (queries, panel).
    void (*pull)(std::int64_t queries, T factor, const T* dot, const T* weights, T* gradients);
    /// The sum of x[i] y[i], in f64, in an order that n alone fixes.
    double (*dot)(std::int64_t n, const T* x, const T* y);
    /// Whether no element is NaN or infinite.
    bool (*finite)(std::int64_t n, const T* x);
};

}  // namespace glassgrad::detail
