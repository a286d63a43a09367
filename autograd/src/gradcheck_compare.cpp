#include "gradcheck_compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace glassgrad::proof {
namespace {

Status status_of(Quality quality) {
    switch (quality) {
        case Quality::kink: return Status::kink;
        case Quality::edge: return Status::edge;
        case Quality::coarse: return Status::coarse;
        case Quality::good: break;
    }
    return Status::right;
}

Entry entry_of(const Estimate& estimate, double analytic, double noise, double step) {
    Entry entry;
    entry.analytic = analytic;
    entry.numeric = estimate.value / step;
    entry.error = estimate.error / step;
    entry.noise = noise;
    entry.status = status_of(estimate.quality);
    entry.left = estimate.left / step;
    entry.right = estimate.right / step;
    return entry;
}

class Comparison {
  public:
    Comparison(const Setting& setting, const Gradients& gradients, Table& table)
        : setting_(setting),
          slot_(setting.problem.slots()[table.slot]),
          gradients_(gradients),
          table_(table) {}

    void all_elements() {
        for (std::int64_t e = 0; e < slot_.value.numel(); ++e) table_.elements.push_back(e);
        table_.complete = true;
        fill();
    }

    /// Directions through the whole tensor; of one that is not right, an element is found by
    /// halving. That one and random ones are then looked at one by one.
    void directions_and_samples() {
        Draw draw(setting_.options.seed + 7919);
        std::set<std::int64_t> chosen;
        for (int d = 0; d < setting_.options.directions; ++d) {
            Line line{table_.slot, {}, slot_.scale};
            for (std::size_t e = 0; e < line.steps.size(); ++e) {
                line.elements.push_back(static_cast<std::int64_t>(e));
                line.steps[e] *= draw.sign();
            }
            const std::vector<Entry> entries = along(line, setting_.cotangents, 0);
            const auto bad = std::find_if(entries.begin(), entries.end(), is_bad);
            table_.directions.push_back(bad == entries.end() ? entries.front() : *bad);
            if (bad == entries.end()) continue;
            chosen.insert(halve(line, static_cast<std::size_t>(bad - entries.begin())));
        }
        for (int i = 0; i < setting_.options.samples; ++i) {
            chosen.insert(draw.below(slot_.value.numel()));
        }
        table_.elements.assign(chosen.begin(), chosen.end());
        fill();
    }

  private:
    static bool is_bad(const Entry& entry) { return entry.status != Status::right; }

    double analytic(const Line& line, std::size_t row) const {
        const auto* g = gradients_.rows[row].data<double>();
        double sum = 0;
        for (std::size_t i = 0; i < line.elements.size(); ++i) {
            sum += g[line.elements[i]] * line.steps[i];
        }
        return sum;
    }
    /// The size of a sum over the line's elements whose signs are random.
    static double size(const Line& line, const Tensor& row) {
        const auto* g = row.data<double>();
        double squares = 0;
        for (std::size_t i = 0; i < line.elements.size(); ++i) {
            const double part = g[line.elements[i]] * line.steps[i];
            squares += part * part;
        }
        return std::sqrt(squares);
    }

    void judge(Entry& entry, double allowance) const {
        entry.tolerance =
            2 * entry.error + 8 * entry.noise + allowance +
            setting_.options.rtol * std::max(std::abs(entry.analytic), std::abs(entry.numeric));
        if (entry.status != Status::right) return;
        const double difference = entry.difference();
        if (!(difference <= entry.tolerance)) entry.status = Status::wrong;
    }

    std::vector<Entry> along(const Line& line, std::span<const Cotangent> cotangents,
                             std::size_t first_row) {
        const std::vector<Estimate> estimates = differentiate(
            setting_.problem, line, cotangents, setting_.base, setting_.noise, table_.moved);
        std::vector<Entry> entries;
        for (std::size_t k = 0; k < estimates.size(); ++k) {
            const std::size_t row = first_row + k;
            Entry entry =
                entry_of(estimates[k], analytic(line, row), size(line, gradients_.noise[row]), 1);
            judge(entry, setting_.options.rtol * size(line, gradients_.rows[row]));
            entries.push_back(entry);
        }
        return entries;
    }

    std::int64_t halve(Line line, std::size_t row) {
        while (line.elements.size() > 1) {
            const auto half = static_cast<std::ptrdiff_t>(line.elements.size() / 2);
            Line front{line.slot,
                       {line.elements.begin(), line.elements.begin() + half},
                       {line.steps.begin(), line.steps.begin() + half}};
            if (is_bad(along(front, setting_.cotangents.subspan(row, 1), row).front())) {
                line = std::move(front);
            } else {
                line.elements.erase(line.elements.begin(), line.elements.begin() + half);
                line.steps.erase(line.steps.begin(), line.steps.begin() + half);
            }
        }
        return line.elements.front();
    }

    /// An element that is small among large ones may need steps of its own size: 1e-6 in a
    /// logarithm beside 1e6, or 1e-9 near the kink of relu.
    std::vector<Estimate> at_element(std::int64_t element, double& step) {
        const auto try_step = [&] {
            return differentiate(setting_.problem, {table_.slot, {element}, {step}},
                                 setting_.cotangents, setting_.base, setting_.noise, table_.moved);
        };
        const auto good = [](const std::vector<Estimate>& estimates) {
            return std::all_of(estimates.begin(), estimates.end(),
                               [](const Estimate& each) { return each.quality == Quality::good; });
        };
        const double typical = slot_.scale[static_cast<std::size_t>(element)];
        step = typical;
        std::vector<Estimate> estimates = try_step();
        const double size = std::abs(slot_.value.data<double>()[element]);
        if (good(estimates) || size == 0 || size >= typical) return estimates;
        step = std::exp2(std::floor(std::log2(size)));
        std::vector<Estimate> closer = try_step();
        if (good(closer)) return closer;
        step = typical;
        return estimates;
    }

    /// Where a derivative does not exist for one cotangent, 0 times infinity for another is no
    /// news.
    void excuse_infinities(std::size_t column) {
        bool no_derivative = false;
        for (std::size_t k = 0; k < table_.rows; ++k) {
            const Status status = table_.at(k, column).status;
            no_derivative = no_derivative || (status != Status::right && status != Status::wrong);
        }
        for (std::size_t k = 0; k < table_.rows && no_derivative; ++k) {
            Entry& entry = table_.at(k, column);
            if (!std::isfinite(entry.analytic)) entry.status = Status::edge;
        }
    }

    /// An error as large as the gradients of the others agrees with anything: no proof.
    void mark_unmeasured() {
        constexpr double share = 1e-2;
        const double largest = table_.largest();
        if (largest == 0) return;
        for (Entry& entry : table_.entries) {
            const double size = std::max(std::abs(entry.analytic), std::abs(entry.numeric));
            if (entry.status == Status::right && entry.error > share * std::max(size, largest)) {
                entry.status = Status::coarse;
            }
        }
    }

    void fill() {
        table_.rows = setting_.cotangents.size();
        table_.entries.resize(table_.rows * table_.columns());
        for (std::size_t c = 0; c < table_.columns(); ++c) {
            double step = 0;
            const std::vector<Estimate> estimates = at_element(table_.elements[c], step);
            for (std::size_t k = 0; k < table_.rows; ++k) {
                table_.at(k, c) =
                    entry_of(estimates[k], gradients_.rows[k].data<double>()[table_.elements[c]],
                             gradients_.noise[k].data<double>()[table_.elements[c]], step);
            }
        }
        // Entries that much below the largest of all can't be told from its rounding, nor what
        // changes the largest result by less than its last place.
        double result = 0, step = 0;
        for (const double each : setting_.base) result = std::max(result, std::abs(each));
        for (const double each : slot_.scale) step = std::max(step, each);
        const double rounding = 1e-12 * table_.largest() + (step > 0 ? 0x1p-52 * result / step : 0);
        for (std::size_t k = 0; k < table_.rows; ++k) {
            const double allowance = setting_.options.floor * table_.largest(k) + rounding;
            for (std::size_t c = 0; c < table_.columns(); ++c) judge(table_.at(k, c), allowance);
        }
        for (std::size_t c = 0; c < table_.columns(); ++c) excuse_infinities(c);
        if (table_.has_power()) mark_unmeasured();
    }

    const Setting& setting_;
    const Slot& slot_;
    const Gradients& gradients_;
    Table& table_;
};

}  // namespace

double Entry::difference() const noexcept {
    const double d = std::abs(analytic - numeric);
    return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

bool Table::any(Status status) const noexcept {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return entry.status == status; });
}

std::int64_t Table::count(Status status) const noexcept {
    std::int64_t n = 0;
    for (std::size_t c = 0; c < columns(); ++c) {
        for (std::size_t k = 0; k < rows; ++k) {
            if (at(k, c).status != status) continue;
            ++n;
            break;
        }
    }
    return n;
}

const Entry* Table::stray() const noexcept {
    const auto good = [](const Entry& entry) { return entry.status == Status::right; };
    if (!std::all_of(entries.begin(), entries.end(), good)) return nullptr;
    const auto found = std::find_if_not(directions.begin(), directions.end(), good);
    return found == directions.end() ? nullptr : &*found;
}

bool Table::has_power() const noexcept {
    const auto stands_out = [](const Entry& entry) {
        return entry.status != Status::coarse && std::abs(entry.numeric) > 10 * entry.error;
    };
    return std::any_of(entries.begin(), entries.end(), stands_out) ||
           std::any_of(directions.begin(), directions.end(), stands_out);
}

double Table::largest() const noexcept {
    double result = 0;
    for (std::size_t k = 0; k < rows; ++k) result = std::max(result, largest(k));
    return result;
}

double Table::largest(std::size_t row) const noexcept {
    double result = 0;
    for (std::size_t c = 0; c < columns(); ++c) {
        const Entry& entry = at(row, c);
        if (entry.status == Status::right || entry.status == Status::wrong) {
            result = std::max(result, std::abs(entry.numeric));
        }
    }
    return result;
}

Table compare(const Setting& setting, std::size_t slot, const Gradients& gradients) {
    Table table;
    table.slot = slot;
    Comparison comparison(setting, gradients, table);
    if (setting.problem.slots()[slot].value.numel() <= setting.options.full_elements) {
        comparison.all_elements();
    } else {
        comparison.directions_and_samples();
    }
    return table;
}

}  // namespace glassgrad::proof
