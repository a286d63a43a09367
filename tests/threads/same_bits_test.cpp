// The same bits for any number of threads and from run to run, forward and backward: every row on
// inputs large enough to be split, and a graph like a transformer's.

#include "autograd/support/checks.hpp"

#include <limits>
#include <set>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

using In = std::span<const Variable>;

/// The number of threads that there was comes back.
class Threads {
  public:
    Threads() : before_(num_threads()) {}
    ~Threads() { set_num_threads(before_); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

  private:
    int before_;
};

/// x with every size above 1 multiplied: its elements over and over, a little smaller each time, so
/// that they keep their signs, and indices as they are.
Tensor enlarged(const Tensor& x, std::int64_t factor) {
    Shape shape = x.shape();
    for (int axis = 0; axis < shape.rank(); ++axis) {
        if (shape[axis] > 1) shape[axis] *= factor;
    }
    const Tensor wide = x.astype(f64);
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < values.size() && x.numel() > 0; ++i) {
        const double turn = 0.7548776662466927 * static_cast<double>(i);
        const double shrink = is_floating(x.dtype()) ? 1 - 0.1 * (turn - std::floor(turn)) : 1;
        values[i] = wide.values<double>()[i % static_cast<std::size_t>(x.numel())] * shrink;
    }
    return from_values(values, shape, x.dtype());
}

OpSample enlarged(OpSample call, std::int64_t factor) {
    for (Tensor& x : call.inputs) x = enlarged(x, factor);
    return call;
}

std::int64_t size_of(const OpSample& call) {
    const NoGrad off;
    std::vector<Variable> inputs(call.inputs.begin(), call.inputs.end());
    return call.apply(inputs).numel();
}

/// Makes some input of about 30,000 elements, unless the result (of `outer`, say) grows faster.
std::int64_t factor_for(const OpSample& call) {
    int rank = 0;
    for (const Tensor& x : call.inputs) rank = std::max(rank, x.rank());
    constexpr std::int64_t factors[] = {1, 12000, 90, 14, 6, 3};
    std::int64_t factor = rank < 6 ? factors[rank] : 2;
    const auto once = static_cast<double>(std::max<std::int64_t>(size_of(call), 1));
    const auto doubled = static_cast<double>(size_of(enlarged(call, 2)));
    const double growth = std::log2(std::max(1.0, doubled / once));
    while (factor > 2 && once * std::pow(static_cast<double>(factor), growth) > 1e6) factor /= 2;
    return factor;
}

/// The value of a call and all its gradients.
std::vector<Tensor> results(const OpSample& call) {
    std::vector<Variable> leaves;
    std::vector<Variable> wanted;
    for (const Tensor& each : call.inputs) {
        leaves.push_back(is_floating(each.dtype()) ? parameter(each) : Variable(each));
        if (leaves.back().requires_grad()) wanted.push_back(leaves.back());
    }
    const Variable y = call.apply(leaves);
    std::vector<Tensor> results{y.value()};
    if (!y.requires_grad()) return results;
    const Tensor cotangent = uneven(y.shape(), -1, 1, 3).astype(y.dtype());
    for (const Variable& g :
         grad({y}, wanted, {.grad_outputs = {Variable(cotangent)}, .allow_unused = true})) {
        results.push_back(g.defined() ? g.value() : Tensor());
    }
    return results;
}

void check_bits(const OpSample& call) {
    set_num_threads(1);
    const std::vector<Tensor> expected = results(call);
    for (const int threads : {1, 2, 4}) {
        set_num_threads(threads);
        const std::vector<Tensor> found = results(call);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            INFO("threads " << threads << ", result " << i);
            REQUIRE(found[i].defined() == expected[i].defined());
            if (found[i].defined()) CHECK(same_bits(found[i], expected[i]));
        }
    }
}

OpSample call(std::vector<Tensor> inputs, std::function<Variable(In)> f) {
    return {"", std::move(inputs), std::move(f)};
}

/// For rows whose samples say their sizes, which multiplied inputs do not fit.
std::vector<OpSample> calls_with_sizes() {
    const Tensor wide = uneven({210, 230});
    const Tensor tall = uneven({12, 70, 60});
    return {
        call({wide},
             [](In in) {
                 return reshape(in[0], {230, 210}) * 2.0;
             }),
        call({tall},
             [](In in) {
                 return sum_to(in[0], {70, 1});
             }),
        call({tall},
             [](In in) {
                 return sum_to(in[0], {12, 1, 60});
             }),
        call({uneven({70, 1})},
             [](In in) {
                 return broadcast_to(in[0], {12, 70, 60});
             }),
        call({wide},
             [](In in) {
                 return slice_scatter(in[0], {420, 230}, 0, {.step = 2});
             }),
        call({wide}, [](In in) { return slice(in[0], 1, {.start = -1, .stop = 3, .step = -2}); }),
        call({tall},
             [](In in) {
                 return permute(in[0], {2, 0, 1}) * 3.0;
             }),
        call({uneven({300, 170}), uneven({170, 190})}, [](In in) { return matmul(in[0], in[1]); }),
        call({uneven({9, 70, 60}), uneven({60, 80})}, [](In in) { return matmul(in[0], in[1]); }),
        call({uneven({100003})}, [](In in) { return sum(in[0]); }),
        call({uneven({100003})}, [](In in) { return mean(in[0] * in[0]); }),
        call({uneven({7, 30011})}, [](In in) { return sum(in[0], {.axes = {0}}); }),
        // Few heads: the keys are cut into parts.
        call({uneven({6, 150, 8}), uneven({2, 160, 8}, -1, 1, 2), uneven({2, 160, 9}),
              uneven({160})},
             [](In in) {
                 CounterRng rng(3);
                 return scaled_dot_product_attention(in[0], in[1], in[2],
                                                     {.bias = in[3],
                                                      .causal = true,
                                                      .dropout_p = 0.2,
                                                      .rng = &rng,
                                                      .form = AttentionForm::tiled,
                                                      .tile = 32});
             }),
    };
}

Variable masked(const Variable& scores) {
    const std::int64_t n = scores.size(-1);
    Tensor allowed = Tensor::empty({n, n}, boolean);
    bool* out = allowed.mutable_data<bool>();
    for (std::int64_t i = 0; i < n * n; ++i) out[i] = i % n <= i / n;
    return where(Variable(allowed), scores,
                 Variable(full({}, -std::numeric_limits<double>::infinity(), scores.dtype())));
}

/// Two layers on 3 texts of 70 positions of 64 numbers.
OpSample transformer(DType dtype, bool checkpointed) {
    std::vector<Tensor> inputs{uneven({3, 70, 64}).astype(dtype)};
    for (int i = 0; i < 12; ++i) inputs.push_back(uneven({64, 64}, -0.2, 0.2, i).astype(dtype));
    const auto layer = [](In in) {
        const Variable& h = in[0];
        const Variable q = matmul(h, in[1]);
        const Variable k = matmul(h, in[2]);
        const Variable scores = masked(matmul(q, k, {.transpose_b = true}) * 0.125);
        const Variable mixed = h + matmul(matmul(softmax(scores), matmul(h, in[3])), in[4]);
        const Variable centred = mixed - mean(mixed, {.axes = {-1}, .keepdims = true});
        return mixed + matmul(relu(matmul(centred, in[5])), in[6]);
    };
    return call(std::move(inputs), [=](In in) {
        std::vector<Variable> first(in.begin(), in.begin() + 7);
        std::vector<Variable> second{checkpointed ? checkpoint(layer, first) : layer(first)};
        second.insert(second.end(), in.begin() + 7, in.end());
        return mean(log_softmax(layer(second)));
    });
}

}  // namespace

TEST_CASE("every op has the same bits on 1, 2 and 4 threads and from run to run") {
    const Threads restore;
    std::set<std::string_view> large;
    std::size_t rows = 0;
    for (const OpRow* row : op_table()) {
        if (!row->samples) continue;
        ++rows;
        int runs = 0;
        for (const OpSample& sample : row->samples()) {
            INFO(row->name << ": " << sample.label);
            const bool worth = std::any_of(sample.inputs.begin(), sample.inputs.end(),
                                           [](const Tensor& x) { return x.numel() > 1; });
            if (!worth || ++runs > 6) continue;
            bool fits = true;
            OpSample wide;
            try {
                set_num_threads(1);
                wide = enlarged(sample, factor_for(sample));
                results(wide);
            } catch (const Error&) {
                fits = false;
            }
            check_bits(fits ? wide : sample);
            if (fits) large.insert(row->name);
        }
    }
    CHECK(large.size() * 4 > rows * 3);
}

TEST_CASE("ops with sizes in their calls have the same bits on 1, 2 and 4 threads") {
    const Threads restore;
    for (const OpSample& each : calls_with_sizes()) check_bits(each);
}

TEST_CASE("a transformer has the same bits on 1, 2 and 4 threads, with checkpoints, too") {
    const Threads restore;
    for (const DType dtype : {f32, f64}) {
        check_bits(transformer(dtype, false));
        check_bits(transformer(dtype, true));
        const auto plain = results(transformer(dtype, false));
        const auto checkpointed = results(transformer(dtype, true));
        for (std::size_t i = 0; i < plain.size(); ++i) CHECK(same_bits(plain[i], checkpointed[i]));
    }
}
