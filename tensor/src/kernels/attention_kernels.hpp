#pragma once
// What attention in tiles does to scores between its products.

#include "product_kernels.hpp"

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
    /// Scores (keys, panel) become weights: softmax(score factor) down each column, 0 where a score
    /// is -inf or all are. Of each column: the largest and the sum of exp(score factor - largest).
    /// Returns whether no sum is NaN.
    bool (*share)(std::int64_t keys, T factor, T* scores, T* top, T* total);
    /// g = w (g - sum(w g)) factor, with sums down columns of (keys, panel), and 0 where w is,
    /// which takes nothing: the gradients of scores.
    void (*pull_down)(std::int64_t keys, T factor, const T* weights, T* gradients);
    /// Element i of row p becomes -inf unless from + p <= i < to + p, in scores (keys, panel).
    void (*hide)(std::int64_t keys, std::int64_t from, std::int64_t to, T* scores);
    /// c (m, n) = a (m, k) b (k, n), with rows of b that are `b_row` apart and n a multiple of half
    /// a panel. Each element is a sum over k in order, whatever m and n are.
    void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t k, const Lattice<T>& a,
                     const T* b, std::int64_t b_row, const Panels<T>& c);
    /// The sum of x[i] y[i], in f64, in an order that n alone fixes.
    double (*dot)(std::int64_t n, const T* x, const T* y);
    /// Whether no element of x (rows, n) is NaN or infinite.
    bool (*finite)(std::int64_t rows, std::int64_t n, const T* x, std::int64_t row);
};

}  // namespace glassgrad::detail
