#pragma once
// Questions to a table of both gradients, for the diagnosis.

#include "gradcheck_compare.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace glassgrad::proof {

/// Entries at kinks and edges count as agreeing with anything.
class Pattern {
  public:
    Pattern(const Table& table, std::span<const Cotangent> cotangents, const Shape& shape)
        : table_(table), cotangents_(cotangents), shape_(shape) {}

    const Table& table() const noexcept { return table_; }

    /// The c for which c * numeric is nearest to analytic.
    double ratio() const;
    /// analytic = expected(row, column) everywhere.
    bool analytic_is(const std::function<double(std::size_t, std::size_t)>& expected) const;
    /// analytic = expected(row, column, result) in the rows of one-hot cotangents.
    bool hot_analytic_is(
        const std::function<double(std::size_t, std::size_t, std::int64_t)>& expected) const;
    /// The elements of analytic are those of moved(numeric), in row-major order.
    bool analytic_is_moved(const std::function<Tensor(const Tensor&)>& moved) const;
    /// True of all wrong entries, those of one-hot cotangents if there are any.
    bool wrong_entries_are(const std::function<bool(const Entry&)>& what) const;
    /// analytic / numeric of each element (NaN where numeric is near zero), if no cotangent
    /// changes it.
    std::optional<std::vector<double>> ratios_by_element() const;
    /// For a complete table: analytic - numeric does not change along an axis.
    bool residual_is_constant_along(int axis) const;
    /// For a complete table: on each line along an axis, analytic - numeric of all cotangents are
    /// multiples of one vector, though numeric itself is not.
    bool residuals_are_parallel_along(int axis) const;

  private:
    bool usable(const Entry& entry) const noexcept {
        return entry.status == Status::right || entry.status == Status::wrong;
    }
    bool near(const Entry& entry, double expected) const noexcept {
        return !usable(entry) ||
               std::abs(entry.analytic - expected) <=
                   entry.tolerance + 1e-5 * std::max(std::abs(expected), std::abs(entry.analytic));
    }
    /// Flat indices of the elements on each line along an axis.
    std::vector<std::vector<std::size_t>> lines_along(int axis) const;
    bool parallel(const std::vector<std::size_t>& line,
                  const std::function<double(const Entry&)>& what) const;

    const Table& table_;
    std::span<const Cotangent> cotangents_;
    const Shape& shape_;
};

}  // namespace glassgrad::proof
