// einsum. The gradient of an operand is an einsum again, of gy and the other operand, once three
// things are undone: axes that only broadcast, letters that were summed in that operand alone, and
// diagonals.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/einsum_equation.hpp>

#include "family.hpp"

#include <initializer_list>

namespace glassgrad {

using detail::EinsumEquation;
using detail::find;
using detail::Samples;
using detail::spread;

namespace {

Samples einsum_samples() {
    Samples samples;
    const auto two = [&](const std::string& equation, const Shape& a, const Shape& b) {
        samples.push_back(detail::sample(
            equation + " of " + to_string(a) + " and " + to_string(b), spread(a, {-2, 2}, 1),
            spread(b, {-2, 2}, 2),
            [equation](const Variable& x, const Variable& y) { return einsum(equation, x, y); },
            "torch.einsum('" + equation + "', a, b)"));
    };
    const auto one = [&](const std::string& equation, const Shape& a) {
        samples.push_back(detail::sample(
            equation + " of " + to_string(a), spread(a, {-2, 2}, 3),
            [equation](const Variable& x) { return einsum(equation, x); },
            "torch.einsum('" + equation + "', a)"));
    };
    two("ij,jk->ik", {2, 3}, {3, 4});
    two("ij,jk", {2, 3}, {3, 4});
    two("ij,kj->ki", {2, 3}, {4, 3});
    two("bqhd,bkhd->bhqk", {2, 3, 2, 4}, {2, 5, 2, 4});
    two("i,j->ij", {2}, {3});
    two("i,i->", {3}, {3});
    two("ij,ij->ij", {2, 3}, {2, 3});
    two(",ij->ji", {}, {2, 3});
    two("ijk,jl->il", {2, 3, 4}, {3, 5});  // k is summed in a alone
    two("ij,kl->jl", {2, 3}, {4, 5});      // i and k alone
    two("iij,jk->ki", {2, 2, 3}, {3, 4});  // a diagonal
    two("ij,jkj->ik", {2, 3}, {3, 2, 3});  // a diagonal of b that is summed
    two("iik,jk->j", {2, 2, 3}, {4, 3});   // a diagonal, summed in a alone
    two("...ij,...jk->...ik", {5, 2, 3}, {3, 4});
    two("...ij,...jk->...ik", {5, 1, 2, 3}, {4, 3, 2});
    two("i...,i...->...", {3, 2}, {3, 1});
    two("i...j,j...->...i", {2, 1, 3}, {3, 4});
    two("ij,jk->ik", {2, 0}, {0, 4});
    two("ij,jk->ik", {0, 3}, {3, 4});
    one("ij->ji", {2, 3});
    one("ij->j", {2, 3});
    one("ij->", {2, 3});
    one("ba", {2, 3});
    one("ii->i", {3, 3});
    one("ii", {3, 3});
    one("iij->ji", {2, 2, 3});
    one("...ij->...ji", {4, 2, 3});
    one("->", {});
    one("ij->i", {2, 0});
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "einsum",
     .forward = "y[result letters] = sum over all other letters of a[its letters] b[its letters]",
     .backward = "ga[letters of a] = sum over all other letters of gy[result letters] b[its "
                 "letters]; gb[letters of b] = sum over all other letters of gy[result letters] "
                 "a[its letters]",
     .domain = "one or two operands; letters do not broadcast, '...' does",
     .inputs = "a b",
     .torch = "torch.einsum",
     .samples = einsum_samples},
};

constexpr char once = EinsumEquation::once;

bool has(const std::string& letters, char letter) {
    return letters.find(letter) != std::string::npos;
}

/// An operand's term and shape without the axes that only broadcast.
struct Used {
    std::string letters;
    Shape shape;

    Used(const std::string& term, const Shape& whole) {
        for (std::size_t i = 0; i < term.size(); ++i) {
            if (term[i] == once) continue;
            letters += term[i];
            shape.push_back(whole[static_cast<int>(i)]);
        }
    }
};

/// The elements of `distinct`, one axis a letter, on the diagonal where einsum read them.
template <class V>
V on_diagonal(const V& distinct, const std::string& letters, const Used& operand) {
    const std::int64_t count = operand.shape.numel();
    const Tensor places =
        einsum(operand.letters + "->" + letters, reshape(arange(count), operand.shape));
    const std::int64_t read = places.numel();
    const V flat = index_add(V(zeros({count}, distinct.dtype())), 0, reshape(places, {read}),
                             reshape(distinct, {read}));
    return reshape(flat, operand.shape);
}

/// What becomes of gy in the gradient of one operand.
struct Pullback {
    std::string own;     ///< the operand's term
    std::string other;   ///< the other's; empty where there is none
    std::string result;  ///< the term of gy
    Shape shape;         ///< of the operand

    /// `product(letters)`: einsum of gy and the other operand that leaves these letters.
    template <class Product>
    auto operator()(const Product& product) const {
        const Used used(own, shape);
        std::string distinct;  // letters of the operand, each once
        std::string left;      // those that gy or the other operand has
        Shape full;
        Shape narrow;  // `full` with 1 where the operand alone was summed
        for (std::size_t i = 0; i < used.letters.size(); ++i) {
            const char c = used.letters[i];
            if (has(distinct, c)) continue;
            const bool found = has(result, c) || has(other, c);
            if (found) left += c;
            distinct += c;
            full.push_back(used.shape[static_cast<int>(i)]);
            narrow.push_back(found ? full.back() : 1);
        }
        auto gx = product(left);
        if (left != distinct) gx = broadcast_to(reshape(gx, narrow), full);
        if (distinct != used.letters) gx = on_diagonal(gx, distinct, used);
        return gx.shape() == shape ? gx : reshape(gx, shape);
    }
};

/// The rule for one of two operands; it reads the other.
auto rule_beside(const Pullback& pullback, const Shape& other_shape) {
    return [pullback, other = Used(pullback.other, other_shape)](const auto& gy, const auto& x) {
        return pullback([&](const std::string& letters) {
            return einsum(pullback.result + "," + other.letters + "->" + letters, gy,
                          reshape(x, other.shape));
        });
    };
}

}  // namespace

std::span<const OpRow> detail::einsum_rows() { return rows; }

Variable einsum(std::string_view equation, const Variable& a, const Variable& b) {
    Tensor value = detail::computed(
        find(rows, "einsum"), [&] { return einsum(equation, a.value(), b.value()); }, a, b);
    const EinsumEquation terms(equation, a.shape(), &b.shape());
    return record(
        find(rows, "einsum"), std::move(value),
        [&] {
            return Attributes{{"equation", std::string(equation).c_str()}};
        },
        edge(a, rule_beside({terms.a, terms.b, terms.result, a.shape()}, b.shape()), b),
        edge(b, rule_beside({terms.b, terms.a, terms.result, b.shape()}, a.shape()), a));
}

Variable einsum(std::string_view equation, const Variable& a) {
    Tensor value = detail::computed(
        find(rows, "einsum"), [&] { return einsum(equation, a.value()); }, a);
    const EinsumEquation terms(equation, a.shape(), nullptr);
    const Pullback pullback{terms.a, "", terms.result, a.shape()};
    return record(
        find(rows, "einsum"), std::move(value),
        [&] {
            return Attributes{{"equation", std::string(equation).c_str()}};
        },
        edge(a, [pullback](const auto& gy) {
            return pullback([&](const std::string& letters) {
                return einsum(pullback.result + "->" + letters, gy);
            });
        }));
}

}  // namespace glassgrad
