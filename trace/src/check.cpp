#include "check.hpp"

#include "vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad::detail {
namespace {

/// Collects the first fault of one record.
class RecordCheck {
  public:
    RecordCheck(const TraceDocument& trace, std::string_view list) : trace_(trace), list_(list) {}

    void begin(std::size_t index) noexcept { index_ = index; }
    bool failed() const noexcept { return fault_.has_value(); }
    std::optional<TraceFault> fault() { return std::move(fault_); }

    void fail(std::string member, std::string problem) {
        if (!fault_) fault_ = TraceFault{list_, index_, std::move(member), std::move(problem)};
    }
    void name(std::string_view member, const std::string& text) {
        if (text.size() > max_name) {
            fail(std::string(member),
                 fmt::format("a name of {} bytes; the limit is {}", text.size(), max_name));
        }
    }
    void scope(std::string_view member, std::int64_t id) { refers(member, id, 's', trace_.scopes); }
    void tensor(std::string_view member, std::int64_t id) {
        refers(member, id, 't', trace_.tensors);
    }
    void op(std::string_view member, std::int64_t id) { refers(member, id, 'o', trace_.ops); }

  private:
    template <class Record>
    void refers(std::string_view member, std::int64_t id, char letter,
                const std::vector<Record>& records) {
        if (id < 0 || static_cast<std::size_t>(id) >= records.size()) {
            fail(std::string(member), fmt::format("{}{} does not exist", letter, id));
        }
    }

    const TraceDocument& trace_;
    std::string_view list_;
    std::size_t index_ = 0;
    std::optional<TraceFault> fault_;
};

/// Names become members of one object, where each may come once.
template <class Named>
void check_unique(RecordCheck& check, std::string_view member, const std::vector<Named>& all) {
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const Named& one : all) names.emplace_back(one.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
        check.fail(std::string(member), fmt::format("'{}' comes twice", *twice));
    }
}

std::string indexed(std::string_view member, std::size_t index, std::string_view field) {
    return fmt::format("{}[{}]{}", member, index, field);
}

void check_value(RecordCheck& check, const TraceTensor& tensor) {
    const TraceValue& value = tensor.value;
    const bool has_data =
        value.kind != TraceValue::Kind::none && value.kind != TraceValue::Kind::ref;
    if (!has_data) return;
    if (!value.data.defined()) {
        check.fail("value", "has no elements");
        return;
    }
    Shape wanted = tensor.shape;
    if (value.kind == TraceValue::Kind::fill) wanted = {};
    if (value.kind == TraceValue::Kind::sample) {
        wanted = {static_cast<std::int64_t>(value.index.size())};
    }
    if (!(value.data.shape() == wanted) || value.data.dtype() != tensor.dtype) {
        check.fail("value",
                   fmt::format("holds {} {} where the record says {} {}",
                               word(dtype_words, value.data.dtype()), to_string(value.data.shape()),
                               word(dtype_words, tensor.dtype), to_string(wanted)));
    }
}

void check_scope(RecordCheck& check, const TraceScope& scope, std::size_t index) {
    check.name("name", scope.name);
    check.name("path", scope.path);
    if (scope.parent == no_record) return;
    check.scope("parent", scope.parent);
    if (scope.parent >= static_cast<std::int64_t>(index)) {
        check.fail("parent", fmt::format("s{} does not come before s{}", scope.parent, index));
    }
}

void check_tensor(RecordCheck& check, const TraceTensor& tensor) {
    check.name("name", tensor.name);
    check.name("key", tensor.key);
    if (tensor.op != no_record) check.op("op", tensor.op);
    if (tensor.grad >= 0) check.tensor("grad", tensor.grad);
    if (!tensor.axes.empty() &&
        tensor.axes.size() != static_cast<std::size_t>(tensor.shape.rank())) {
        check.fail("axes", fmt::format("{} names for shape {}", tensor.axes.size(),
                                       to_string(tensor.shape)));
    }
    check_value(check, tensor);
}

void check_op(RecordCheck& check, const TraceOp& op) {
    check.name("op", op.op);
    check.scope("scope", op.scope);
    for (std::size_t i = 0; i < op.in.size(); ++i)
        check.tensor(indexed("in", i, ".t"), op.in[i].tensor);
    for (std::size_t i = 0; i < op.out.size(); ++i) {
        check.tensor(indexed("out", i, ".t"), op.out[i].tensor);
    }
    for (std::size_t i = 0; i < op.saved.size(); ++i)
        check.tensor(indexed("saved", i, ""), op.saved[i]);
    if (op.of != no_record) check.op("of", op.of);
    const bool belongs_to_none = op.op == "accumulate" || op.op == "hook";
    if (op.pass == TracePass::backward && op.of == no_record && !belongs_to_none) {
        check.fail("of", "a backward op names the forward op it belongs to");
    }
    check_unique(check, "attrs", op.attrs);
}

void check_diagnostic(RecordCheck& check, const TraceDiagnostic& diagnostic) {
    if (diagnostic.op != no_record) check.op("op", diagnostic.op);
    if (diagnostic.tensor != no_record) check.tensor("tensor", diagnostic.tensor);
    check_unique(check, "counts", diagnostic.counts);
}

template <class Record, class F>
std::optional<TraceFault> check_all(const TraceDocument& trace, std::string_view list,
                                    const std::vector<Record>& records, F&& check_record) {
    RecordCheck check(trace, list);
    for (std::size_t i = 0; i < records.size() && !check.failed(); ++i) {
        check.begin(i);
        if (i >= max_records) check.fail("", fmt::format("more than {} records", max_records));
        check_record(check, records[i], i);
    }
    return check.fault();
}

std::optional<TraceFault> check_header(const TraceDocument& trace) {
    RecordCheck check(trace, "");
    check_unique(check, "labels", trace.header.labels);
    check_unique(check, "axis_labels", trace.header.axis_labels);
    check_unique(check, "dims", trace.header.dims);
    check_unique(check, "opdefs", trace.header.opdefs);
    return check.fault();
}

}  // namespace

std::string place(const TraceFault& fault) {
    if (fault.list.empty()) return fault.member;
    return fmt::format("{}[{}]{}{}", fault.list, fault.index, fault.member.empty() ? "" : ".",
                       fault.member);
}

std::optional<TraceFault> find_fault(const TraceDocument& trace) {
    auto fault = check_header(trace);
    if (!fault) fault = check_all(trace, "scopes", trace.scopes, check_scope);
    if (!fault) {
        fault =
            check_all(trace, "tensors", trace.tensors,
                      [](auto& check, const auto& tensor, auto) { check_tensor(check, tensor); });
    }
    if (!fault) {
        fault = check_all(trace, "ops", trace.ops,
                          [](auto& check, const auto& op, auto) { check_op(check, op); });
    }
    if (!fault) {
        fault = check_all(trace, "diagnostics", trace.diagnostics,
                          [](auto& check, const auto& one, auto) { check_diagnostic(check, one); });
    }
    return fault;
}

}  // namespace glassgrad::detail
