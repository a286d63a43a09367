#include "gradcheck_report.hpp"

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace glassgrad {

std::string_view name(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::passed: return "passed";
        case Verdict::failed: return "failed";
        case Verdict::not_differentiable: return "not differentiable";
        case Verdict::no_power: return "no power";
        case Verdict::invalid: return "invalid";
    }
    return "unknown";
}

std::string_view name(GradFault fault) noexcept {
    switch (fault) {
        case GradFault::none: return "none";
        case GradFault::sign: return "sign";
        case GradFault::factor: return "factor";
        case GradFault::missing_path: return "missing path";
        case GradFault::extra_path: return "extra path";
        case GradFault::transposed: return "transposed";
        case GradFault::shifted: return "shifted";
        case GradFault::reversed: return "reversed";
        case GradFault::exchanged: return "exchanged";
        case GradFault::missing_sum: return "missing sum";
        case GradFault::dropped_term: return "dropped term";
        case GradFault::wrong_factor: return "wrong factor";
        case GradFault::not_finite: return "not finite";
        case GradFault::unknown: return "unknown";
        case GradFault::threw: return "threw";
        case GradFault::wrong_type: return "wrong type";
        case GradFault::not_repeatable: return "not repeatable";
        case GradFault::not_linear: return "not linear";
        case GradFault::accumulation: return "accumulation";
        case GradFault::passes_differ: return "passes differ";
    }
    return "unknown";
}

const GradcheckFinding& GradcheckReport::worst() const {
    if (inputs.empty()) throw ValueError("gradcheck: the report has no findings: " + text);
    const GradcheckFinding* found = &inputs.front();
    const auto size = [](const GradcheckFinding& each) {
        return std::abs(each.analytic - each.numeric);
    };
    for (const GradcheckFinding& each : inputs) {
        const int more = proof::gravity(each.verdict) - proof::gravity(found->verdict);
        if (more > 0 || (more == 0 && size(each) > size(*found))) found = &each;
    }
    return *found;
}

namespace proof {
namespace {

/// The entry of that status which is farthest off, of a one-hot cotangent if there is one.
std::pair<std::size_t, std::size_t> worst_of(const Setting& setting, const Table& table,
                                             Status status) {
    std::pair<std::size_t, std::size_t> place{0, 0};
    double most = -1;
    bool hot = false;
    for (std::size_t k = 0; k < table.rows; ++k) {
        for (std::size_t c = 0; c < table.columns(); ++c) {
            const Entry& entry = table.at(k, c);
            if (entry.status != status) continue;
            const bool now_hot = setting.cotangents[k].hot >= 0;
            const double off =
                status == Status::kink ? std::abs(entry.left - entry.right) : entry.difference();
            if (now_hot == hot ? !(off > most) : hot) continue;
            most = off;
            hot = now_hot;
            place = {k, c};
        }
    }
    return place;
}

std::string cotangent_text(const Setting& setting, std::size_t row) {
    const Cotangent& cotangent = setting.cotangents[row];
    return cotangent.hot >= 0
               ? fmt::format("for a cotangent of 1 {}", setting.problem.place(cotangent.hot))
               : fmt::format("for random cotangent {}", row);
}

/// Fills in where a finding points.
void point_at(const Setting& setting, const Table& table, std::pair<std::size_t, std::size_t> place,
              GradcheckFinding& finding) {
    const Entry& entry = table.at(place.first, place.second);
    finding.index =
        index_of(table.elements[place.second], setting.problem.slots()[table.slot].value.shape());
    finding.analytic = entry.analytic;
    finding.numeric = entry.numeric;
    finding.uncertainty = entry.error;
}

void describe_failure(const Setting& setting, std::span<const Table> tables, std::size_t which,
                      bool second, GradcheckFinding& finding) {
    const Table& table = tables[which];
    const auto place = worst_of(setting, table, Status::wrong);
    point_at(setting, table, place, finding);
    const Diagnosis diagnosis =
        diagnose(setting.problem, setting.cotangents, setting.base, tables, which, second);
    finding.verdict = Verdict::failed;
    finding.fault = diagnosis.fault;
    finding.explanation = fmt::format(
        "wrong at {} of {} elements; at {} analytic {}, numeric {} (error about {}), {}; likely "
        "fault: {}",
        finding.wrong, finding.compared, to_string(finding.index), number(finding.analytic),
        number(finding.numeric), fmt::format("{:.1e}", finding.uncertainty),
        cotangent_text(setting, place.first), diagnosis.text);
}

void describe_kink(const Setting& setting, const Table& table, GradcheckFinding& finding) {
    finding.verdict = Verdict::not_differentiable;
    const Status status = table.any(Status::kink)   ? Status::kink
                          : table.any(Status::edge) ? Status::edge
                                                    : Status::coarse;
    const auto place = worst_of(setting, table, status);
    point_at(setting, table, place, finding);
    const Entry& entry = table.at(place.first, place.second);
    const auto element = static_cast<std::size_t>(table.elements[place.second]);
    const Slot& slot = setting.problem.slots()[table.slot];
    const std::string at = fmt::format("at {}, where it is {},", to_string(finding.index),
                                       number(slot.value.data<double>()[element]));
    if (status == Status::kink) {
        finding.explanation = fmt::format(
            "{} there is a kink: the slope is {} on the left and {} on the right, {}; "
            "move the point of the check",
            at, number(entry.left), number(entry.right), cotangent_text(setting, place.first));
    } else if (status == Status::edge) {
        finding.explanation = fmt::format(
            "{} the function isn't finite nearby; move the point of the check into its domain", at);
    } else {
        finding.explanation =
            fmt::format("{} differences over smaller and smaller steps do not settle", at);
    }
}

/// A random direction is off, and halving it led to no element.
void describe_stray(const Entry& stray, GradcheckFinding& finding) {
    const bool wrong = stray.status == Status::wrong;
    finding.verdict = wrong ? Verdict::failed : Verdict::not_differentiable;
    finding.fault = wrong ? GradFault::unknown : GradFault::none;
    finding.analytic = stray.analytic;
    finding.numeric = stray.numeric;
    finding.uncertainty = stray.error;
    finding.explanation = fmt::format(
        "along a random direction through all elements analytic is {}, numeric {} (error about "
        "{:.1e}); no single element accounts for it",
        number(stray.analytic), number(stray.numeric), stray.error);
}

void describe_no_power(const Setting& setting, const Table& table, bool second,
                       GradcheckFinding& finding) {
    if (setting.options.accept_zero) return;
    if (second && !table.moved) return;
    finding.verdict = Verdict::no_power;
    if (!table.moved) {
        finding.explanation =
            "this check has no power: nothing depends on this input, so a missing path would pass; "
            "leave it out, or accept it with {.accept_zero = true}";
        return;
    }
    double noise = 0;
    for (const Entry& entry : table.entries) noise = std::max(noise, entry.error);
    finding.explanation = fmt::format(
        "this check has no power: the numeric gradient (at most {}) is below its own "
        "noise (about {}), so zeros would pass; return the result itself in place of "
        "its sum, or weigh it",
        number(table.largest()), fmt::format("{:.1e}", noise));
}

}  // namespace

int gravity(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::passed: return 0;
        case Verdict::no_power: return 1;
        case Verdict::not_differentiable: return 2;
        case Verdict::failed: return 3;
        case Verdict::invalid: return 4;
    }
    return 5;
}

GradcheckFinding judge(const Setting& setting, std::span<const Table> tables, std::size_t which,
                       bool second) {
    const Table& table = tables[which];
    const Slot& slot = setting.problem.slots()[table.slot];
    GradcheckFinding finding;
    finding.input = slot.name;
    finding.shape = slot.value.shape();
    finding.compared = static_cast<std::int64_t>(table.columns());
    finding.wrong = table.count(Status::wrong);
    if (finding.wrong > 0) {
        describe_failure(setting, tables, which, second, finding);
    } else if (table.any(Status::kink) || table.any(Status::edge) || table.any(Status::coarse)) {
        describe_kink(setting, table, finding);
    } else if (const Entry* stray = table.stray()) {
        describe_stray(*stray, finding);
        return finding;
    } else if (!table.has_power() && slot.value.numel() > 0 && setting.problem.total() > 0) {
        describe_no_power(setting, table, second, finding);
    }
    if (finding.verdict == Verdict::passed && table.columns() > 0 && table.rows > 0) {
        point_at(setting, table, worst_of(setting, table, Status::right), finding);
    }
    return finding;
}

GradcheckReport report_on(std::string_view op, const Setting& setting,
                          std::span<const Table> tables, std::span<const Breach> breaches,
                          bool second) {
    GradcheckReport report;
    // A result without elements has no power, and nothing to prove.
    const bool any_power = std::any_of(tables.begin(), tables.end(), [](const Table& each) {
        return each.has_power() || each.columns() == 0;
    });
    for (std::size_t i = 0; i < tables.size(); ++i) {
        report.inputs.push_back(judge(setting, tables, i, second && any_power));
        const Table& table = tables[i];
        for (std::size_t k = 0; k < table.rows && table.has_power(); ++k) {
            const double largest = table.largest(k);
            for (std::size_t c = 0; c < table.columns(); ++c) {
                const Entry& entry = table.at(k, c);
                const bool counts = entry.status == Status::right || entry.status == Status::wrong;
                if (!counts || entry.difference() == 0) continue;
                report.worst_error = std::max(report.worst_error, entry.difference() / largest);
            }
        }
    }
    for (const Breach& breach : breaches) {
        GradcheckFinding& finding = report.inputs[breach.slot];
        finding.explanation += (finding.explanation.empty() ? "" : "; ") + breach.text;
        // Where there is no derivative, infinities are no news.
        if (finding.verdict == Verdict::failed || finding.verdict == Verdict::not_differentiable) {
            continue;
        }
        finding.verdict = Verdict::failed;
        finding.fault = breach.fault;
    }
    const GradcheckFinding& worst = report.worst();
    report.verdict = worst.verdict;
    report.fault = worst.fault;
    for (const std::string& each : setting.problem.frozen()) {
        report.unchecked.push_back(each + ", which is frozen");
    }
    write_text(op, report);
    return report;
}

GradcheckReport report_on(std::string_view op, const Refusal& refusal) {
    GradcheckReport report;
    report.verdict = refusal.verdict;
    report.fault = refusal.fault;
    write_text(op, report, refusal.text);
    return report;
}

void write_text(std::string_view op, GradcheckReport& report, std::string_view headline) {
    report.text = fmt::format("{}: {}", op, name(report.verdict));
    if (!headline.empty()) report.text += fmt::format(": {}", headline);
    for (const GradcheckFinding& each : report.inputs) {
        report.text +=
            fmt::format("\n  {} {}: {}", each.input, to_string(each.shape), name(each.verdict));
        if (each.fault != GradFault::none) report.text += fmt::format(" ({})", name(each.fault));
        if (!each.explanation.empty()) report.text += fmt::format(": {}", each.explanation);
    }
    for (const std::string& each : report.unchecked) {
        report.text += fmt::format("\n  not checked: {}", each);
    }
}

}  // namespace proof
}  // namespace glassgrad
