#include <glassgrad/layers/gradcheck.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace glassgrad {
namespace {

/// A parameter as it was, put back by the destructor of Borrowed.
struct Kept {
    Variable parameter;
    Tensor value;
    Tensor gradient;
    std::string name;
    bool wanted;
};

/// The parameters of a module in f64, under their dotted names, for the lifetime of the object.
class Borrowed {
  public:
    explicit Borrowed(const Module& module) {
        for (const auto& [path, given] : module.named_parameters()) {
            const Variable& parameter = given;  // clang 14 captures no structured binding
            const bool known = std::any_of(kept_.begin(), kept_.end(), [&](const Kept& other) {
                return other.parameter.same_as(parameter);
            });
            if (known) continue;
            kept_.push_back({parameter, parameter.value(), parameter.grad(), parameter.name(),
                             parameter.requires_grad()});
            set(kept_.back(), parameter.value().astype(f64));
            kept_.back().parameter.set_name(path);
        }
    }
    ~Borrowed() {
        for (Kept& each : kept_) {
            set(each, each.value);
            each.parameter.set_name(each.name);
            if (each.wanted) each.parameter.set_grad(each.gradient);
        }
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    std::vector<Variable> parameters(bool wanted) const {
        std::vector<Variable> chosen;
        for (const Kept& each : kept_) {
            if (each.wanted == wanted) chosen.push_back(each.parameter);
        }
        return chosen;
    }

  private:
    /// A leaf of another type has another node, so it stops and starts asking for gradients.
    static void set(Kept& each, const Tensor& value) {
        if (value.dtype() == each.parameter.dtype()) {
            each.parameter.set_value(value);
            return;
        }
        each.parameter.set_requires_grad(false);
        each.parameter.mutable_value() = value;
        each.parameter.set_requires_grad(each.wanted);
    }

    std::vector<Kept> kept_;
};

}  // namespace

GradcheckReport gradcheck(Module& module, const CheckedFunction& f,
                          const std::vector<Variable>& inputs, const GradcheckOptions& options) {
    const Borrowed borrowed(module);
    GradcheckOptions with_parameters = options;
    for (const Variable& each : borrowed.parameters(true)) {
        with_parameters.parameters.push_back(each);
    }
    GradcheckReport report = gradcheck(f, inputs, with_parameters);
    const std::vector<Variable> frozen = borrowed.parameters(false);
    if (!frozen.empty()) {
        report.text += "\nfrozen, so not checked:";
        for (const Variable& each : frozen) report.text += ' ' + each.name();
    }
    return report;
}

}  // namespace glassgrad
