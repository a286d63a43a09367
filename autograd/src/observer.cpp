#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/observer.hpp>

#include <algorithm>
#include <vector>

namespace glassgrad {

static std::vector<Observer*>& list() {
    static thread_local std::vector<Observer*> observers;
    return observers;
}

Observing::Observing(Observer& observer) : observer_(&observer) {
    list().push_back(observer_);
    detail::observer_count = static_cast<int>(list().size());
}

Observing::~Observing() {
    auto& observers = list();
    const auto found = std::find(observers.rbegin(), observers.rend(), observer_);
    if (found != observers.rend()) observers.erase(std::next(found).base());
    detail::observer_count = static_cast<int>(observers.size());
}

std::span<Observer* const> detail::observers() noexcept { return list(); }

void detail::notify_forward(const OpRow& row, const Attributes& attributes,
                            std::span<const Variable> inputs, const Variable& output) {
    std::vector<Variable> saved;
    if (output.requires_grad()) output.node()->list_saved(saved);
    const ForwardEvent event{row, attributes, inputs, output, saved, current_scope(), recomputing};
    const std::vector<Observer*> watching(list());
    for (Observer* observer : watching) observer->on_forward(event);
}

}  // namespace glassgrad
