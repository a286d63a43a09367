#include <glassgrad/layers/llama2c.hpp>

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>

namespace glassgrad {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t old_header_bytes = 28;
constexpr std::size_t new_header_bytes = 256;
constexpr std::uint32_t magic = 0x616b3432;  // 'ak42'

/// A product of sizes, or the largest number where there is none.
std::uint64_t product(std::initializer_list<std::int64_t> sizes) {
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t result = 1;
    for (const std::int64_t size : sizes) {
        const auto factor = static_cast<std::uint64_t>(size);
        if (factor != 0 && result > largest / factor) return largest;
        result *= factor;
    }
    return result;
}
std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return a > std::numeric_limits<std::uint64_t>::max() - b
               ? std::numeric_limits<std::uint64_t>::max()
               : a + b;
}

/// A run of weights in the file: one tensor, or one a layer, with the same name but for the layer.
struct Run {
    const char* name;  ///< behind `blocks.N.` if there are layers; nullptr for what is skipped
    Shape shape;
    bool in_layers;
};

class Reader {
  public:
    Reader(std::span<const std::byte> file, std::string where,
           std::function<void(std::span<const std::byte>)> release)
        : file_(file), where_(std::move(where)), release_(std::move(release)) {}

    /// The sizes, checked against the file; `layout_` is what it holds.
    const Llama2cCheckpoint& read_sizes() {
        read_header();
        layout_ = layout();
        check_size();
        return result_;
    }
    Llama2cCheckpoint read() {
        read_sizes();
        for (const Run& run : layout_) read_run(run);
        return std::move(result_);
    }

  private:
    template <class... Args>
    [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
        bad_with("", text, std::forward<Args>(args)...);
    }
    template <class... Args>
    [[noreturn]] void bad_with(std::string_view hint, fmt::format_string<Args...> text,
                               Args&&... args) const {
        throw FileError(where_ + ": " + fmt::format(text, std::forward<Args>(args)...), hint);
    }

    std::int32_t word(std::size_t index) const {
        std::int32_t value = 0;
        std::memcpy(&value, file_.data() + 4 * index, 4);
        return value;
    }

    void read_header() {
        if (file_.empty()) bad("the file is empty, not a checkpoint");
        if (file_.size() < old_header_bytes) {
            bad("the file ends after {} bytes, inside its header of {}", file_.size(),
                old_header_bytes);
        }
        is_new_ = static_cast<std::uint32_t>(word(0)) == magic;
        if (is_new_) {
            check_version();
            at_ = new_header_bytes;
        } else {
            at_ = old_header_bytes;
        }
        const std::size_t first = is_new_ ? 2 : 0;
        const std::int64_t vocab_size = word(first + 5);
        result_.d_model = size(first, "dim");
        result_.d_ff = size(first + 1, "hidden dim");
        result_.num_layers = size(first + 2, "number of layers");
        result_.num_heads = size(first + 3, "number of heads");
        result_.num_kv_heads = size(first + 4, "number of key/value heads");
        result_.context_length = size(first + 6, "sequence length");
        if (vocab_size == 0 || (is_new_ && vocab_size < 0)) {
            bad("the vocabulary has {} tokens", vocab_size);
        }
        result_.vocab_size = vocab_size < 0 ? -vocab_size : vocab_size;
        if (is_new_) {
            const auto flag = std::to_integer<int>(file_[36]);
            if (flag > 1) bad("the flag of a shared classifier is {}, not 0 or 1", flag);
            result_.shares_head = flag == 1;
        } else {
            result_.shares_head = vocab_size > 0;
        }
        check_heads();
        if (result_.num_layers > llama2c_max_layers) {
            bad_with(likely(), "{} layers are above the limit of {}", result_.num_layers,
                     llama2c_max_layers);
        }
    }

    void check_version() const {
        const std::int32_t version = word(1);
        if (version == 2) {
            bad_with("export it as version 0 or 1",
                     "version 2, of 8-bit weights, is not supported");
        }
        if (version != 1) {
            bad("version {} is not known; known are version 1 and the old header without one",
                version);
        }
        if (file_.size() < new_header_bytes) {
            bad("the file ends after {} bytes, inside its header of {}", file_.size(),
                new_header_bytes);
        }
    }

    std::int64_t size(std::size_t index, std::string_view what) const {
        const std::int32_t value = word(index);
        if (value <= 0) bad_with(likely(), "the {} is {}, not above 0", what, value);
        return value;
    }

    void check_heads() const {
        const Llama2cCheckpoint& c = result_;
        if (c.d_model % c.num_heads != 0) {
            bad_with(likely(), "dim {} is not divisible by {} heads", c.d_model, c.num_heads);
        }
        if (c.num_heads % c.num_kv_heads != 0) {
            bad_with(likely(), "{} key/value heads don't divide {} heads", c.num_kv_heads,
                     c.num_heads);
        }
        if (c.d_model / c.num_heads % 2 != 0) {
            bad_with(likely(), "heads of {} elements, an odd number, have no rotary pairs",
                     c.d_model / c.num_heads);
        }
    }

    /// What the file may be instead of a checkpoint.
    std::string likely() const {
        const std::string_view start(reinterpret_cast<const char*>(file_.data()), 4);
        if (std::all_of(start.begin(), start.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
            return fmt::format("it starts with {}, a text", detail::quoted(start));
        }
        const auto small = [&](bool swapped) {
            for (std::size_t i = 0; i < 7; ++i) {
                auto value = static_cast<std::uint32_t>(word(i));
                if (swapped) value = __builtin_bswap32(value);
                const auto size = static_cast<std::int32_t>(value);
                if (size < -(1 << 24) || size > (1 << 24)) return false;
            }
            return true;
        };
        return !small(false) && small(true) ? "perhaps its numbers are big-endian" : "";
    }

    /// The weights in the order of the file.
    std::vector<Run> layout() const {
        const Llama2cCheckpoint& c = result_;
        const Shape model{c.d_model};
        const Shape embedding{c.vocab_size, c.d_model};
        const Shape square{c.d_model, c.d_model};
        const Shape keys{c.d_model / c.num_heads * c.num_kv_heads, c.d_model};
        const Shape wide{c.d_ff, c.d_model};
        const Shape narrow{c.d_model, c.d_ff};
        const Run attention[] = {{"self_attn.q_proj.weight", square, true},
                                 {"self_attn.k_proj.weight", keys, true},
                                 {"self_attn.v_proj.weight", keys, true},
                                 {"self_attn.out_proj.weight", square, true}};
        const Run feed_forward[] = {{"linear1.weight", wide, true},
                                    {"linear2.weight", narrow, true},
                                    {"linear3.weight", wide, true}};
        std::vector<Run> runs;
        if (is_new_) {
            runs = {{"norm1.weight", model, true},
                    {"norm2.weight", model, true},
                    {"norm.weight", model, false},
                    {"embedding.weight", embedding, false}};
            runs.insert(runs.end(), std::begin(attention), std::end(attention));
            runs.insert(runs.end(), std::begin(feed_forward), std::end(feed_forward));
        } else {
            runs = {{"embedding.weight", embedding, false}, {"norm1.weight", model, true}};
            runs.insert(runs.end(), std::begin(attention), std::end(attention));
            runs.push_back({"norm2.weight", model, true});
            runs.insert(runs.end(), std::begin(feed_forward), std::end(feed_forward));
            runs.push_back({"norm.weight", model, false});
            // Sines and cosines of the rotary positions, which are functions of the sizes.
            runs.push_back({nullptr, Shape{c.context_length, c.d_model / c.num_heads}, false});
        }
        if (!c.shares_head) runs.push_back({"head.weight", embedding, false});
        return runs;
    }

    void check_size() const {
        std::uint64_t needed = at_;
        for (const Run& run : layout_) {
            needed = sum(needed, product({run.in_layers ? result_.num_layers : 1, run.shape[0],
                                          run.shape.rank() > 1 ? run.shape[1] : 1, 4}));
        }
        const std::uint64_t found = file_.size();
        if (needed == found) return;
        if (needed > found) {
            const std::string hint = likely();
            bad_with(hint.empty() ? "perhaps a download that was cut" : hint,
                     "its header asks for {} bytes, the file has {}",
                     needed == std::numeric_limits<std::uint64_t>::max() ? "2^64 or more"
                                                                         : std::to_string(needed),
                     found);
        }
        bad_with(likely(), "its header asks for {} bytes, the file has {}, {} too many", needed,
                 found, found - needed);
    }

    void read_run(const Run& run) {
        const std::int64_t count = run.in_layers ? result_.num_layers : 1;
        for (std::int64_t layer = 0; layer < count; ++layer) {
            const std::size_t bytes = checked_bytes("llama2c", run.shape, f32);
            const auto part = file_.subspan(at_, bytes);
            at_ += bytes;
            if (run.name != nullptr) {
                Tensor x = Tensor::empty(run.shape, f32);
                std::memcpy(x.mutable_data<float>(), part.data(), bytes);
                result_.weights.emplace_back(
                    run.in_layers ? fmt::format("blocks.{}.{}", layer, run.name) : run.name,
                    std::move(x));
            }
            release_(part);
        }
    }

    std::span<const std::byte> file_;
    std::string where_;
    std::function<void(std::span<const std::byte>)> release_;
    std::size_t at_ = 0;
    bool is_new_ = false;
    std::vector<Run> layout_;
    Llama2cCheckpoint result_;
};

}  // namespace

Llama2cCheckpoint load_llama2c_checkpoint(const std::string& path) {
    const detail::MappedFile file("load_llama2c_checkpoint", path);
    return Reader(file.bytes(), "load_llama2c_checkpoint: " + path,
                  [&](std::span<const std::byte> part) {
                      file.drop(part);
                      file.check();
                  })
        .read();
}

Llama2cCheckpoint load_llama2c_sizes(const std::string& path) {
    const detail::MappedFile file("load_llama2c_sizes", path);
    return Reader(file.bytes(), "load_llama2c_sizes: " + path, [](auto) {}).read_sizes();
}

Llama2cCheckpoint parse_llama2c_checkpoint(std::span<const std::byte> bytes,
                                           std::string_view name) {
    return Reader(bytes, fmt::format("parse_llama2c_checkpoint: {}", name), [](auto) {}).read();
}

}  // namespace glassgrad
