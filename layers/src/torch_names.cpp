// torch.nn.MultiheadAttention's packed projections, to and from ours.

#include <glassgrad/layers/multi_head_attention.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace glassgrad {
namespace {

constexpr std::array<std::string_view, 3> parts{"q_proj", "k_proj", "v_proj"};

/// What stands before `part` at the end of `name`: nothing, or a path with its dot.
std::optional<std::string> prefix_of(const std::string& name, std::string_view part) {
    if (!name.ends_with(part)) return {};
    std::string prefix = name.substr(0, name.size() - part.size());
    if (!prefix.empty() && prefix.back() != '.') return {};
    return prefix;
}

const Tensor* find(const StateDict& state, const std::string& name) {
    const auto found = std::find_if(state.begin(), state.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == state.end() ? nullptr : &found->second;
}

}  // namespace

StateDict split_in_proj(const StateDict& state) {
    StateDict result;
    const auto cut = [&](const std::string& prefix, std::string_view kind, const Tensor& packed) {
        if (packed.rank() == 0 || packed.shape()[0] % 3 != 0) {
            throw ShapeError(fmt::format("split_in_proj: {}in_proj_{} {} is not three projections",
                                         prefix, kind, to_string(packed.shape())));
        }
        const std::vector<Tensor> pieces = chunk(packed, 3, 0);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            result.emplace_back(fmt::format("{}{}.{}", prefix, parts[i], kind), pieces[i]);
        }
    };
    for (const auto& [name, value] : state) {
        if (const auto weight = prefix_of(name, "in_proj_weight")) {
            cut(*weight, "weight", value);
        } else if (const auto bias = prefix_of(name, "in_proj_bias")) {
            cut(*bias, "bias", value);
        } else {
            std::string ours = name;
            for (const std::string_view part : parts) {
                if (const auto own = prefix_of(name, fmt::format("{}_weight", part))) {
                    ours = fmt::format("{}{}.weight", *own, part);
                }
            }
            result.emplace_back(ours, value);
        }
    }
    return result;
}

StateDict join_in_proj(const StateDict& state) {
    StateDict result;
    for (const auto& [name, value] : state) {
        std::optional<std::string> prefix;
        std::string_view kind;
        std::string_view part;
        for (const std::string_view each : parts) {
            for (const std::string_view what : {"weight", "bias"}) {
                if (auto found = prefix_of(name, fmt::format("{}.{}", each, what))) {
                    prefix = found;
                    kind = what;
                    part = each;
                }
            }
        }
        if (!prefix) {
            result.emplace_back(name, value);
            continue;
        }
        std::vector<Tensor> pieces;
        for (const std::string_view each : parts) {
            const Tensor* piece = find(state, fmt::format("{}{}.{}", *prefix, each, kind));
            if (!piece) {
                throw ValueError(fmt::format("join_in_proj: {} has no {}{}.{} beside it", name,
                                             *prefix, each, kind));
            }
            pieces.push_back(*piece);
        }
        const bool alike =
            pieces[0].shape() == pieces[1].shape() && pieces[0].shape() == pieces[2].shape();
        if (!alike && kind == "weight") {
            result.emplace_back(fmt::format("{}{}_weight", *prefix, part), value);
        } else if (part == parts[0]) {
            result.emplace_back(fmt::format("{}in_proj_{}", *prefix, kind), concat(pieces, 0));
        }
    }
    return result;
}

}  // namespace glassgrad
