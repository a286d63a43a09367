#pragma once
// What is compared with PyTorch: every sample of every row, and a few functions made of many ops.
// list_samples.cpp hands them to make_op_cases.py, and ops_test.cpp computes them.

#include <glassgrad/autograd.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace glassgrad::testing {

struct ParitySample {
    std::string op;
    OpSample sample;
    bool differentiable = true;
};

/// Attention with a causal mask, written out.
inline Variable causal_attention(std::span<const Variable> x) {
    const Variable& q = x[0];
    const std::int64_t length = q.size(-2);
    Tensor mask = zeros({length, length}, boolean);
    for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) mask.set({i, j}, 1);
    }
    const double root = std::sqrt(static_cast<double>(q.size(-1)));
    const Variable scores = matmul(q, x[1], {.transpose_b = true}) / root;
    const Variable weights = softmax(where(mask, scores, Variable(full({}, -1e30, f64))));
    const Variable heads = permute(matmul(weights, x[2]), {0, 2, 1, 3});
    return matmul(reshape(heads, {q.size(0), length, -1}), x[3]);
}

inline Variable normalized(std::span<const Variable> x) {
    const ReduceOptions last{.axes = {-1}, .keepdims = true};
    const Variable centred = x[0] - mean(x[0], last);
    return centred / sqrt(mean(centred * centred, last) + 1e-5) * x[1] + x[2];
}

inline Variable perceptron(std::span<const Variable> x) {
    const Variable hidden = tanh(matmul(x[0], x[1]) + x[2]);
    return mean(log_softmax(matmul(hidden, x[3]) + x[4]), {.axes = {0}});
}

inline std::vector<ParitySample> parity_samples() {
    std::vector<ParitySample> list;
    for (const OpRow* row : op_table()) {
        if (!row->samples) continue;
        for (OpSample& sample : row->samples()) {
            list.push_back({std::string(row->name), std::move(sample), !row->backward.empty()});
        }
    }
    const auto composed = [&](std::string label, const std::vector<Shape>& shapes,
                              Variable (*f)(std::span<const Variable>), std::string torch) {
        std::vector<Tensor> inputs;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            inputs.push_back(RandomState(static_cast<std::int64_t>(i)).uniform(-2, 2, shapes[i]));
        }
        list.push_back({"composed", {std::move(label), inputs, f, std::move(torch)}});
    };
    composed("causal attention", {{2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 6}, {18, 7}},
             causal_attention,
             "(torch.softmax(torch.where(torch.ones(5, 5).tril().bool(), a @ b.mT / 2, "
             "torch.tensor(-1e30)), -1) @ c).permute(0, 2, 1, 3).reshape(2, 5, -1) @ d");
    composed("layer norm", {{2, 3, 5}, {5}, {5}}, normalized, "F.layer_norm(a, (5,), b, c)");
    composed("perceptron", {{6, 3}, {3, 5}, {5}, {5, 4}, {4}}, perceptron,
             "torch.log_softmax(torch.tanh(a @ b + c) @ d + e, -1).mean(0)");
    return list;
}

}  // namespace glassgrad::testing
