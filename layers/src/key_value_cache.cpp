// Keys and values of the tokens before, with room for more.

#include "key_value_cache.hpp"

#include <glassgrad/tensor/detail/cached_attention.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace glassgrad {

void detail::require_held(const KeyValueCache& cache, const Shape& expected,
                          std::string_view what) {
    const auto shape = [&](const Tensor& places) {
        Shape held = places.shape();
        const Shape& keys = cache.key_places().shape();
        // With as many places as there are for keys, as many count.
        if (held.rank() == 4 && keys.rank() == 4 && held[2] == keys[2]) held[2] = cache.length();
        return held;
    };
    const auto fits = [&](const Tensor& x) { return x.defined() && shape(x) == expected; };
    const Tensor& key = cache.key_places();
    const Tensor& value = cache.value_places();
    if (fits(key) && fits(value)) return;
    const Tensor& wrong = fits(key) ? value : key;
    throw ShapeError(fmt::format("multi_head_attention: the cache holds {} {}, {}",
                                 fits(key) ? "values" : "keys",
                                 wrong.defined() ? to_string(shape(wrong)) : "of nothing", what),
                     "a cache belongs to one layer and one batch");
}

void KeyValueCache::set(Tensor key, Tensor value) {
    length_ = key.rank() == 4 ? key.size(2) : 0;
    key_ = std::move(key);
    value_ = std::move(value);
}

void KeyValueCache::append(const Tensor& key, const Tensor& value) {
    if (key.rank() != 4 || key.shape() != value.shape()) {
        throw ShapeError(
            fmt::format("multi_head_attention: new keys {} and values {} for a cache must both be "
                        "(batch, heads, tokens, width)",
                        to_string(key.shape()), to_string(value.shape())));
    }
    if (!key_.defined() && !value_.defined()) {
        set(key, value);
        return;
    }
    Shape expected = key.shape();
    expected[2] = length_;
    detail::require_held(*this, expected, fmt::format("new ones are {}", to_string(key.shape())));
    for (const auto& [held, fresh] : {std::pair(&key_, &key), std::pair(&value_, &value)}) {
        if (held->dtype() == fresh->dtype()) continue;
        throw TypeError(fmt::format("multi_head_attention: the cache holds {}, new keys are {}",
                                    name(held->dtype()), name(fresh->dtype())),
                        "a cache belongs to one model");
    }
    const std::int64_t length = length_ + key.size(2);
    if (length > key_.size(2) || length > value_.size(2)) {
        // Half as many again, so that a long text is copied a few times altogether.
        const std::int64_t places = std::max<std::int64_t>(32, length + length / 2);
        Tensor keys = detail::with_room(key_, length_, places);
        value_ = detail::with_room(value_, length_, places);
        key_ = std::move(keys);
    }
    detail::put_tokens(key_, key, length_);
    detail::put_tokens(value_, value, length_);
    length_ = length;
}

void KeyValueCache::truncate(std::int64_t tokens) noexcept {
    if (tokens <= 0) {
        clear();
    } else {
        length_ = std::min(length_, tokens);
    }
}

Tensor KeyValueCache::held(const Tensor& places) const {
    if (places.rank() != 4 || places.size(2) == length_) return places;
    return detail::with_room(places, length_, length_);
}

}  // namespace glassgrad
