// Events become records. One forward op is one record, and so is the gradient of one op; gradients
// that meet are an op of their own with one input a contribution.

#include "recording.hpp"

#include "op_ports.hpp"

#include <glassgrad/autograd/op_row.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace glassgrad::detail {
namespace {

TraceAttributeValue value_of(const Attribute& attribute) {
    switch (attribute.kind) {
        case Attribute::Kind::integer: return attribute.integer;
        case Attribute::Kind::number: return attribute.number;
        case Attribute::Kind::flag: return attribute.integer != 0;
        case Attribute::Kind::text: return attribute.text;
        case Attribute::Kind::list: break;
    }
    std::vector<TraceAttributeValue> items;
    for (const std::int64_t item : attribute.list) items.emplace_back(item);
    return items;
}

std::vector<TraceAttribute> attributes_of(const Attributes& attributes) {
    std::vector<TraceAttribute> all;
    for (const Attribute& each : attributes)
        all.push_back({std::string(each.name), value_of(each)});
    return all;
}

/// What stands for a value that no op of this recording made.
TraceRole role_of_leaf(const Variable& x) {
    if (x.requires_grad()) return x.is_leaf() ? TraceRole::param : TraceRole::input;
    const bool is_given = !x.name().empty() || x.dtype() == i64;
    return is_given ? TraceRole::input : TraceRole::constant;
}

}  // namespace

Recording::Recording() {
    TraceScope root;
    root.kind = "root";
    scopes.push_back(root);
}

std::int64_t Recording::scope_id(const ScopeNode* scope) {
    std::vector<const ScopeNode*> fresh;
    while (scope && scope->parent && !scope_ids_.contains(scope)) {
        fresh.push_back(scope);
        scope = scope->parent;
    }
    std::int64_t id = scope && scope->parent ? scope_ids_.at(scope) : 0;
    std::reverse(fresh.begin(), fresh.end());
    for (const ScopeNode* node : fresh) {
        TraceScope record;
        record.parent = id;
        record.name = node->name;
        record.path = node->path;
        id = static_cast<std::int64_t>(scopes.size());
        scopes.push_back(std::move(record));
        scope_ids_.emplace(node, id);
    }
    return id;
}

std::int64_t Recording::add(RecordedTensor tensor) {
    tensors.push_back(std::move(tensor));
    return static_cast<std::int64_t>(tensors.size()) - 1;
}

std::int64_t Recording::tensor_of(const Variable& x, std::int64_t scope) {
    const auto known = tensor_ids_.find(x.id());
    if (known != tensor_ids_.end()) {
        // A leaf may have been given another value since, by an optimizer for example.
        const Tensor& seen = tensors[static_cast<std::size_t>(known->second)].value;
        if (seen.shares_buffer_with(x.value())) return known->second;
    }
    RecordedTensor leaf;
    leaf.variable = x;
    leaf.fallback = x.op().empty() ? "constant" : std::string(x.op());
    leaf.value = x.value();
    leaf.role = role_of_leaf(x);
    leaf.scope = scope;
    return tensor_ids_[x.id()] = add(std::move(leaf));
}

std::vector<std::int64_t> Recording::tensors_of(std::span<const Variable> all, std::int64_t scope) {
    std::vector<std::int64_t> ids;
    for (const Variable& each : all) {
        const std::int64_t id = tensor_of(each, scope);
        if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    return ids;
}

std::int64_t Recording::forward_tensor(std::int64_t id) const {
    const auto found = tensor_ids_.find(id);
    return found == tensor_ids_.end() ? no_record : found->second;
}

void Recording::define(const OpRow& row) {
    if (!defined_.emplace(&row, definitions.size()).second) return;
    TraceOpDefinition definition;
    definition.name = row.name;
    definition.forward = row.forward;
    definition.backward = row.backward;
    definition.holds = split(row.holds, ';');
    definitions.push_back(std::move(definition));
}

void Recording::on_forward(const ForwardEvent& event) {
    define(event.row);
    TraceOp op;
    op.op = event.row.name;
    op.scope = scope_id(event.scope);
    op.attrs = attributes_of(event.attributes);
    const std::vector<std::string> names = input_names(event.row, event.inputs.size());
    for (std::size_t i = 0; i < event.inputs.size(); ++i) {
        op.in.push_back({names[i], tensor_of(event.inputs[i], op.scope)});
    }
    RecordedTensor result;
    result.variable = event.output;
    result.fallback = event.row.name;
    result.value = event.output.value();
    result.scope = op.scope;
    result.op = static_cast<std::int64_t>(ops.size());
    const std::int64_t out = add(std::move(result));
    tensor_ids_[event.output.id()] = out;
    op_ids_[event.output.id()] = static_cast<std::int64_t>(ops.size());
    op.out.push_back({"y", out});
    op.saved = tensors_of(event.saved, op.scope);
    op.seq = static_cast<std::int64_t>(ops.size());
    ops.push_back(std::move(op));
}

std::int64_t Recording::add_gradient(const Variable& gradient, std::int64_t of, std::int64_t op) {
    RecordedTensor record;
    record.fallback = "value";
    record.value = gradient.value();
    record.role = TraceRole::grad;
    record.kind = KeyKind::grad;
    record.of = forward_tensor(of);
    record.op = op;
    if (record.of != no_record) record.scope = tensors[static_cast<std::size_t>(record.of)].scope;
    return add(std::move(record));
}

std::int64_t Recording::add_engine_op(std::string_view name, std::int64_t scope) {
    TraceOp op;
    op.pass = TracePass::backward;
    op.op = name;
    op.scope = scope;
    op.seq = static_cast<std::int64_t>(ops.size());
    ops.push_back(std::move(op));
    return static_cast<std::int64_t>(ops.size()) - 1;
}

void Recording::on_backward(const BackwardEvent& event) {
    const auto forward = op_ids_.find(event.output_id);
    std::int64_t id = no_record;
    std::vector<std::string> names = input_names(event.row, event.gradients.size());
    if (forward != op_ids_.end()) {
        id = add_engine_op(fmt::format("{}_vjp", event.row.name), scope_id(event.scope));
        TraceOp& op = ops.back();
        const TraceOp& of = ops[static_cast<std::size_t>(forward->second)];
        op.of = forward->second;
        op.attrs = of.attrs;
        op.in.push_back({"gy", gradients_.at(event.output_id)});
        for (const std::int64_t tensor : tensors_of(event.saved, op.scope)) {
            op.in.push_back({saved_name(of, tensor, op.in.size()), tensor});
        }
    }
    for (std::size_t i = 0; i < event.gradients.size(); ++i) {
        if (!event.gradients[i].defined()) continue;
        const std::int64_t tensor = add_gradient(event.gradients[i], event.input_ids[i], id);
        if (id != no_record) {
            ops[static_cast<std::size_t>(id)].out.push_back({fmt::format("g{}", names[i]), tensor});
        }
        pending_[event.input_ids[i]].push_back({tensor, event.gradients[i]});
    }
}

void Recording::on_accumulate(const AccumulateEvent& event) {
    std::vector<Contribution>& parts = pending_[event.of];
    // What did not come from an op is a cotangent that the pass began with; those come first.
    const std::size_t seeds = event.contributions.size() - parts.size();
    for (std::size_t i = 0; i < seeds; ++i) {
        const Variable& seed = event.contributions[i];
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(i),
                     {add_gradient(seed, event.of, no_record), seed});
    }
    const std::int64_t id = add_engine_op("accumulate", scope_id(event.scope));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        RecordedTensor& part = tensors[static_cast<std::size_t>(parts[i].tensor)];
        part.kind = KeyKind::part;
        part.part = static_cast<std::int64_t>(i) + 1;
        ops.back().in.push_back({fmt::format("g{}", i + 1), parts[i].tensor});
    }
    const std::int64_t total = add_gradient(event.total, event.of, id);
    ops.back().out.push_back({"gx", total});
    parts = {{total, event.total}};
}

void Recording::on_gradient(const GradientEvent& event) {
    auto arrived = pending_.extract(event.of);
    const std::int64_t value = forward_tensor(event.of);
    std::int64_t gradient = no_record;
    if (arrived.empty()) {
        gradient = add_gradient(event.gradient, event.of, no_record);
        const bool is_loss = value != no_record && event.gradient.numel() == 1;
        if (is_loss) tensors[static_cast<std::size_t>(value)].role = TraceRole::loss;
    } else {
        const Contribution& only = arrived.mapped().front();
        gradient = only.tensor;
        if (!only.gradient.same_as(event.gradient)) {
            const std::int64_t scope = tensors[static_cast<std::size_t>(gradient)].scope;
            const std::int64_t id = add_engine_op("hook", scope);
            RecordedTensor& before = tensors[static_cast<std::size_t>(gradient)];
            before.kind = KeyKind::part;
            before.part = 1;
            ops.back().in.push_back({"gx", gradient});
            gradient = add_gradient(event.gradient, event.of, id);
            ops.back().out.push_back({"gx", gradient});
        }
    }
    gradients_[event.of] = gradient;
    if (value != no_record) tensors[static_cast<std::size_t>(value)].grad = gradient;
    swept = tensors.size();
}

}  // namespace glassgrad::detail
