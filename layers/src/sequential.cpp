#include <glassgrad/layers/sequential.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <string>

namespace glassgrad {
namespace {

class FunctionLayer : public Layer {
  public:
    explicit FunctionLayer(Sequential::Function function) : function_(std::move(function)) {}
    Variable operator()(const Variable& x) const override {
        const Scope scope = enter();
        return function_(x);
    }

  private:
    Sequential::Function function_;
};

}  // namespace

void Sequential::append(Function function) {
    if (!function) throw ValueError("sequential: an empty function");
    add(std::make_unique<FunctionLayer>(std::move(function)));
}

void Sequential::add(std::unique_ptr<Layer> layer) {
    register_module(std::to_string(steps_.size()), *layer);
    steps_.push_back(std::move(layer));
}

Layer& Sequential::at(std::size_t number) {
    if (number < steps_.size()) return *steps_[number];
    throw IndexError(
        fmt::format("sequential: there is no layer {} among {}", number, steps_.size()));
}

Variable Sequential::operator()(const Variable& x) const {
    const Scope scope = enter();
    Variable y = x;
    for (const auto& step : steps_) y = (*step)(y);
    return y;
}

}  // namespace glassgrad
