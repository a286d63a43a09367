#pragma once
// Both gradients of a slot side by side, and what follows for it.

#include "gradcheck_analytic.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace glassgrad::proof {

enum class Status : std::uint8_t { right, wrong, kink, edge, coarse };

struct Entry {
    double analytic = 0;
    double numeric = 0;
    double error = 0;      ///< estimated, of `numeric`
    double noise = 0;      ///< of `analytic`, from rounding of the inputs
    double tolerance = 0;  ///< accepted difference
    Status status = Status::right;
    double left = 0;  ///< slopes on both sides, of a kink
    double right = 0;

    double difference() const noexcept;
};

/// Entries of one slot: a row a cotangent, a column an element.
struct Table {
    std::size_t slot = 0;
    std::vector<std::int64_t> elements;  ///< flat indices of the columns
    bool complete = false;               ///< all elements, in order
    std::size_t rows = 0;
    std::vector<Entry> entries;
    bool moved = false;  ///< some result changed when the slot did
    /// Random directions that were compared besides, one entry each: the worst of all cotangents.
    std::vector<Entry> directions;

    std::size_t columns() const noexcept { return elements.size(); }
    Entry& at(std::size_t row, std::size_t column) { return entries[row * columns() + column]; }
    const Entry& at(std::size_t row, std::size_t column) const {
        return entries[row * columns() + column];
    }
    bool any(Status status) const noexcept;
    /// Elements with an entry of that status.
    std::int64_t count(Status status) const noexcept;
    /// The first direction that is not right though no element was found to blame; null if none.
    const Entry* stray() const noexcept;
    /// Some numeric gradient stands out of its own noise.
    bool has_power() const noexcept;
    /// Largest |numeric| of all entries, or of a row.
    double largest() const noexcept;
    double largest(std::size_t row) const noexcept;
};

/// What the comparison needs to know.
struct Setting {
    Problem& problem;
    const GradcheckOptions& options;
    std::span<const Cotangent> cotangents;
    std::span<const double> base;
    std::span<const double> noise;
};

Table compare(const Setting& setting, std::size_t slot, const Gradients& gradients);

}  // namespace glassgrad::proof
