#include <glassgrad/layers/models/hugging_face.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace glassgrad {
namespace {

/// What their file holds under a name.
enum class Kind {
    plain,
    conv1d,         ///< a weight (in, out)
    packed_conv1d,  ///< q, k and v side by side, (in, 3 out)
    packed_bias,    ///< (3 out,)
    buffer,         ///< no weight
};

struct Name {
    std::string_view theirs;
    std::string_view ours;  ///< of packed ones the part in front of q_proj and behind it: "a*b"
    Kind kind = Kind::plain;
};

struct Family {
    std::string_view function;      ///< for errors, without the direction
    std::string_view prefix;        ///< of all but lm_head; may be absent
    std::string_view block_prefix;  ///< then a number
    std::span<const Name> block;
    std::span<const Name> top;
};

constexpr Name gpt2_block[] = {
    {"ln_1.weight", "norm1.weight"},
    {"ln_1.bias", "norm1.bias"},
    {"attn.c_attn.weight", "self_attn.*_proj.weight", Kind::packed_conv1d},
    {"attn.c_attn.bias", "self_attn.*_proj.bias", Kind::packed_bias},
    {"attn.c_proj.weight", "self_attn.out_proj.weight", Kind::conv1d},
    {"attn.c_proj.bias", "self_attn.out_proj.bias"},
    {"ln_2.weight", "norm2.weight"},
    {"ln_2.bias", "norm2.bias"},
    {"mlp.c_fc.weight", "linear1.weight", Kind::conv1d},
    {"mlp.c_fc.bias", "linear1.bias"},
    {"mlp.c_proj.weight", "linear2.weight", Kind::conv1d},
    {"mlp.c_proj.bias", "linear2.bias"},
    {"attn.bias", "", Kind::buffer},
    {"attn.masked_bias", "", Kind::buffer},
};
constexpr Name gpt2_top[] = {
    {"wte.weight", "embedding.weight"}, {"wpe.weight", "position.weight"},
    {"ln_f.weight", "norm.weight"},     {"ln_f.bias", "norm.bias"},
    {"lm_head.weight", "head.weight"},
};
constexpr Family gpt2{"gpt2", "transformer.", "h.", gpt2_block, gpt2_top};

constexpr Name llama_block[] = {
    {"input_layernorm.weight", "norm1.weight"},
    {"self_attn.q_proj.weight", "self_attn.q_proj.weight"},
    {"self_attn.k_proj.weight", "self_attn.k_proj.weight"},
    {"self_attn.v_proj.weight", "self_attn.v_proj.weight"},
    {"self_attn.o_proj.weight", "self_attn.out_proj.weight"},
    {"post_attention_layernorm.weight", "norm2.weight"},
    {"mlp.gate_proj.weight", "linear1.weight"},
    {"mlp.down_proj.weight", "linear2.weight"},
    {"mlp.up_proj.weight", "linear3.weight"},
    {"self_attn.rotary_emb.inv_freq", "", Kind::buffer},
};
constexpr Name llama_top[] = {
    {"embed_tokens.weight", "embedding.weight"},
    {"norm.weight", "norm.weight"},
    {"lm_head.weight", "head.weight"},
    {"rotary_emb.inv_freq", "", Kind::buffer},
};
constexpr Family llama{"llama", "model.", "layers.", llama_block, llama_top};

/// `prefix`, a number, a dot, and the rest.
struct Numbered {
    std::string_view number;
    std::string_view rest;
};
std::optional<Numbered> numbered(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return {};
    name.remove_prefix(prefix.size());
    const std::size_t dot = name.find('.');
    if (dot == 0 || dot == std::string_view::npos) return {};
    const std::string_view number = name.substr(0, dot);
    if (number.find_first_not_of("0123456789") != std::string_view::npos) return {};
    return Numbered{number, name.substr(dot + 1)};
}

template <class Match>
const Name* find(std::span<const Name> names, const Match& match) {
    const auto found = std::find_if(names.begin(), names.end(), match);
    return found == names.end() ? nullptr : &*found;
}

/// "self_attn.*_proj.weight" for part q: "self_attn.q_proj.weight".
std::string part_name(std::string_view pattern, char part) {
    std::string name(pattern);
    const std::size_t star = name.find('*');
    if (star != std::string::npos) name[star] = part;
    return name;
}

void refuse(std::string_view function, const std::vector<std::string>& problems) {
    if (problems.empty()) return;
    throw ValueError(fmt::format("{}: {}", function, fmt::join(problems, "; ")));
}

/// The values of `x` under our names, given the name of the block's part.
void take(const Name& name, const std::string& block, const Tensor& x, StateDict& out) {
    switch (name.kind) {
        case Kind::buffer: return;
        case Kind::plain: out.emplace_back(block + std::string(name.ours), x); return;
        case Kind::conv1d: out.emplace_back(block + std::string(name.ours), transpose(x)); return;
        case Kind::packed_conv1d:
        case Kind::packed_bias: {
            const std::vector<Tensor> parts = chunk(x, 3, -1);
            for (std::size_t i = 0; i < 3; ++i) {
                out.emplace_back(block + part_name(name.ours, "qkv"[i]),
                                 x.rank() == 2 ? transpose(parts[i]) : parts[i]);
            }
        }
    }
}

/// Whether a tensor of this kind may have that shape.
bool fits(Kind kind, const Shape& shape) {
    switch (kind) {
        case Kind::conv1d: return shape.rank() == 2;
        case Kind::packed_conv1d: return shape.rank() == 2 && shape[1] % 3 == 0 && shape[1] > 0;
        case Kind::packed_bias: return shape.rank() == 1 && shape[0] % 3 == 0 && shape[0] > 0;
        case Kind::plain:
        case Kind::buffer: break;
    }
    return true;
}

StateDict from_theirs(const Family& family, const StateDict& state) {
    StateDict out;
    std::vector<std::string> problems;
    for (const auto& [full, x] : state) {
        std::string_view bare = full;
        if (bare.starts_with(family.prefix)) bare.remove_prefix(family.prefix.size());
        const auto block = numbered(bare, family.block_prefix);
        const std::string_view wanted = block ? block->rest : bare;
        const Name* name = find(block ? family.block : family.top,
                                [&](const Name& each) { return each.theirs == wanted; });
        if (!name) {
            problems.push_back("unexpected " + full);
        } else if (!x.defined()) {
            problems.push_back(full + " is undefined");
        } else if (!fits(name->kind, x.shape())) {
            problems.push_back(fmt::format("{} is {}, not {}", full, to_string(x.shape()),
                                           name->kind == Kind::conv1d ? "(in, out)"
                                           : name->kind == Kind::packed_conv1d
                                               ? "(in, three times out)"
                                               : "(three times out,)"));
        } else {
            take(*name, block ? fmt::format("blocks.{}.", block->number) : "", x, out);
        }
    }
    refuse(fmt::format("{}_from_hugging_face", family.function), problems);
    return out;
}

const Tensor* value_of(const StateDict& state, const std::string& name) {
    const auto found = std::find_if(state.begin(), state.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == state.end() ? nullptr : &found->second;
}

/// The three parts of a packed tensor in their layout; undefined when one is missing.
Tensor pack(const StateDict& state, const std::string& block, const Name& name) {
    std::vector<Tensor> parts;
    for (const char part : {'q', 'k', 'v'}) {
        const Tensor* x = value_of(state, block + part_name(name.ours, part));
        if (!x || !x->defined()) return {};
        parts.push_back(x->rank() == 2 ? transpose(*x) : *x);
    }
    return concat(parts, -1);
}

StateDict to_theirs(const Family& family, const StateDict& state) {
    StateDict out;
    std::vector<std::string> problems;
    const Tensor* embedding = value_of(state, "embedding.weight");
    for (const auto& [full, x] : state) {
        const auto block = numbered(full, "blocks.");
        const std::string_view wanted = block ? block->rest : std::string_view(full);
        const Name* name = find(block ? family.block : family.top, [&](const Name& each) {
            for (const char part : {'q', 'k', 'v'}) {
                if (part_name(each.ours, part) == wanted) return true;
            }
            return false;
        });
        if (!name) {
            problems.push_back("unexpected " + full);
            continue;
        }
        if (!x.defined()) {
            problems.push_back(full + " is undefined");
            continue;
        }
        if (name->ours == "head.weight") {
            if (!embedding || !x.shares_buffer_with(*embedding)) {
                out.emplace_back(name->theirs, x);
            }
            continue;
        }
        std::string theirs(family.prefix);
        if (block) theirs += fmt::format("{}{}.", family.block_prefix, block->number);
        theirs += name->theirs;
        if (name->kind == Kind::plain) {
            out.emplace_back(theirs, x);
        } else if (name->kind == Kind::conv1d) {
            out.emplace_back(theirs, transpose(x));
        } else if (!value_of(out, theirs)) {
            Tensor packed = pack(state, fmt::format("blocks.{}.", block->number), *name);
            if (packed.defined()) {
                out.emplace_back(theirs, std::move(packed));
            } else {
                problems.push_back(full + " needs q_proj, k_proj and v_proj beside it");
            }
        }
    }
    refuse(fmt::format("{}_to_hugging_face", family.function), problems);
    return out;
}

/// For each row of a head in the layout `to`, where it is in the other one.
std::int64_t source_row(std::int64_t row, std::int64_t head_dim, RotaryPairing to) {
    const std::int64_t half = head_dim / 2;
    return to == RotaryPairing::neighbours ? row / 2 + row % 2 * half : row % half * 2 + row / half;
}

}  // namespace

StateDict convert_rotary(const StateDict& state, const LlamaConfig& config, RotaryPairing from,
                         RotaryPairing to) {
    StateDict out = state;
    if (from == to) return out;
    for (auto& [name, x] : out) {
        const bool query = name.ends_with("self_attn.q_proj.weight");
        if (!query && !name.ends_with("self_attn.k_proj.weight")) continue;
        const bool all = query || config.num_kv_heads == 0;
        const std::int64_t heads = all ? config.num_heads : config.num_kv_heads;
        if (x.rank() != 2 || heads < 1 || x.size(0) % 2 != 0 || x.size(0) / 2 % heads != 0 ||
            x.size(0) == 0) {
            throw ShapeError(fmt::format("convert_rotary: {} {} is not {} heads of pairs", name,
                                         to_string(x.shape()), heads));
        }
        const std::int64_t head_dim = x.size(0) / heads;
        std::vector<std::int64_t> rows;
        for (std::int64_t i = 0; i < x.size(0); ++i) {
            rows.push_back(i - i % head_dim + source_row(i % head_dim, head_dim, to));
        }
        x = index(x, from_span<std::int64_t>(rows, {x.size(0)}));
    }
    return out;
}

StateDict gpt2_from_hugging_face(const StateDict& state) { return from_theirs(gpt2, state); }
StateDict gpt2_to_hugging_face(const StateDict& state) { return to_theirs(gpt2, state); }

StateDict llama_from_hugging_face(const StateDict& state, const LlamaConfig& config) {
    return convert_rotary(from_theirs(llama, state), config, RotaryPairing::halves,
                          config.rotary_pairing);
}
StateDict llama_to_hugging_face(const StateDict& state, const LlamaConfig& config) {
    return to_theirs(llama,
                     convert_rotary(state, config, config.rotary_pairing, RotaryPairing::halves));
}

}  // namespace glassgrad
