#pragma once

#include <glassgrad/layers/layer.hpp>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace glassgrad {

/// Layers one after the other, named "0", "1", … as torch.nn.Sequential names them.
class Sequential : public Layer {
  public:
    using Function = std::function<Variable(const Variable&)>;

    /// Makes a layer at the end and returns it: `append<Linear>(3, 4, rng)`.
    template <class L, class... Arguments>
    L& append(Arguments&&... arguments) {
        auto made = std::make_unique<L>(std::forward<Arguments>(arguments)...);
        L& layer = *made;
        add(std::move(made));
        return layer;
    }
    /// A function without parameters, such as an activation, which takes a number as well.
    void append(Function function);

    std::size_t size() const noexcept { return steps_.size(); }
    /// Throws IndexError.
    Layer& at(std::size_t number);

    Variable operator()(const Variable& x) const override;

  private:
    void add(std::unique_ptr<Layer> layer);

    std::vector<std::unique_ptr<Layer>> steps_;
};

}  // namespace glassgrad
