#include <glassgrad/trace/profile.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace glassgrad {
namespace {

void add(ProfileCost& to, const ProfileCost& cost) {
    to.calls += cost.calls;
    to.nanoseconds += cost.nanoseconds;
    to.bytes += cost.bytes;
}

void append_table(std::string& out, std::string_view what, const std::vector<ProfileRow>& rows,
                  std::int64_t total) {
    std::size_t width = what.size();
    for (const ProfileRow& row : rows) width = std::max(width, row.name.size());
    const auto to = std::back_inserter(out);
    fmt::format_to(to, "{:<{}}  {:>6}  {:>10} {:>8} {:>10}  {:>10} {:>8} {:>10}\n", what, width,
                   "share", "forward ms", "calls", "MB", "backward", "calls", "MB");
    for (const ProfileRow& row : rows) {
        const double share =
            total > 0 ? static_cast<double>(row.nanoseconds()) / static_cast<double>(total) : 0;
        fmt::format_to(to, "{:<{}}  {:>5.1f}%", row.name, width, 100 * share);
        for (const ProfileCost& cost : {row.forward, row.backward}) {
            fmt::format_to(to, "  {:>10.3f} {:>8} {:>10.3f}",
                           static_cast<double>(cost.nanoseconds) / 1e6, cost.calls,
                           static_cast<double>(cost.bytes) / 1e6);
        }
        out.push_back('\n');
    }
}

}  // namespace

void Profile::on_run(const RunEvent& event) {
    const std::lock_guard lock(mutex_);
    const ProfileCost cost{1, event.end - event.begin, event.bytes};
    const bool forward = event.pass == RunEvent::Pass::forward;
    const auto part = [&](Costs& costs) -> ProfileCost& {
        return forward ? costs.forward : costs.backward;
    };
    add(part(ops_[&event.row]), cost);
    const auto [place, is_new] = scopes_.try_emplace(event.scope);
    if (is_new) order_.push_back(event.scope);
    add(part(place->second), cost);

    if (runs_.size() >= options_.max_runs) {
        ++not_kept_;
        return;
    }
    const std::thread::id id = std::this_thread::get_id();
    auto thread = std::find(threads_.begin(), threads_.end(), id);
    if (thread == threads_.end()) thread = threads_.insert(threads_.end(), id);
    runs_.push_back({&event.row, event.scope, event.begin, event.end, event.bytes, event.output_id,
                     static_cast<int>(thread - threads_.begin()), event.pass, event.recomputed});
}

std::vector<ProfileRow> Profile::by_op() const {
    const std::lock_guard lock(mutex_);
    std::vector<ProfileRow> rows;
    for (const auto& [op, costs] : ops_) {
        rows.push_back({std::string(op->name), costs.forward, costs.backward});
    }
    std::sort(rows.begin(), rows.end(), [](const ProfileRow& a, const ProfileRow& b) {
        return a.nanoseconds() != b.nanoseconds() ? a.nanoseconds() > b.nanoseconds()
                                                  : a.name < b.name;
    });
    return rows;
}

std::vector<ProfileRow> Profile::by_layer() const {
    const std::lock_guard lock(mutex_);
    if (order_.empty()) return {};
    std::vector<ProfileRow> rows(1);
    // Each thread has its own tree of scopes: a layer is known by its path.
    std::unordered_map<std::string_view, std::size_t> places;
    for (const ScopeNode* used : order_) {
        std::vector<const ScopeNode*> chain;
        for (const ScopeNode* each = used; each && each->parent; each = each->parent) {
            chain.push_back(each);
        }
        std::reverse(chain.begin(), chain.end());
        const Costs& costs = scopes_.at(used);
        add(rows.front().forward, costs.forward);
        add(rows.front().backward, costs.backward);
        for (const ScopeNode* each : chain) {
            const auto [place, is_new] = places.try_emplace(each->path, rows.size());
            if (is_new) rows.push_back({each->path, {}, {}});
            add(rows[place->second].forward, costs.forward);
            add(rows[place->second].backward, costs.backward);
        }
    }
    return rows;
}

std::string Profile::text() const {
    const std::vector<ProfileRow> ops = by_op();
    std::vector<ProfileRow> layers = by_layer();
    std::int64_t total = 0;
    for (const ProfileRow& row : ops) total += row.nanoseconds();
    if (!layers.empty()) layers.front().name = "(all)";
    std::string out;
    append_table(out, "op", ops, total);
    out.push_back('\n');
    append_table(out, "layer", layers, total);
    return out;
}

void Profile::clear() {
    const std::lock_guard lock(mutex_);
    runs_.clear();
    not_kept_ = 0;
    ops_.clear();
    scopes_.clear();
    order_.clear();
    threads_.clear();
}

}  // namespace glassgrad
