#pragma once
// What the observer collects: records with their tensors, and for each tensor what its name and
// key will be made of once names are final.

#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/trace/document.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace glassgrad::detail {

/// How the key of a tensor follows from another's.
enum class KeyKind : std::uint8_t { own, grad, part };

struct RecordedTensor {
    Variable variable;     ///< for its name; undefined for gradients
    std::string fallback;  ///< the op's name, for a value that has none
    Tensor value;
    TraceRole role = TraceRole::activation;
    std::int64_t scope = 0;
    std::int64_t op = no_record;
    KeyKind kind = KeyKind::own;
    std::int64_t of = no_record;  ///< a gradient's forward tensor
    std::int64_t part = 0;        ///< which contribution to a sum it is, from 1
    std::int64_t grad = grad_not_recorded;
};

/// Everything seen so far, in order.
class Recording final : public Observer {
  public:
    Recording();

    void on_forward(const ForwardEvent& event) override;
    void on_backward(const BackwardEvent& event) override;
    void on_accumulate(const AccumulateEvent& event) override;
    void on_gradient(const GradientEvent& event) override;

    std::vector<TraceScope> scopes;
    std::vector<RecordedTensor> tensors;
    std::vector<TraceOp> ops;
    std::vector<TraceOpDefinition> definitions;
    /// Tensors that were there when a backward pass last went by: those without a gradient have
    /// no path.
    std::size_t swept = 0;
    /// False while gradients have arrived that nothing took up yet.
    bool settled() const noexcept { return pending_.empty(); }

  private:
    struct Contribution {
        std::int64_t tensor;
        Variable gradient;
    };

    std::int64_t scope_id(const ScopeNode* scope);
    std::int64_t add(RecordedTensor tensor);
    std::int64_t tensor_of(const Variable& x, std::int64_t scope);
    /// Each tensor once.
    std::vector<std::int64_t> tensors_of(std::span<const Variable> all, std::int64_t scope);
    std::int64_t add_gradient(const Variable& gradient, std::int64_t of, std::int64_t op);
    std::int64_t forward_tensor(std::int64_t id) const;
    std::int64_t add_engine_op(std::string_view name, std::int64_t scope);
    void define(const OpRow& row);

    std::unordered_map<const ScopeNode*, std::int64_t> scope_ids_;
    std::unordered_map<std::int64_t, std::int64_t> tensor_ids_;  ///< by Variable::id
    std::unordered_map<std::int64_t, std::int64_t> op_ids_;      ///< by id of the result
    std::unordered_map<std::int64_t, std::int64_t> gradients_;   ///< by id of the value
    std::unordered_map<std::int64_t, std::vector<Contribution>> pending_;
    std::unordered_map<const OpRow*, std::size_t> defined_;
};

}  // namespace glassgrad::detail
