#pragma once
// A small trace by hand, with each kind of record and every optional member.

#include <glassgrad/trace.hpp>

#include <cmath>
#include <limits>
#include <string>

namespace glassgrad::testing {

/// One tensor `x` with the elements of `value`.
inline TraceDocument trace_of(const Tensor& value) {
    TraceDocument trace;
    trace.header.producer_version = "0.0.0";
    trace.scopes.push_back({.name = "model", .path = "model"});
    TraceTensor x;
    x.name = "x";
    x.key = "model/x";
    x.role = TraceRole::input;
    x.dtype = value.dtype();
    x.shape = value.shape();
    x.value = TraceValue(value);
    trace.tensors.push_back(std::move(x));
    return trace;
}

/// What reading `json` gives for its first tensor.
inline Tensor first_tensor(const TraceDocument& trace) { return elements(trace.tensors.at(0)); }

inline TraceDocument sample_trace() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    TraceDocument trace;
    TraceHeader& header = trace.header;
    header.producer = "hand";
    header.producer_version = "1.2";
    header.run = {.id = "mask",
                  .mode = "train",
                  .step = 3,
                  .seed = 18446744073709551615U,
                  .default_dtype = f32,
                  .threads = 2,
                  .flags = {"fma"}};
    header.capture = {.values = "small", .max_elements = 12, .stats = true, .timing = true};
    header.labels = {{"token", {"the", "c\"at", "\xC3", "\xE2\x82\xAC"}}};
    header.axis_labels = {{"query", "token"}, {"key", "token"}};
    header.dims = {{"T", 2}, {"H", 3}};
    header.opdefs = {{.name = "mask",
                      .version = 1,
                      .forward = "y = where(m, x, fill)",
                      .backward = "gx = where(m, gy, 0)",
                      .holds = {"y <= x"}}};
    trace.scopes = {
        {.name = "model", .path = "model", .kind = "module"},
        {.parent = 0, .name = "head", .path = "model.head", .kind = "module", .layer = 1}};

    TraceTensor x;
    x.name = "scores";
    x.key = "model.head/scores";
    x.role = TraceRole::param;
    x.shape = {2, 3};
    x.axes = {"query", "key"};
    x.grad = 2;
    x.value = TraceValue(tensor({{0.1, -2.5, 3}, {1e-8, 0.25, -0.0}}));
    x.stats = tensor_stats(x.value.data);
    x.noise = 1.5e-9;
    trace.tensors.push_back(x);

    TraceTensor y = x;
    y.name = "masked";
    y.key = "model.head/masked";
    y.role = TraceRole::activation;
    y.op = 0;
    y.grad = grad_no_path;
    y.noise.reset();
    y.value = TraceValue(tensor({{0.1, -infinity, infinity}, {1e-8, std::nan(""), -0.0}}));
    y.stats = tensor_stats(y.value.data);
    trace.tensors.push_back(y);

    TraceTensor gx = x;
    gx.key += ":grad";
    gx.role = TraceRole::grad;
    gx.op = 1;
    gx.grad = grad_not_recorded;
    gx.noise.reset();
    gx.stats.reset();
    gx.digest = tensor_digest(x.value.data);
    gx.value = {};
    gx.value.why = "more than 5 elements";
    trace.tensors.push_back(gx);

    TraceOp forward;
    forward.op = "mask";
    forward.scope = 1;
    forward.in = {{"x", 0}};
    forward.out = {{"y", 1}};
    forward.attrs = {{"fill", -infinity},
                     {"causal", true},
                     {"offset", std::int64_t{1}},
                     {"big", std::int64_t{9007199254740993}},
                     {"scale", 2.0},
                     {"name", std::string("tri")},
                     {"shape", std::vector<TraceAttributeValue>{std::int64_t{2}, std::int64_t{3}}}};
    forward.saved = {0};
    forward.file = "layers/mask.cpp";
    forward.line = 12;
    forward.start_ns = 100;
    forward.dur_ns = 250;
    forward.alloc = 24;
    forward.live = 48;
    forward.flops = 6.0;
    trace.ops.push_back(forward);

    TraceOp backward;
    backward.seq = 1;
    backward.pass = TracePass::backward;
    backward.op = "mask_vjp";
    backward.of = 0;
    backward.scope = 1;
    backward.in = {{"x", 0}};
    backward.out = {{"gx", 2}};
    trace.ops.push_back(backward);

    trace.diagnostics = {{.code = "nonfinite.born",
                          .severity = TraceSeverity::warning,
                          .op = 0,
                          .tensor = 1,
                          .counts = {{"nan", 1}, {"ninf", 1}},
                          .first = {0, 1},
                          .note = "not declared"}};
    trace.end = {.complete = false, .reason = "stopped by hand"};
    return trace;
}

}  // namespace glassgrad::testing
