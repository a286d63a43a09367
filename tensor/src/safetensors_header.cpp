#include "safetensors_header.hpp"

#include "element_bits.hpp"
#include "fail.hpp"

#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/safetensors_layout.hpp>
#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/safetensors.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace glassgrad::detail {
namespace {

static_assert(safetensors_max_name_bytes == max_json_name_bytes);

constexpr std::size_t longest_name = 120;  // in error texts

constexpr SafetensorsType types[] = {
    {"F32", 'f', 4, f32}, {"F64", 'f', 8, f64},      {"F16", 'h', 2, f32}, {"BF16", 'g', 2, f32},
    {"I64", 'i', 8, i64}, {"BOOL", 'b', 1, boolean}, {"I32", 'i', 4, i64}, {"I16", 'i', 2, i64},
    {"I8", 'i', 1, i64},  {"U64", 'u', 8, i64},      {"U32", 'u', 4, i64}, {"U16", 'u', 2, i64},
    {"U8", 'u', 1, i64},
};
constexpr std::string_view supported =
    "supported are F32, F64, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 and BOOL";
/// Types that the format has and a tensor has not.
constexpr std::string_view foreign[] = {"F4",          "F6_E2M3",     "F6_E3M2",
                                        "F8_E4M3",     "F8_E5M2",     "F8_E8M0",
                                        "F8_E4M3FNUZ", "F8_E5M2FNUZ", "C64"};

class HeaderReader {
  public:
    HeaderReader(std::span<const std::byte> begin, std::uint64_t size, const std::string& where)
        : begin_(begin), size_(size), where_(where) {}

    SafetensorsHeader read() {
        const std::string_view text = header_text();
        data_ = size_ - 8 - text.size();
        read_json(text, where_ + ": header: ", [&](JsonCursor& in) {
            in.object([&](std::string_view name) {
                if (name == "__metadata__") {
                    read_metadata(in);
                } else {
                    read_tensor(in, name);
                }
            });
        });
        sort_names();
        check_layout();
        const std::uint64_t data_begin = size_ - data_;
        for (SafetensorsEntry& entry : header_.entries) {
            entry.begin += data_begin;
            entry.end += data_begin;
        }
        return std::move(header_);
    }

  private:
    template <class... Args>
    [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
        fail<FileError>("{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
    }
    template <class... Args>
    [[noreturn]] void bad(const Hint& fix, fmt::format_string<Args...> text, Args&&... args) const {
        fail<FileError>(fix, "{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
    }

    std::string_view header_text() const {
        const std::string_view all(reinterpret_cast<const char*>(begin_.data()), begin_.size());
        if (all.starts_with("version https://git-lfs")) {
            bad(hint("fetch the file itself: git lfs pull"),
                "a Git LFS pointer, which stands for the file");
        }
        if (all.size() < 8) {
            bad("the file ends after {} bytes, before the length of its header, 8 bytes",
                all.size());
        }
        const std::uint64_t length = integer_at(begin_.data(), 8, false);
        if (length > safetensors_max_header_bytes) {
            bad("the header says it has {} bytes, above the limit of {}", length,
                safetensors_max_header_bytes);
        }
        if (length > size_ - 8) {
            bad("the header says it has {} bytes, {} follow", length, size_ - 8);
        }
        const std::string_view text = all.substr(8, static_cast<std::size_t>(length));
        if (text.empty()) bad("the header is empty, not JSON");
        if (text.back() == '\0') {
            bad(hint("padding must be spaces"), "the header ends in NUL bytes");
        }
        return text;
    }

    void read_metadata(JsonCursor& in) {
        in.object([&](std::string_view name) {
            if (header_.metadata.size() == safetensors_max_tensors) {
                in.fail(fmt::format("more than {} metadata", safetensors_max_tensors));
            }
            header_.metadata.emplace_back(name, in.string());
        });
    }

    void read_tensor(JsonCursor& in, std::string_view name) {
        if (header_.names.size() == safetensors_max_tensors) {
            in.fail(fmt::format("more than {} tensors", safetensors_max_tensors));
        }
        SafetensorsEntry entry;
        bool has_shape = false;
        bool has_offsets = false;
        in.peek();
        const std::size_t start = in.start();
        in.object([&](std::string_view member) {
            if (member == "dtype") {
                entry.type = &read_type(in);
            } else if (member == "shape") {
                entry.shape = read_shape(in);
                has_shape = true;
            } else if (member == "data_offsets") {
                read_offsets(in, entry);
                has_offsets = true;
            } else {
                in.peek();
                in.fail("not known; a tensor has dtype, shape and data_offsets");
            }
        });
        if (entry.type == nullptr) in.fail(start, "'dtype' is missing");
        if (!has_shape) in.fail(start, "'shape' is missing");
        if (!has_offsets) in.fail(start, "'data_offsets' is missing");
        check_size(entry, name);
        header_.names.emplace_back(name);
        header_.entries.push_back(entry);
    }

    static const SafetensorsType& read_type(JsonCursor& in) {
        const std::string name = in.string();
        for (const SafetensorsType& type : types) {
            if (type.name == name) return type;
        }
        if (std::find(std::begin(foreign), std::end(foreign), name) != std::end(foreign)) {
            in.fail(fmt::format("element type {} is not supported; {}", name, supported));
        }
        std::string upper = name;
        for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        for (const SafetensorsType& type : types) {
            if (type.name == upper) {
                in.fail(fmt::format("element type {} is not known; types are upper case: {}",
                                    quoted(name), upper));
            }
        }
        in.fail(fmt::format("element type {} is not known; {}", quoted(name), supported));
    }

    static Shape read_shape(JsonCursor& in) {
        Shape shape;
        in.array([&](std::size_t axis) {
            const std::uint64_t size = in.unsigned_integer();
            if (axis == std::size_t{max_rank}) {
                in.fail(fmt::format("rank above the limit of {}", max_rank));
            }
            if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
                in.fail(fmt::format("size {} does not fit an i64", size));
            }
            shape.push_back(static_cast<std::int64_t>(size));
        });
        return shape;
    }

    static void read_offsets(JsonCursor& in, SafetensorsEntry& entry) {
        std::size_t count = 0;
        in.peek();
        const std::size_t start = in.start();
        in.array([&](std::size_t index) {
            const std::uint64_t offset = in.unsigned_integer();
            if (index == 0) entry.begin = offset;
            if (index == 1) entry.end = offset;
            count = index + 1;
        });
        if (count != 2) in.fail(start, fmt::format("{} offsets, not begin and end", count));
    }

    /// Throws unless the offsets lie in the data and fit type and shape.
    void check_size(const SafetensorsEntry& entry, std::string_view name) const {
        const std::string who = quoted(name, longest_name);
        std::int64_t count = 0;
        try {
            count = checked_numel("safetensors", entry.shape, entry.type->dtype);
        } catch (const ShapeError&) {
            bad("tensor {}: shape {} is too large: its bytes exceed 2^62", who, entry.shape);
        }
        if (entry.begin > entry.end) {
            bad("tensor {}: its data begins at {} and ends before that, at {}", who, entry.begin,
                entry.end);
        }
        if (entry.end > data_) {
            bad("tensor {}: its data ends at {}, outside the data of {} bytes", who, entry.end,
                data_);
        }
        const std::uint64_t needed =
            static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(entry.type->item_bytes);
        if (needed != entry.end - entry.begin) {
            bad("tensor {}: {} of shape {} needs {} bytes, its offsets give {}", who,
                entry.type->name, entry.shape, needed, entry.end - entry.begin);
        }
    }

    void sort_names() {
        header_.by_name.resize(header_.names.size());
        std::iota(header_.by_name.begin(), header_.by_name.end(), std::uint32_t{0});
        std::sort(
            header_.by_name.begin(), header_.by_name.end(),
            [&](std::uint32_t a, std::uint32_t b) { return header_.names[a] < header_.names[b]; });
    }

    /// Throws unless every byte of the data belongs to exactly one tensor.
    void check_layout() const {
        std::vector<std::uint32_t> order(header_.entries.size());
        std::iota(order.begin(), order.end(), std::uint32_t{0});
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            const SafetensorsEntry& left = header_.entries[a];
            const SafetensorsEntry& right = header_.entries[b];
            return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
        });
        std::uint64_t at = 0;
        std::uint32_t before = 0;
        for (const std::uint32_t index : order) {
            const SafetensorsEntry& entry = header_.entries[index];
            if (entry.begin < at) {
                bad("tensors {} and {} share bytes of the data",
                    quoted(header_.names[before], longest_name),
                    quoted(header_.names[index], longest_name));
            }
            if (entry.begin > at) {
                bad("bytes {} to {} of the data belong to no tensor", at, entry.begin);
            }
            at = entry.end;
            before = index;
        }
        if (at < data_) bad("the last {} bytes of the data belong to no tensor", data_ - at);
    }

    std::span<const std::byte> begin_;
    std::uint64_t size_;
    const std::string& where_;
    std::uint64_t data_ = 0;
    SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader read_safetensors_header(std::span<const std::byte> begin, std::uint64_t file_size,
                                          const std::string& where) {
    return HeaderReader(begin, file_size, where).read();
}

std::string_view safetensors_type_name(DType dtype) noexcept {
    // The first row of each type keeps all its bits.
    for (const SafetensorsType& type : types) {
        if (type.dtype == dtype) return type.name;
    }
    return {};
}

}  // namespace glassgrad::detail
