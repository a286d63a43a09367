// What functions of shapes, indices and index letters say of calls that make no sense.

#include <glassgrad/tensor.hpp>

#include "tensor/support/wrong.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

const Tensor a34 = ones({3, 4});
const Tensor a231 = ones({2, 3, 1});
const Tensor flags = ones({3, 4}, boolean);

Tensor whole(const NestedList& values) { return tensor(values, i64); }

}  // namespace

TEST_CASE("axes that cannot come or go are named") {
    check_all<ShapeError>({
        {[] { squeeze(a231, 1); },
         "squeeze: axis 1 of shape (2, 3, 1) has size 3; only axes of size 1 can go; select drops "
         "an axis at an index"},
        {[] {
             unsqueeze(ones({1, 1, 1, 1, 1, 1, 1, 1}), 0);
         },
         "unsqueeze: (1, 1, 1, 1, 1, 1, 1, 1) has 8 axes, no room for another"},
        {[] { expand(a34, {4}); },
         "expand: (4,) names 1 axes, (3, 4) has 2; new axes go to the left, none can go"},
        {[] {
             expand(a34, {-1, 3, 4});
         },
         "expand: -1 at axis 0 of (-1, 3, 4) keeps a size that (3, 4) does not have; a new axis "
         "needs its size"},
        {[] {
             expand(a34, {5, -1});
         },
         "expand: (3, 4) does not expand to (5, -1): sizes 3 and 5 differ at axis 0; only axes of "
         "size 1 expand; -1 keeps a size"},
        {[] {
             expand(a34, {-2, 4});
         },
         "expand: size -2 in (-2, 4) is negative"},
        {[] {
             split(a34, {1, 4}, 0);
         },
         "split: sizes (1, 4) do not make up axis 0 of shape (3, 4); sizes must add up to 3"},
        {[] {
             pad(a34, {{1, 1}});
         },
         "pad: 1 widths given for shape (3, 4), which has 2 axes; give one (before, after) an "
         "axis, the first axis first"},
        {[] {
             pad(ones({3}), {{0, 9223372036854775807}});
         },
         "pad: widths 0 and 9223372036854775807 of axis 0 are too large"},
        {[] { tril(ones({3})); }, "tril: needs two axes, shape (3,) has 1"},
        {[] { triu(ones({})); }, "triu: needs two axes, shape () has 0"},
        {[] { repeat(a34, {2}); },
         "repeat: 1 counts given for shape (3, 4), which has 2 axes; give one count an axis"},
        {[] {
             repeat(a34, {std::int64_t{1} << 62, 2});
         },
         "repeat: (4611686018427387904, 2) times (3, 4) is too large"},
        {[] {
             repeat(a34, {std::int64_t{1} << 40, std::int64_t{1} << 20});
         },
         "repeat: shape (3298534883328, 4194304) of f32 is too large: its bytes exceed 2^62"},
    });
    check_all<IndexError>({
        {[] { squeeze(a231, 3); },
         "squeeze: axis 3 is outside shape (2, 3, 1); axes go from -3 to 2"},
        {[] { unsqueeze(a34, 3); },
         "unsqueeze: no place 3 for an axis in shape (3, 4); a new axis goes to -3 to 2"},
        {[] {
             flip(a34, {0, -2});
         },
         "flip: axis -2 of shape (3, 4) is named twice"},
        {[] { roll(a34, 1, 2); }, "roll: axis 2 is outside shape (3, 4); axes go from -2 to 1"},
        {[] { select(a34, 1, 4); },
         "select: index 4 is outside axis 1 of shape (3, 4); indices go from -4 to 3"},
        {[] { select(a34, 0, -4); },
         "select: index -4 is outside axis 0 of shape (3, 4); indices go from -3 to 2"},
        {[] { select(ones({0}), 0, 0); }, "select: index 0 is outside axis 0 of shape (0,)"},
        {[] { select(ones({}), 0, 0); },
         "select: axis 0 does not exist in shape (), which has no axes"},
    });
    check_all<ValueError>({
        {[] { split(a34, 0, 0); },
         "split: pieces of 0 along axis 0 of shape (3, 4): the size must be positive"},
        {[] {
             split(a34, {4, -1}, 0);
         },
         "split: size -1 is negative"},
        {[] { chunk(a34, 0, 1); },
         "chunk: 0 pieces along axis 1 of shape (3, 4): at least 1 is needed"},
        {[] {
             pad(a34, {{0, 0}, {-1, 0}});
         },
         "pad: width -1 of axis 1 is negative; slice cuts"},
        {[] {
             pad(ones({1}, i64), {{0, 1}}, {.value = 0.5});
         },
         "pad: 0.5 is no whole number, the tensor is i64; use f32 or f64, or cut it with "
         "astype(i64)"},
        {[] {
             roll(a34, {1, 2}, {0});
         },
         "roll: 2 shifts for 1 axes; give one shift an axis"},
        {[] {
             repeat(a34, {2, -1});
         },
         "repeat: count -1 in (2, -1) is negative"},
    });
}

TEST_CASE("an index outside is named, with its place and the bound") {
    const std::string end = "; negative ones do not count from the end";
    check_all<IndexError>({
        {[] {
             gather(a34, 1, whole({{0, 1, 4}}));
         },
         "gather: index 4 at (0, 2) is outside 0..3 (axis 1 of shape (3, 4))"},
        {[] {
             gather(a34, 0, whole({{0}, {-1}}));
         },
         "gather: index -1 at (1, 0) is outside 0..2 (axis 0 of shape (3, 4))" + end},
        {[] {
             scatter_add(a34, -1, whole({{9}}), ones({1, 1}));
         },
         "scatter_add: index 9 at (0, 0) is outside 0..3 (axis 1 of shape (3, 4))"},
        {[] { index(a34, whole(3)); },
         "index: index 3 at () is outside 0..2 (axis 0 of shape (3, 4))"},
        {[] {
             index_select(a34, 1, whole({1, -4}));
         },
         "index_select: index -4 at (1,) is outside 0..3 (axis 1 of shape (3, 4))" + end},
        {[] {
             index_add(a34, 0, whole({3}), ones({1, 4}));
         },
         "index_add: index 3 at (0,) is outside 0..2 (axis 0 of shape (3, 4))"},
        {[] {
             embedding(ones({0, 2}), whole({0}));
         },
         "embedding: id 0 at (0,): there is nothing to pick (0 rows)"},
        {[] { index(ones({}), whole({0})); },
         "index: axis 0 does not exist in shape (), which has no axes"},
    });
}

TEST_CASE("indices of another type or shape are refused") {
    check_all<TypeError>({
        {[] { embedding(a34, ones({2})); },
         "embedding: ids must be i64, got f32 (2,); convert with astype(i64)"},
        {[] { index(a34, flags); },
         "index: indices must be i64, got boolean (3, 4); where picks by a mask"},
        {[] {
             gather(a34, 0, ones({1, 1}, f64));
         },
         "gather: index must be i64, got f64 (1, 1); convert with astype(i64)"},
        {[] {
             index_add(a34, 0, whole({0}), ones({1, 4}, f64));
         },
         "index_add: x is f32 (3, 4), src is f64 (1, 4); convert one with astype"},
        {[] {
             scatter_add(flags, 0, whole({{0}}), ones({1, 1}, boolean));
         },
         "scatter_add: needs numbers, got boolean; convert with astype(i64) or astype(f32)"},
    });
    check_all<ShapeError>({
        {[] { embedding(ones({3}), whole({0})); },
         "embedding: weight must be (rows, width), got (3,)"},
        {[] { index_select(a34, 0, whole({{0}})); },
         "index_select: indices must be a vector, got (1, 1); index takes indices of any shape, "
         "along the first axis"},
        {[] {
             index_add(a34, 0, whole({0, 1}), ones({1, 4}));
         },
         "index_add: 2 indices along axis 0 of (3, 4) need src (2, 4), got (1, 4)"},
        {[] { gather(a34, 0, whole({0})); },
         "gather: x (3, 4) and index (1,) differ in their number of axes; one index an element: "
         "reshape or expand the index"},
        {[] {
             gather(a34, 0, zeros({2, 5}, i64));
         },
         "gather: index (2, 5) is larger than x (3, 4) at axis 1: only axis 0 may be"},
        {[] {
             scatter_add(a34, 0, whole({{0}}), ones({2, 1}));
         },
         "scatter_add: src (2, 1) and index (1, 1) differ; slice src to the shape of the index"},
        {[] {
             index(ones({1, 1, 1, 1, 1, 1, 1}), zeros({1, 1, 1}, i64));
         },
         "index: (1, 1, 1, 1, 1, 1, 1) at (1, 1, 1) indices would have 9 axes, at most 8 are "
         "possible"},
    });
}

TEST_CASE("strict products name both shapes") {
    check_all<ShapeError>({
        {[] {
             bmm(a34, ones({3, 4, 5}));
         },
         "bmm: needs (batch, m, k) and (batch, k, n), got (3, 4) and (3, 4, 5); matmul takes other "
         "ranks, and broadcasts"},
        {[] {
             bmm(ones({1, 3, 4}), ones({2, 4, 5}));
         },
         "bmm: cannot multiply (1, 3, 4) by (2, 4, 5): batch sizes 1 and 2 differ; matmul "
         "broadcasts"},
        {[] {
             bmm(ones({2, 3, 4}), ones({2, 5, 4}));
         },
         "bmm: cannot multiply (2, 3, 4) by (2, 5, 4): inner sizes 4 and 5 differ; transpose b"},
        {[] { outer(a34, ones({3})); },
         "outer: needs two vectors, got (3, 4) and (3,); reshape to (-1,)"},
    });
}

TEST_CASE("an einsum that makes no sense is quoted, with what is wrong in it") {
    const Tensor a23 = ones({2, 3});
    const Tensor b34 = a34;
    check_all<ValueError>({
        {[=] { einsum("ij,jk->iz", a23, b34); },
         "einsum: \"ij,jk->iz\": output letter 'z' is in no input"},
        {[=] { einsum("ij,jk->iki", a23, b34); },
         "einsum: \"ij,jk->iki\": output letter 'i' is repeated"},
        {[=] { einsum("i1,jk->ik", a23, b34); },
         "einsum: \"i1,jk->ik\": '1' at 1 has no meaning; letters, ',', '...' and '->' make an "
         "equation"},
        {[=] { einsum("ij,jk>ik", a23, b34); },
         "einsum: \"ij,jk>ik\": '>' at 5 has no meaning; letters, ',', '...' and '->' make an "
         "equation"},
        {[=] { einsum("ij,jk→ik", a23, b34); },
         "einsum: \"ij,jk→ik\": '→' at 5 has no meaning; letters, ',', '...' and '->' make an "
         "equation"},
        {[=] { einsum("ij,jk,kl->il", a23, b34); },
         "einsum: \"ij,jk,kl->il\" has 3 input terms, 2 tensors given"},
        {[=] { einsum("ij->ji", a23, b34); },
         "einsum: \"ij->ji\" has 1 input terms, 2 tensors given"},
        {[=] { einsum("ij,jk->ik", a23); },
         "einsum: \"ij,jk->ik\" has 2 input terms, 1 tensor given"},
        {[=] { einsum("ij->j->i", a23); }, "einsum: \"ij->j->i\": one term must follow one '->'"},
        {[=] { einsum("ij->j,i", a23); }, "einsum: \"ij->j,i\": one term must follow one '->'"},
        {[=] { einsum("...i...->i", a23); },
         "einsum: \"...i...->i\": a second ellipsis at 4 in one term"},
        {[=] { einsum("...j->j", a23); },
         "einsum: \"...j->j\": the output leaves out the ellipsis of the inputs; write '...' after "
         "'->', too"},
    });
    check_all<ShapeError>({
        {[=] {
             einsum("ij,jk->ik", a23, ones({4, 5}));
         },
         "einsum: \"ij,jk->ik\": 'j' is 3 in a (2, 3) and 4 in b (4, 5)"},
        {[=] {
             einsum("ij,jk->ik", a23, ones({1, 5}));
         },
         "einsum: \"ij,jk->ik\": 'j' is 3 in a (2, 3) and 1 in b (1, 5); letters do not broadcast, "
         "'...' does"},
        {[=] { einsum("ii->i", a23); },
         "einsum: \"ii->i\": 'i' is 2 in a (2, 3) and 3 in a (2, 3)"},
        {[=] { einsum("ijk,jk->i", a23, b34); },
         "einsum: \"ijk,jk->i\": the term of a names 3 axes, (2, 3) has 2"},
        {[=] { einsum("...ijk->...", a23); },
         "einsum: \"...ijk->...\": the term of a names at least 3 axes, (2, 3) has 2"},
        {[=] { einsum("...i,...j->...ij", a23, b34); },
         "einsum: \"...i,...j->...ij\": the batch axes (2,) of a (2, 3) and (3,) of b (3, 4) do "
         "not "
         "broadcast; sizes must agree or be 1, counted from the right"},
        {[=] {
             einsum("abcde,fghi->abcdefghi", ones({1, 1, 1, 1, 1}), ones({1, 1, 1, 1}));
         },
         "einsum: \"abcde,fghi->abcdefghi\": the result would have 9 axes, at most 8 are possible"},
    });
    check_all<TypeError>({
        {[=] { einsum("ij,jk", a23, b34.astype(f64)); },
         "einsum: \"ij,jk\": f32 (2, 3) and f64 (3, 4) have different types; convert one with "
         "astype"},
        {[=] { einsum("ij->", flags); },
         "einsum: \"ij->\" needs numbers, got boolean (3, 4); convert with astype(i64) or "
         "astype(f32)"},
    });
}
