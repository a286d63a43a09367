#include "support.hpp"

#include <glassgrad/tensor/detail/place.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

namespace glassgrad::detail {

void check_ids(std::string_view model, const Tensor& ids) {
    if (!ids.defined()) throw ValueError(fmt::format("{}: the ids are undefined", model));
    if (ids.dtype() != i64) {
        throw TypeError(fmt::format("{}: ids are {}, not i64", model, name(ids.dtype())));
    }
    if (ids.rank() != 2) {
        throw ShapeError(
            fmt::format("{}: ids {} are not (batch, tokens)", model, to_string(ids.shape())),
            ids.rank() == 1 ? "one text is a batch of 1: unsqueeze(ids, 0)" : "");
    }
}

void check_keep(std::string_view model, const Tensor& ids, const Tensor& keep,
                std::int64_t cached) {
    if (!keep.defined()) return;
    if (keep.dtype() != boolean) {
        throw TypeError(fmt::format("{}: keep is {}, not boolean", model, name(keep.dtype())),
                        "true for real tokens, false for padding");
    }
    const Shape wanted{ids.size(0), cached + ids.size(1)};
    if (keep.shape() != wanted) {
        throw ShapeError(fmt::format("{}: keep is {}, not {}", model, to_string(keep.shape()),
                                     to_string(wanted)),
                         cached == 0 ? "" : "it covers the tokens in the cache as well");
    }
}

Tensor positions_of(std::string_view model, const Tensor& ids, const Tensor& given,
                    std::int64_t cached, std::int64_t context) {
    const std::int64_t tokens = ids.size(1);
    if (!given.defined()) {
        if (cached + tokens > context) {
            const std::string after =
                cached == 0 ? "" : fmt::format(" after {} in the cache", cached);
            throw ShapeError(fmt::format("{}: {} tokens{} are longer than the context of {}", model,
                                         tokens, after, context));
        }
        return arange(static_cast<double>(cached), static_cast<double>(cached + tokens));
    }
    if (given.dtype() != i64) {
        throw TypeError(fmt::format("{}: positions are {}, not i64", model, name(given.dtype())));
    }
    if (given.shape() != Shape{tokens} && given.shape() != ids.shape()) {
        throw ShapeError(fmt::format("{}: positions {} are neither {} nor {}", model,
                                     to_string(given.shape()), to_string(Shape{tokens}),
                                     to_string(ids.shape())));
    }
    const auto values = given.values<std::int64_t>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] >= 0 && values[i] < context) continue;
        const Shape at = place(static_cast<std::int64_t>(i), given.shape());
        throw IndexError(fmt::format("{}: position {} at {} is outside the context of {}", model,
                                     values[i], to_string(at), context));
    }
    return given;
}

Mask padding_of(const Tensor& keep) { return keep.defined() ? Mask::padding(keep) : Mask::none(); }

LayerCaches::LayerCaches(std::string_view model, DecoderCache* cache, std::size_t num_layers)
    : cache_(cache) {
    if (!cache) return;
    auto& layers = cache->layers;
    if (!layers.empty() && layers.size() != num_layers) {
        throw ValueError(fmt::format("{}: the cache is of a model of {} layers, not {}", model,
                                     layers.size(), num_layers),
                         "a cache belongs to one model and one text");
    }
    began_empty_ = layers.empty();
    for (const KeyValueCache& each : layers) lengths_.push_back(each.length());
    layers.resize(num_layers);
}

LayerCaches::~LayerCaches() {
    if (!cache_ || kept_) return;
    if (began_empty_) {
        cache_->clear();
        return;
    }
    for (std::size_t i = 0; i < lengths_.size(); ++i) cache_->layers[i].truncate(lengths_[i]);
}

Linear make_head(bool tied, const Embedding& embedding, std::int64_t vocab_size, RandomState& rng,
                 const ModelOptions& options) {
    if (tied) return Linear(embedding.weight);
    return Linear(embedding.weight.size(1), vocab_size, rng,
                  {.bias = false, .dtype = options.dtype});
}

}  // namespace glassgrad::detail
