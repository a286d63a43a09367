#pragma once
// Which key a query may look at. One polarity everywhere: true means "may".

#include <glassgrad/autograd/variable.hpp>

#include <cstdint>
#include <vector>

namespace glassgrad {

/// A rule for attention; rules are joined with `&`: all must allow, and what they add is summed. A
/// query stands at position i + (keys - queries), so that the last one stands at the last key: one
/// that continues a text sees all that came before it.
class Mask {
  public:
    /// Every query sees every key.
    Mask() = default;
    static Mask none() { return {}; }
    /// A query at position p sees the keys up to p.
    static Mask causal();
    /// `keep` is boolean, (key,) or (batch, key): true for real tokens, false for padding, which
    /// nobody sees. Throws TypeError or ShapeError otherwise.
    static Mask padding(const Tensor& keep);
    /// `allowed` is boolean and broadcasts to (..., query, key): true where a query may look.
    static Mask boolean(const Tensor& allowed);
    /// `bias` is floating and broadcasts to (..., query, key); added to the scaled scores. -inf
    /// hides; a Variable that requires a gradient gets it.
    static Mask additive(const Variable& bias);
    /// A query at position p sees the keys j with |p - j| < width; with `& causal()` the last
    /// `width` ones. Throws ValueError below 1.
    static Mask sliding_window(std::int64_t width);

    friend Mask operator&(const Mask& a, const Mask& b);

    bool is_none() const noexcept {
        return !causal_ && window_ == 0 && !keep_.defined() && allowed_.empty() && !bias_.defined();
    }
    bool is_causal() const noexcept { return causal_; }
    bool has_padding() const noexcept { return keep_.defined(); }
    /// True when nothing but a causal order, if that, hides keys, and nothing is added.
    bool shows_all_before() const noexcept {
        return window_ == 0 && !keep_.defined() && allowed_.empty() && !bias_.defined();
    }
    /// 0 without a sliding window.
    std::int64_t window() const noexcept { return window_; }
    /// What is added to the scores; undefined if nothing is.
    const Variable& bias() const noexcept { return bias_; }

    /// Boolean, broadcastable to scores of shape (..., query, key): true where a query may look.
    /// Throws ShapeError when a part is for other sizes.
    Tensor allowed(const Shape& scores) const;
    /// The same without causal and sliding window, whose matrices long texts can't afford;
    /// undefined when nothing else hides.
    Tensor listed(const Shape& scores) const;

  private:
    bool causal_ = false;
    std::int64_t window_ = 0;
    Tensor keep_;
    std::vector<Tensor> allowed_;
    Variable bias_;
};

}  // namespace glassgrad
