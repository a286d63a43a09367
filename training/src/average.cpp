#include <glassgrad/tensor/detail/updates.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/training/average.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad {

WeightAverage::WeightAverage(const Module& model, double decay) : decay_(decay) {
    if (!(decay >= 0 && decay < 1)) {
        throw ValueError(fmt::format("weight_average: decay {} is outside 0 to 1", decay));
    }
    for (const auto& [name, value] : model.named_parameters()) {
        const auto same = [&each = value](const auto& entry) { return entry.second.same_as(each); };
        if (std::any_of(parameters_.begin(), parameters_.end(), same)) continue;
        parameters_.emplace_back(name, value);
        averages_.push_back(value.value());
    }
}

void WeightAverage::update() {
    if (swapped_) {
        throw GraphError("weight_average: the averages are in the model",
                         "swap() before the next step");
    }
    for (Tensor& each : averages_) detail::own(each);
    const auto n = static_cast<double>(++updates_);
    const double decay = std::min(decay_, (1 + n) / (10 + n));
    for (std::size_t i = 0; i < averages_.size(); ++i) {
        detail::blend(averages_[i], decay, parameters_[i].second.value(), 1 - decay);
    }
}

void WeightAverage::swap() {
    for (std::size_t i = 0; i < averages_.size(); ++i) {
        std::swap(averages_[i], parameters_[i].second.mutable_value());
    }
    swapped_ = !swapped_;
}

StateDict WeightAverage::state_dict() const {
    if (swapped_) throw GraphError("weight_average: the averages are in the model", "swap() first");
    StateDict state;
    state.emplace_back("updates", full({}, static_cast<double>(updates_), i64));
    for (std::size_t i = 0; i < averages_.size(); ++i) {
        state.emplace_back(parameters_[i].first, averages_[i]);
    }
    return state;
}

void WeightAverage::load_state_dict(const StateDict& state) {
    std::vector<std::string> problems;
    const auto find = [&](const std::string& name, const Shape& shape, DType dtype) {
        const auto found = std::find_if(state.begin(), state.end(),
                                        [&](const auto& entry) { return entry.first == name; });
        if (found != state.end() && found->second.defined() && found->second.shape() == shape &&
            found->second.dtype() == dtype) {
            return found->second;
        }
        problems.push_back((found == state.end() ? "missing " : "misfitting ") + name);
        return Tensor();
    };
    std::vector<Tensor> loaded;
    const Tensor updates = find("updates", {}, i64);
    for (const auto& [name, value] : parameters_) {
        loaded.push_back(find(name, value.shape(), value.dtype()));
    }
    if (!problems.empty()) {
        throw ValueError(
            fmt::format("weight_average: load_state_dict: {}", fmt::join(problems, "; ")),
            "nothing was loaded");
    }
    averages_ = std::move(loaded);
    updates_ = updates.values<std::int64_t>()[0];
}

}  // namespace glassgrad
