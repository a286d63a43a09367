// matmul: leading axes broadcast, transposed operands are read in place. Work is split over the
// batch, or within large products; the split depends on the shapes alone.

#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/detail/products.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "gemm.hpp"
#include "parallel.hpp"
#include "strided.hpp"

#include <algorithm>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::Operand;

namespace {

constexpr std::int64_t parallel_flops = std::int64_t{1} << 20;

struct Sizes {
    std::int64_t m, k, n;
};

/// Leading axes of a stack of matrices.
Shape batch_of(const Shape& shape) {
    return Shape(std::span<const std::int64_t>(shape.begin(), shape.end() - 2));
}

[[noreturn]] void fail_inner(const Tensor& a, const Tensor& b, const MatmulOptions& options,
                             const Sizes& sizes, std::int64_t k_of_b) {
    const auto shown = [](const Tensor& x, bool transposed) {
        return fmt::format("{}{}", x.shape(), transposed ? " transposed" : "");
    };
    const bool likely =
        a.rank() >= 2 && b.rank() >= 2 &&
        sizes.k == (options.transpose_b ? b.shape()[b.rank() - 2] : b.shape().back());
    const char* fix = options.transpose_b ? "do not transpose b" : "transpose b";
    fail<ShapeError>(detail::Hint{likely ? fix : ""},
                     "matmul: cannot multiply {} by {}: inner sizes {} and {} differ",
                     shown(a, options.transpose_a), shown(b, options.transpose_b), sizes.k, k_of_b);
}

/// Where element `index` of `batch` begins, for an operand with these strides (in matrices).
std::int64_t batch_offset(std::int64_t index, const Shape& batch, const detail::Strides& strides) {
    std::int64_t offset = 0;
    for (int axis = batch.rank() - 1; axis >= 0; --axis) {
        offset += index % batch[axis] * strides[static_cast<std::size_t>(axis)];
        index /= batch[axis];
    }
    return offset;
}

template <class T>
void products(const Sizes& s, const Tensor& a, const Tensor& b, const MatmulOptions& options,
              const Shape& batch, Tensor& result) {
    const Operand<T> left{a.data<T>(), a.shape().back(), options.transpose_a};
    const Operand<T> right{b.data<T>(), b.shape().back(), options.transpose_b};
    T* out = result.mutable_data<T>();
    const std::int64_t count = batch.numel();
    if (count == 1) {
        detail::gemm(s.m, s.n, s.k, left, right, {out, s.n});
        return;
    }
    const detail::Strides a_steps = detail::broadcast_strides(batch_of(a.shape()), batch);
    const detail::Strides b_steps = detail::broadcast_strides(batch_of(b.shape()), batch);
    const std::int64_t flops = std::max<std::int64_t>(1, s.m * s.n * s.k);
    const auto run = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            Operand<T> x = left;
            Operand<T> y = right;
            x.data += batch_offset(i, batch, a_steps) * s.m * s.k;
            y.data += batch_offset(i, batch, b_steps) * s.k * s.n;
            detail::gemm<T>(s.m, s.n, s.k, x, y, {out + i * s.m * s.n, s.n});
        }
    };
    // Large ones are cut themselves.
    if (flops * count < parallel_flops / 4 || flops >= 16 * parallel_flops) {
        run(0, count);
    } else {
        detail::for_chunks(count, std::max<std::int64_t>(1, parallel_flops / 8 / flops), run);
    }
}

/// Leading axes of the product. Throws ShapeError with the whole shapes.
Shape common_batch(const Tensor& a, const Tensor& b) {
    const Shape left = batch_of(a.shape());
    const Shape right = batch_of(b.shape());
    try {
        return broadcast_shapes("matmul", left, right);
    } catch (const ShapeError&) {
        fail<ShapeError>(
            hint("leading axes must agree or be 1, counted from the right"),
            "matmul: cannot multiply {} by {}: leading axes {} and {} do not broadcast", a.shape(),
            b.shape(), left, right);
    }
}

template <class T>
[[gnu::noinline]] Tensor of_two(const Sizes& s, const Tensor& a, const Tensor& b,
                                const MatmulOptions& options) {
    Tensor result = Tensor::empty_matrix(s.m, s.n, dtype_of<T>());
    detail::gemm<T>(s.m, s.n, s.k, {a.data<T>(), a.shape()[1], options.transpose_a},
                    {b.data<T>(), b.shape()[1], options.transpose_b},
                    {result.mutable_data<T>(), s.n});
    return result;
}

Tensor of_two_matrices(const Sizes& s, const Tensor& a, const Tensor& b,
                       const MatmulOptions& options) {
    return detail::with_number("matmul", a.dtype(), [&](auto type) {
        return of_two<typename decltype(type)::type>(s, a, b, options);
    });
}

Tensor matrix_product(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
    const int ra = a.rank();
    const int rb = b.rank();
    const Sizes s{a.shape()[ra - (options.transpose_a ? 1 : 2)],
                  a.shape()[ra - (options.transpose_a ? 2 : 1)],
                  b.shape()[rb - (options.transpose_b ? 2 : 1)]};
    const std::int64_t k_of_b = b.shape()[rb - (options.transpose_b ? 1 : 2)];
    if (s.k != k_of_b) fail_inner(a, b, options, s, k_of_b);

    if (ra == 2 && rb == 2) return of_two_matrices(s, a, b, options);
    // A stack times one matrix is one tall matrix times that matrix.
    if (ra > 2 && rb == 2 && !options.transpose_a) {
        Shape shape = a.shape();
        const std::int64_t rows = s.k == 0 ? batch_of(shape).numel() * s.m : a.numel() / s.k;
        shape[ra - 1] = s.n;
        return matrix_product(a.with_shape({rows, s.k}), b, options).with_shape(shape);
    }
    const Shape batch = common_batch(a, b);
    Shape shape = batch;
    shape.push_back(s.m);
    shape.push_back(s.n);
    Tensor result = Tensor::empty(shape, a.dtype());
    detail::with_number("matmul", a.dtype(), [&](auto type) {
        products<typename decltype(type)::type>(s, a, b, options, batch, result);
    });
    return result;
}

[[gnu::noinline]] void fail_pair(std::string_view op, const Tensor& a, const Tensor& b) {
    detail::require_defined(op, a);
    detail::require_defined(op, b);
    fail<TypeError>(hint("convert one with astype"), "{}: {} {} and {} {} have different types", op,
                    a.dtype(), a.shape(), b.dtype(), b.shape());
}

void check_pair(std::string_view op, const Tensor& a, const Tensor& b) {
    if (a.defined() && b.defined() && a.dtype() == b.dtype()) [[likely]]
        return;
    fail_pair(op, a, b);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
    check_pair("matmul", a, b);
    if (a.rank() == 2 && b.rank() == 2) {
        const Sizes s{a.shape()[options.transpose_a ? 1 : 0],
                      a.shape()[options.transpose_a ? 0 : 1],
                      b.shape()[options.transpose_b ? 0 : 1]};
        if (s.k == b.shape()[options.transpose_b ? 1 : 0]) return of_two_matrices(s, a, b, options);
    }
    if (a.rank() >= 2 && b.rank() >= 2) return matrix_product(a, b, options);
    if (a.rank() == 0 || b.rank() == 0) {
        fail<ShapeError>(hint("use mul or scale for numbers"),
                         "matmul: needs at least one axis, got {} and {}", a.shape(), b.shape());
    }
    if ((a.rank() == 1 && options.transpose_a) || (b.rank() == 1 && options.transpose_b)) {
        fail<ShapeError>("matmul: a vector cannot be transposed, got {} and {}", a.shape(),
                         b.shape());
    }
    // A vector is a row on the left and a column on the right; its axis goes again afterwards.
    const int ra = a.rank();
    const int rb = b.rank();
    const std::int64_t ka = a.shape()[ra - (options.transpose_a ? 2 : 1)];
    const std::int64_t kb = b.shape()[rb - (rb == 1 || options.transpose_b ? 1 : 2)];
    if (ka != kb) fail_inner(a, b, options, {0, ka, 0}, kb);
    const Tensor result = matrix_product(ra == 1 ? a.with_shape({1, ka}) : a,
                                         rb == 1 ? b.with_shape({kb, 1}) : b, options);
    Shape shape = result.shape();
    if (rb == 1) shape.erase(shape.rank() - 1);
    if (ra == 1) shape.erase(shape.rank() - (rb == 1 ? 1 : 2));
    return result.with_shape(shape);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    check_pair("linear", x, weight);
    if (bias.defined()) check_pair("linear", x, bias);
    const auto fits = [&] {
        if (x.rank() < 1 || weight.rank() != 2 || x.shape().back() != weight.shape()[1]) {
            return false;
        }
        return !bias.defined() || (bias.rank() == 1 && bias.shape()[0] == weight.shape()[0]);
    };
    if (!fits()) {
        fail<ShapeError>(hint("x is (..., in), weight (out, in), bias (out,)"),
                         "linear: x {}, weight {} and bias {} do not fit together", x.shape(),
                         weight.shape(), bias.defined() ? to_string(bias.shape()) : "none");
    }
    Shape shape = x.shape();
    shape[shape.rank() - 1] = weight.shape()[0];
    Tensor result = Tensor::empty(shape, x.dtype());
    const std::int64_t n = weight.shape()[0];
    const std::int64_t k = weight.shape()[1];
    detail::with_float("linear", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if (result.numel() == 0) return;
        detail::gemm<T>(
            result.numel() / n, n, k, {x.data<T>(), k, false}, {weight.data<T>(), k, true},
            {result.mutable_data<T>(), n, false, bias.defined() ? bias.data<T>() : nullptr});
    });
    return result;
}

detail::LinearGradients detail::linear_gradients(const Tensor& x, const Tensor& weight,
                                                 const Tensor& gy, const LinearInputs& wanted) {
    LinearGradients result;
    const std::int64_t n = gy.shape().back();
    std::int64_t rows = 1;
    for (int i = 0; i + 1 < gy.rank(); ++i) rows *= gy.shape()[i];
    with_float("linear", gy.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* g = gy.data<T>();
        if (wanted.x) {
            const std::int64_t k = weight.shape()[1];
            Shape shape = gy.shape();
            shape[shape.rank() - 1] = k;
            result.x = Tensor::empty(shape, gy.dtype());
            gemm<T>(rows, k, n, {g, n, false}, {weight.data<T>(), k, false},
                    {result.x.mutable_data<T>(), k});
        }
        if (wanted.weight) {
            const std::int64_t k = x.shape().back();
            // As weighted_sum looks for what isn't finite: in the smaller of operand and result.
            const bool look_first = rows < n;
            bool finite = look_first && all_finite(x);
            if (finite || !look_first) {
                result.weight = Tensor::empty_matrix(n, k, gy.dtype());
                gemm<T>(n, k, rows, {g, n, true}, {x.data<T>(), k, false},
                        {result.weight.mutable_data<T>(), k});
                finite = finite || all_finite(result.weight) || all_finite(x);
            }
            if (!finite) {
                result.weight = weighted_sum(gy.with_shape({rows, n}), x.with_shape({rows, k}),
                                             {.transpose_weights = true});
            }
        }
    });
    if (wanted.bias) result.bias = sum_to(gy, {n});
    return result;
}

void detail::check_bmm(const Tensor& left, const Tensor& right) {
    check_pair("bmm", left, right);
    const Shape& a = left.shape();
    const Shape& b = right.shape();
    if (a.rank() != 3 || b.rank() != 3) {
        fail<ShapeError>(hint("matmul takes other ranks, and broadcasts"),
                         "bmm: needs (batch, m, k) and (batch, k, n), got {} and {}", a, b);
    }
    if (a[0] != b[0]) {
        fail<ShapeError>(hint("matmul broadcasts"),
                         "bmm: cannot multiply {} by {}: batch sizes {} and {} differ", a, b, a[0],
                         b[0]);
    }
    if (a[2] != b[1]) {
        fail<ShapeError>(detail::Hint{a[2] == b[2] ? "transpose b" : ""},
                         "bmm: cannot multiply {} by {}: inner sizes {} and {} differ", a, b, a[2],
                         b[1]);
    }
}

void detail::check_outer(const Tensor& a, const Tensor& b) {
    check_pair("outer", a, b);
    if (a.rank() == 1 && b.rank() == 1) return;
    fail<ShapeError>(hint("reshape to (-1,)"), "outer: needs two vectors, got {} and {}", a.shape(),
                     b.shape());
}

Tensor bmm(const Tensor& a, const Tensor& b) {
    detail::check_bmm(a, b);
    return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
    detail::check_outer(a, b);
    return matmul(a.with_shape({a.numel(), 1}), b.with_shape({1, b.numel()}));
}

}  // namespace glassgrad
