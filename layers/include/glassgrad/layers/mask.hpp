#pragma once
// Which key a query may look at. One polarity everywhere: true means "may".

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {

/// A rule for attention; rules are joined with `&` (all must allow).
class Mask {
  public:
    /// Every query sees every key.
    Mask() = default;
    static Mask none() { return {}; }
    /// Query i of q sees the keys up to i + (k - q): the last query sees them all, so that a
    /// query that continues a text sees all that came before it.
    static Mask causal();
    /// `keep` is boolean, (key,) or (batch, key): true for real tokens, false for padding, which
    /// nobody sees. Throws TypeError or ShapeError otherwise.
    static Mask padding(const Tensor& keep);

    friend Mask operator&(const Mask& a, const Mask& b);

    bool is_none() const noexcept { return !causal_ && !keep_.defined(); }
    bool is_causal() const noexcept { return causal_; }
    bool has_padding() const noexcept { return keep_.defined(); }

    /// Boolean, broadcastable to scores of shape (..., query, key): true where a query may look.
    /// Throws ShapeError when the padding is for another number of keys or another batch.
    Tensor allowed(const Shape& scores) const;

  private:
    bool causal_ = false;
    Tensor keep_;
};

}  // namespace glassgrad
