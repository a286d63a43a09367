#include "gradcheck_pattern.hpp"

#include <algorithm>
#include <limits>

namespace glassgrad::proof {
namespace {

double residual(const Entry& entry) { return entry.analytic - entry.numeric; }

}  // namespace

double Pattern::ratio() const {
    double products = 0, squares = 0;
    for (std::size_t k = 0; k < table_.rows; ++k) {
        const double largest = table_.largest(k);
        if (largest == 0) continue;
        for (std::size_t c = 0; c < table_.columns(); ++c) {
            const Entry& entry = table_.at(k, c);
            if (!usable(entry)) continue;
            products += entry.analytic / largest * (entry.numeric / largest);
            squares += entry.numeric / largest * (entry.numeric / largest);
        }
    }
    return squares > 0 ? products / squares : 0;
}

bool Pattern::analytic_is(const std::function<double(std::size_t, std::size_t)>& expected) const {
    for (std::size_t k = 0; k < table_.rows; ++k) {
        for (std::size_t c = 0; c < table_.columns(); ++c) {
            if (!near(table_.at(k, c), expected(k, c))) return false;
        }
    }
    return true;
}

bool Pattern::hot_analytic_is(
    const std::function<double(std::size_t, std::size_t, std::int64_t)>& expected) const {
    bool any = false;
    for (std::size_t k = 0; k < table_.rows; ++k) {
        if (cotangents_[k].hot < 0) continue;
        for (std::size_t c = 0; c < table_.columns(); ++c) {
            const Entry& entry = table_.at(k, c);
            any = any || entry.status == Status::wrong;
            if (!near(entry, expected(k, c, cotangents_[k].hot))) return false;
        }
    }
    return any;
}

bool Pattern::analytic_is_moved(const std::function<Tensor(const Tensor&)>& moved) const {
    for (std::size_t k = 0; k < table_.rows; ++k) {
        Tensor numeric = Tensor::empty(shape_, f64);
        auto* out = numeric.mutable_data<double>();
        for (std::size_t c = 0; c < table_.columns(); ++c) out[c] = table_.at(k, c).numeric;
        const Tensor expected = moved(numeric);
        for (std::size_t c = 0; c < table_.columns(); ++c) {
            if (!near(table_.at(k, c), expected.data<double>()[c])) return false;
        }
    }
    return true;
}

bool Pattern::wrong_entries_are(const std::function<bool(const Entry&)>& what) const {
    std::vector<Entry> wrong, wrong_hot;
    for (std::size_t k = 0; k < table_.rows; ++k) {
        for (std::size_t c = 0; c < table_.columns(); ++c) {
            const Entry& entry = table_.at(k, c);
            if (entry.status != Status::wrong) continue;
            (cotangents_[k].hot >= 0 ? wrong_hot : wrong).push_back(entry);
        }
    }
    const std::vector<Entry>& asked = wrong_hot.empty() ? wrong : wrong_hot;
    return !asked.empty() && std::all_of(asked.begin(), asked.end(), what);
}

std::optional<std::vector<double>> Pattern::ratios_by_element() const {
    std::vector<double> ratios(table_.columns(), std::numeric_limits<double>::quiet_NaN());
    bool told = false;  // some element has two entries that agree
    for (std::size_t c = 0; c < table_.columns(); ++c) {
        for (std::size_t k = 0; k < table_.rows; ++k) {
            const Entry& entry = table_.at(k, c);
            if (!usable(entry)) continue;
            if (std::abs(entry.numeric) <= 1e3 * entry.tolerance) {
                if (std::abs(entry.analytic) > 1e4 * entry.tolerance) return {};
                continue;
            }
            const double ratio = entry.analytic / entry.numeric;
            if (std::isnan(ratios[c])) {
                ratios[c] = ratio;
            } else if (std::abs(ratio - ratios[c]) <= 1e-3 * std::abs(ratio) + 1e-6) {
                told = true;
            } else {
                return {};
            }
        }
    }
    if (!told) return {};
    return ratios;
}

std::vector<std::vector<std::size_t>> Pattern::lines_along(int axis) const {
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape_.rank(); ++i) inner *= shape_[i];
    std::vector<std::vector<std::size_t>> lines;
    for (std::int64_t start = 0; start < shape_.numel(); ++start) {
        if (start / inner % shape_[axis] != 0) continue;
        std::vector<std::size_t> line;
        for (std::int64_t i = 0; i < shape_[axis]; ++i) {
            line.push_back(static_cast<std::size_t>(start + i * inner));
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

bool Pattern::residual_is_constant_along(int axis) const {
    for (const auto& line : lines_along(axis)) {
        for (std::size_t k = 0; k < table_.rows; ++k) {
            const Entry& first = table_.at(k, line.front());
            for (const std::size_t c : line) {
                const Entry& entry = table_.at(k, c);
                const double allowed = first.tolerance + entry.tolerance;
                if (!(std::abs(residual(entry) - residual(first)) <= allowed)) return false;
            }
        }
    }
    return true;
}

bool Pattern::parallel(const std::vector<std::size_t>& line,
                       const std::function<double(const Entry&)>& what) const {
    std::size_t longest = 0;
    double best = 0;
    const auto product = [&](std::size_t a, std::size_t b) {
        double sum = 0;
        for (const std::size_t c : line) sum += what(table_.at(a, c)) * what(table_.at(b, c));
        return sum;
    };
    for (std::size_t k = 0; k < table_.rows; ++k) {
        if (product(k, k) > best) best = product(longest = k, k);
    }
    for (std::size_t k = 0; k < table_.rows && best > 0; ++k) {
        const double times = product(k, longest) / best;
        for (const std::size_t c : line) {
            const Entry& entry = table_.at(k, c);
            const double off = what(entry) - times * what(table_.at(longest, c));
            const double allowed =
                2 * entry.tolerance + 2 * std::abs(times) * table_.at(longest, c).tolerance;
            if (!(std::abs(off) <= allowed)) return false;
        }
    }
    return true;
}

bool Pattern::residuals_are_parallel_along(int axis) const {
    bool telling = false;
    for (const auto& line : lines_along(axis)) {
        if (!parallel(line, residual)) return false;
        telling = telling || !parallel(line, [](const Entry& entry) { return entry.numeric; });
    }
    return telling;
}

}  // namespace glassgrad::proof
