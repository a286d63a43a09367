#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/layers/unused_parameters.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/training/health.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace glassgrad {
namespace {

/// Of weights (..., query, key), from tokens that see at least two keys.
double entropy_share(const Tensor& weights) {
    const Tensor w = weights.astype(f64);
    const std::int64_t keys = w.size(-1);
    double sum = 0;
    std::int64_t rows = 0;
    const auto values = w.values<double>();
    for (std::int64_t row = 0; row < w.numel() / std::max<std::int64_t>(keys, 1); ++row) {
        double entropy = 0;
        std::int64_t seen = 0;
        for (const double p :
             values.subspan(static_cast<std::size_t>(row * keys), static_cast<std::size_t>(keys))) {
            if (p == 0) continue;
            ++seen;
            entropy -= p * std::log(p);
        }
        // A token that looks at one of several has weights that are all but 0, so what is seen is
        // told by the place in the row: causal rows see one key more each.
        const std::int64_t visible = std::max(seen, keys - w.size(-2) + row % w.size(-2) + 1);
        if (visible < 2) continue;
        sum += entropy / std::log(static_cast<double>(visible));
        ++rows;
    }
    return rows == 0 ? 1 : sum / static_cast<double>(rows);
}

double norm_of(const Tensor& x) { return norm(x.astype(f64)).item(); }

/// Each parameter that is trained, once.
StateDict weights_of(const Module& model) {
    StateDict weights;
    std::vector<Variable> seen;
    for (const auto& [name, value] : model.named_parameters()) {
        const auto same = [&each = value](const Variable& x) { return x.same_as(each); };
        if (!value.requires_grad() || std::any_of(seen.begin(), seen.end(), same)) continue;
        seen.push_back(value);
        weights.emplace_back(name, value.value());
    }
    return weights;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
    return std::memcmp(a.bytes(), b.bytes(),
                       static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

}  // namespace

std::vector<std::pair<std::string, double>> attention_entropy(CausalModel& model,
                                                              const Tensor& ids) {
    struct Unhook {
        CausalModel& model;
        bool training;
        std::vector<std::pair<MultiHeadAttention*, std::int64_t>> hooks;
        ~Unhook() {
            for (const auto& [module, number] : hooks) module->remove_point_hook(number);
            if (training) model.train();
        }
    };
    std::vector<std::pair<std::string, double>> shares;
    Unhook unhook{model, model.training(), {}};
    for (const auto& [path, module] : model.named_modules()) {
        auto* attention = dynamic_cast<MultiHeadAttention*>(module);
        if (attention == nullptr) continue;
        const auto note = [&shares, name = path](const Variable& weights) {
            shares.emplace_back(name, entropy_share(weights.value()));
            return Variable();
        };
        unhook.hooks.emplace_back(attention, attention->hook_point("weights", note));
    }
    if (unhook.hooks.empty()) return {};
    const NoGrad no_grad;
    model.eval();
    model(ids);
    return shares;
}

void Health::warn(const std::string& about, std::string text) {
    if (told_.insert(about).second) found_.push_back("warning: " + std::move(text));
}

void Health::check_reached(const Variable& loss) {
    if (std::exchange(reached_, true)) return;
    std::vector<std::pair<std::string, Variable>> trained = model_->named_parameters();
    std::erase_if(trained, [](const auto& each) { return !each.second.requires_grad(); });
    for (const UnusedParameter& each : unused_parameters(loss, trained)) {
        warn("unused " + each.name,
             fmt::format("'{}' gets no gradient: {}", each.name, each.reason));
    }
}

void Health::keep() {
    kept_ = weights_of(*model_);
    if (!looked_ && first_.empty()) first_ = kept_;
}

void Health::check_moved() {
    if (looked_) return;
    looked_ = true;
    const StateDict now = weights_of(*model_);
    for (std::size_t i = 0; i < first_.size(); ++i) {
        if (now[i].second.numel() > 0 && same_bytes(now[i].second, first_[i].second)) {
            warn("unmoved " + now[i].first,
                 fmt::format("'{}' has not moved since the run began", now[i].first));
        }
    }
    first_.clear();
}

void Health::check_ratio() {
    const StateDict now = weights_of(*model_);
    double most = 0.1;
    std::string which;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
        const auto& [name, before] = kept_[i];
        const double norm = norm_of(before);
        if (before.rank() < 2 || norm == 0) continue;
        const double ratio = norm_of(now[i].second - before) / norm;
        if (ratio <= most) continue;
        most = ratio;
        which = name;
    }
    if (!which.empty()) {
        warn("ratio",
             fmt::format("one step moved '{}' by {:.0f} % of its norm (0.1 % is usual): the "
                         "learning rate may be too high",
                         which, 100 * most));
    }
    kept_.clear();
}

void Health::check_attention(const Tensor& ids) {
    for (const auto& [path, share] : attention_entropy(*model_, ids)) {
        if (share >= 0.02) continue;
        warn("attention " + path,
             fmt::format("attention of '{}' has collapsed: each token looks at one token only "
                         "(entropy {:.2f} % of the most there could be)",
                         path, 100 * share));
    }
}

}  // namespace glassgrad
