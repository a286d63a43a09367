#include <glassgrad/layers/summary.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace glassgrad {
namespace {

/// 1234567 as 1,234,567.
std::string grouped(std::int64_t n) {
    std::string text = std::to_string(n);
    for (auto at = static_cast<std::int64_t>(text.size()) - 3; at > 0; at -= 3) {
        text.insert(static_cast<std::size_t>(at), ",");
    }
    return text;
}

}  // namespace

std::string summary(const Module& model) {
    using Row = std::array<std::string, 4>;
    std::vector<Row> rows{{"parameter", "shape", "type", "count"}};
    std::vector<std::pair<std::string, Variable>> seen;
    std::int64_t total = 0;
    std::uint64_t bytes = 0;
    for (const auto& [path, value] : model.named_parameters()) {
        const auto same = [&each = value](const auto& entry) { return entry.second.same_as(each); };
        const auto first = std::find_if(seen.begin(), seen.end(), same);
        const std::string shape = to_string(value.shape());
        const std::string type(name(value.dtype()));
        if (first != seen.end()) {
            rows.push_back({path, shape, type, "= " + first->first});
            continue;
        }
        seen.emplace_back(path, value);
        rows.push_back({path, shape, type, grouped(value.numel())});
        total += value.numel();
        bytes += static_cast<std::uint64_t>(value.numel()) * item_size(value.dtype());
    }
    rows.push_back({"total", "", "", grouped(total)});

    std::array<std::size_t, 4> widths{};
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const Row& row : rows) {
        text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}\n", row[0], widths[0], row[1],
                            widths[1], row[2], widths[2], row[3], widths[3]);
    }
    return text + fmt::format("{} bytes\n", grouped(static_cast<std::int64_t>(bytes)));
}

}  // namespace glassgrad
