// The worked example in libtorch's C++ interface, behind C functions: its headers take ten seconds
// and are kept out of every other file.

#include "peers.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace {

struct Example {
    torch::Tensor x, w_q, w_k, w_v, gy, y;
};
Example& example() {
    static Example instance;
    return instance;
}

torch::Tensor forward() {
    const Example& e = example();
    const torch::Tensor query = torch::matmul(e.x, e.w_q);
    const torch::Tensor key = torch::matmul(e.x, e.w_k);
    const torch::Tensor value = torch::matmul(e.x, e.w_v);
    const torch::Tensor scores = torch::matmul(query, key.t());
    const torch::Tensor weights = torch::softmax(scores * (1 / std::sqrt(double{D_K})), -1);
    return torch::matmul(weights, value);
}

void copy(const torch::Tensor& from, double* to) {
    const torch::Tensor dense = from.detach().contiguous();
    std::copy_n(dense.data_ptr<double>(), dense.numel(), to);
}

}  // namespace

const char* torch_version() { return TORCH_VERSION; }

void torch_setup(const AttentionInputs* in) {
    at::set_num_threads(1);
    const auto given = [](const double* values, int rows, int columns) {
        return torch::from_blob(const_cast<double*>(values), {rows, columns}, torch::kFloat64)
            .clone();
    };
    Example& e = example();
    e.x = given(in->x, TOKENS, D_MODEL).requires_grad_();
    e.w_q = given(in->w_q, D_MODEL, D_K).requires_grad_();
    e.w_k = given(in->w_k, D_MODEL, D_K).requires_grad_();
    e.w_v = given(in->w_v, D_MODEL, D_K).requires_grad_();
    e.gy = given(in->gy, TOKENS, D_K);
}

void torch_forward() {
    const torch::NoGradGuard guard;
    example().y = forward();
}

void torch_forward_backward() {
    Example& e = example();
    for (torch::Tensor* each : {&e.x, &e.w_q, &e.w_k, &e.w_v}) each->mutable_grad().reset();
    e.y = forward();
    e.y.backward(e.gy);
}

void torch_results(AttentionResults* out) {
    const Example& e = example();
    copy(e.y, out->y);
    copy(e.x.grad(), out->gx);
    copy(e.w_q.grad(), out->gw_q);
    copy(e.w_k.grad(), out->gw_k);
    copy(e.w_v.grad(), out->gw_v);
}
