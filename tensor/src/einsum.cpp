// einsum: diagonals are read, letters of one operand alone are summed, and what is left is one
// stack of matrix products, or a product element by element where no letter is summed.

#include <glassgrad/tensor/detail/einsum_equation.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "strided_copy.hpp"

#include <algorithm>
#include <vector>

namespace glassgrad {

using detail::EinsumEquation;
using detail::fail;
using detail::hint;

namespace {

/// A tensor with a letter for each axis, none twice.
struct Named {
    Tensor x;
    std::string letters;

    bool has(char letter) const { return letters.find(letter) != std::string::npos; }
    std::int64_t size(char letter) const {
        return x.shape()[static_cast<int>(letters.find(letter))];
    }
};

/// x without axes of `once`, and with one axis for each letter that appears several times.
Named diagonal(const Tensor& x, const std::string& letters) {
    const detail::Strides from = detail::contiguous_strides(x.shape());
    Named result;
    Shape shape;
    detail::Strides strides{};
    for (std::size_t i = 0; i < letters.size(); ++i) {
        if (letters[i] == EinsumEquation::once) continue;
        const std::size_t seen = result.letters.find(letters[i]);
        if (seen != std::string::npos) {
            strides[seen] += from[i];
            continue;
        }
        strides[result.letters.size()] = from[i];
        result.letters += letters[i];
        shape.push_back(x.shape()[static_cast<int>(i)]);
    }
    result.x = shape.numel() == x.numel() ? x.with_shape(shape)
                                          : detail::strided_copy(x, shape, strides, 0);
    return result;
}

/// Letters that `keep` does not have are summed.
Named summed(const Named& named, const std::string& keep) {
    std::vector<std::int64_t> axes;
    Named result;
    for (std::size_t i = 0; i < named.letters.size(); ++i) {
        if (keep.find(named.letters[i]) == std::string::npos) {
            axes.push_back(static_cast<std::int64_t>(i));
        } else {
            result.letters += named.letters[i];
        }
    }
    result.x = axes.empty() ? named.x : sum(named.x, {.axes = Axes(axes)});
    return result;
}

Tensor ordered(const Named& named, const std::string& letters) {
    std::vector<std::int64_t> axes;
    for (const char c : letters) axes.push_back(static_cast<std::int64_t>(named.letters.find(c)));
    return permute(named.x, axes);
}

std::int64_t numel(const Named& named, const std::string& letters) {
    std::int64_t count = 1;
    for (const char c : letters) count *= named.size(c);
    return count;
}

/// Letters of two operands by what becomes of them.
struct Roles {
    std::string batch;  ///< in both and in the result
    std::string inner;  ///< in both, summed
    std::string left;   ///< in a and the result
    std::string right;  ///< in b and the result

    Roles(const Named& a, const Named& b, const std::string& result) {
        for (const char c : a.letters) {
            const bool shown = result.find(c) != std::string::npos;
            (!b.has(c) ? left : shown ? batch : inner) += c;
        }
        for (const char c : b.letters) {
            if (!a.has(c)) right += c;
        }
    }
};

/// An operand as (batch, rows, columns), and whether rows and columns come exchanged: what lies in
/// that order already is not copied.
struct Stack {
    Tensor x;
    bool transposed;

    Stack(const Named& named, const std::string& batch, const std::string& rows,
          const std::string& columns)
        : transposed(named.letters == batch + columns + rows) {
        const std::int64_t r = numel(named, rows);
        const std::int64_t c = numel(named, columns);
        const Tensor in_order = transposed ? named.x : ordered(named, batch + rows + columns);
        x = reshape(in_order, {numel(named, batch), transposed ? c : r, transposed ? r : c});
    }
};

/// Result axes in the order batch, left, right.
Shape product_shape(const Named& a, const Named& b, const Roles& roles) {
    Shape shape;
    for (const char c : roles.batch + roles.left) shape.push_back(a.size(c));
    for (const char c : roles.right) shape.push_back(b.size(c));
    return shape;
}

Tensor product(const Named& a, const Named& b, const Roles& roles) {
    const Shape shape = product_shape(a, b, roles);
    checked_numel("einsum", shape, a.x.dtype());
    if (roles.inner.empty()) {
        const std::int64_t batch = numel(a, roles.batch);
        const Tensor x = ordered(a, roles.batch + roles.left);
        const Tensor y = ordered(b, roles.batch + roles.right);
        return mul(reshape(x, {batch, numel(a, roles.left), 1}),
                   reshape(y, {batch, 1, numel(b, roles.right)}))
            .with_shape(shape);
    }
    const Stack x(a, roles.batch, roles.left, roles.inner);
    const Stack y(b, roles.batch, roles.inner, roles.right);
    return matmul(x.x, y.x, {.transpose_a = x.transposed, .transpose_b = y.transposed})
        .with_shape(shape);
}

void require_number(std::string_view equation, const Tensor& x) {
    if (x.dtype() != boolean) return;
    fail<TypeError>(hint("convert with astype(i64) or astype(f32)"),
                    "einsum: \"{}\" needs numbers, got boolean {}", equation, x.shape());
}

}  // namespace

Tensor einsum(std::string_view equation, const Tensor& a, const Tensor& b) {
    detail::require_defined("einsum", a);
    detail::require_defined("einsum", b);
    if (a.dtype() != b.dtype()) {
        fail<TypeError>(hint("convert one with astype"),
                        "einsum: \"{}\": {} {} and {} {} have different types", equation, a.dtype(),
                        a.shape(), b.dtype(), b.shape());
    }
    require_number(equation, a);
    const EinsumEquation terms(equation, a.shape(), &b.shape());
    const Named left = summed(diagonal(a, terms.a), terms.b + terms.result);
    const Named right = summed(diagonal(b, terms.b), terms.a + terms.result);
    const Roles roles(left, right, terms.result);
    return ordered({product(left, right, roles), roles.batch + roles.left + roles.right},
                   terms.result);
}

Tensor einsum(std::string_view equation, const Tensor& a) {
    detail::require_defined("einsum", a);
    require_number(equation, a);
    const EinsumEquation terms(equation, a.shape(), nullptr);
    return ordered(summed(diagonal(a, terms.a), terms.result), terms.result);
}

}  // namespace glassgrad
