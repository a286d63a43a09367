#include <glassgrad/tensor/safetensors.hpp>

#include "dispatch.hpp"
#include "element_bits.hpp"
#include "safetensors_header.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/tensor/detail/safetensors_layout.hpp>
#include <glassgrad/tensor/detail/text.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

namespace glassgrad {

using detail::fail;
using detail::integer_at;
using detail::quoted;
using detail::SafetensorsEntry;
using detail::SafetensorsHeader;
using detail::SafetensorsType;

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::size_t longest_name = 120;            // in error texts
constexpr std::size_t piece = std::size_t{8} << 20;  // bytes of a mapped file in memory at a time

/// Copies bytes of a file.
using Read = std::function<void(std::uint64_t at, std::byte* out, std::size_t count)>;

template <class T>
T decode(const SafetensorsType& type, std::uint64_t bits, std::string_view where,
         std::string_view name, std::uint64_t index) {
    if constexpr (std::is_same_v<T, float>) {
        return type.kind == 'h' ? detail::widen_half(bits) : detail::widen_bfloat(bits);
    } else if constexpr (std::is_same_v<T, bool>) {
        if (bits > 1) {
            fail<FileError>("{}: tensor {}: element {} is {}, not 0 or 1", where,
                            quoted(name, longest_name), index, bits);
        }
        return bits == 1;
    } else {
        if (type.kind == 'i') {
            const int unused = 64 - 8 * type.item_bytes;
            return static_cast<T>(static_cast<std::int64_t>(bits << unused) >> unused);
        }
        if (bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            fail<FileError>("{}: tensor {}: element {}, {}, does not fit i64", where,
                            quoted(name, longest_name), index, bits);
        }
        return static_cast<T>(bits);
    }
}

Tensor read_tensor(const Read& read, const SafetensorsEntry& entry, std::string_view where,
                   std::string_view name) {
    const SafetensorsType& type = *entry.type;
    const bool same_bytes = type.kind == 'f' || (type.kind == 'i' && type.item_bytes == 8);
    const auto item = static_cast<std::size_t>(type.item_bytes);
    const auto size = static_cast<std::size_t>(entry.end - entry.begin);
    Tensor result = Tensor::empty(entry.shape, type.dtype);
    detail::with_type(type.dtype, [&](auto typed) {
        using T = typename decltype(typed)::type;
        T* out = result.mutable_data<T>();
        if (same_bytes) {
            read(entry.begin, reinterpret_cast<std::byte*>(out), size);
            return;
        }
        std::vector<std::byte> part(std::min(piece, size));
        for (std::size_t at = 0; at < size; at += part.size()) {
            part.resize(std::min(part.size(), size - at));
            read(entry.begin + at, part.data(), part.size());
            const std::size_t first = at / item;
            for (std::size_t i = 0; i < part.size() / item; ++i) {
                out[first + i] =
                    decode<T>(type, integer_at(part.data() + i * item, type.item_bytes, false),
                              where, name, first + i);
            }
        }
    });
    return result;
}

SafetensorsFile read_all(SafetensorsHeader header, const Read& read, const std::string& where) {
    SafetensorsFile result;
    result.metadata = std::move(header.metadata);
    result.tensors.reserve(header.names.size());
    for (std::size_t i = 0; i < header.names.size(); ++i) {
        Tensor x = read_tensor(read, header.entries[i], where, header.names[i]);
        result.tensors.emplace_back(std::move(header.names[i]), std::move(x));
    }
    return result;
}

void check_names(std::span<const std::pair<std::string, Tensor>> tensors,
                 std::span<const std::pair<std::string, std::string>> metadata) {
    constexpr std::string_view op = "save_safetensors";
    if (tensors.size() > safetensors_max_tensors || metadata.size() > safetensors_max_tensors) {
        fail<ValueError>("{}: {} tensors and {} metadata; the limit is {} each", op, tensors.size(),
                         metadata.size(), safetensors_max_tensors);
    }
    std::set<std::string_view> seen;
    for (const auto& [name, x] : tensors) {
        const std::string who = quoted(name, longest_name);
        if (name == "__metadata__") fail<ValueError>("{}: no tensor can be named {}", op, who);
        if (name.size() > safetensors_max_name_bytes) {
            fail<ValueError>("{}: a name of {} bytes is above the limit of {}", op, name.size(),
                             safetensors_max_name_bytes);
        }
        if (detail::find_invalid_utf8(name) != std::string_view::npos) {
            fail<ValueError>("{}: the name {} is not UTF-8", op, who);
        }
        if (!seen.insert(name).second) fail<ValueError>("{}: two tensors are named {}", op, who);
        if (!x.defined()) fail<ValueError>("{}: tensor {} is undefined", op, who);
    }
    seen.clear();
    for (const auto& [name, text] : metadata) {
        const std::string who = quoted(name, longest_name);
        if (detail::find_invalid_utf8(name) != std::string_view::npos ||
            detail::find_invalid_utf8(text) != std::string_view::npos) {
            fail<ValueError>("{}: metadata {} is not UTF-8", op, who);
        }
        if (!seen.insert(name).second) fail<ValueError>("{}: two metadata are named {}", op, who);
    }
}

std::size_t bytes_of(const Tensor& x) {
    return static_cast<std::size_t>(x.numel()) * item_size(x.dtype());
}

/// The order of the data: wide elements first, so that all are aligned to their size.
std::vector<std::size_t> data_order(std::span<const std::pair<std::string, Tensor>> tensors) {
    std::vector<std::size_t> order(tensors.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return item_size(tensors[a].second.dtype()) > item_size(tensors[b].second.dtype());
    });
    return order;
}

/// The length of the header and the header.
std::string head(std::span<const std::pair<std::string, Tensor>> tensors,
                 std::span<const std::pair<std::string, std::string>> metadata,
                 std::span<const std::size_t> order) {
    std::vector<std::uint64_t> begins(tensors.size());
    std::uint64_t at = 0;
    for (const std::size_t index : order) {
        begins[index] = at;
        at += bytes_of(tensors[index].second);
    }
    detail::JsonWriter out;
    out.begin_object();
    if (!metadata.empty()) {
        out.name("__metadata__").begin_object();
        for (const auto& [name, text] : metadata) out.name(name).text(text);
        out.end_object();
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto& [name, x] = tensors[i];
        out.name(name).begin_object();
        out.name("dtype").text(detail::safetensors_type_name(x.dtype()));
        out.name("shape").begin_array();
        for (const std::int64_t size : x.shape()) out.raw(std::to_string(size));
        out.end_array();
        out.name("data_offsets").begin_array();
        out.raw(std::to_string(begins[i]));
        out.raw(std::to_string(begins[i] + bytes_of(x)));
        out.end_array();
        out.end_object();
    }
    out.end_object();
    std::string text = out.take();
    text.append((8 - text.size() % 8) % 8, ' ');
    if (text.size() > safetensors_max_header_bytes) {
        fail<ValueError>("save_safetensors: the header has {} bytes, above the limit of {}",
                         text.size(), safetensors_max_header_bytes);
    }
    std::string length;
    for (int i = 0; i < 8; ++i) length.push_back(static_cast<char>(text.size() >> 8 * i & 0xff));
    return length + text;
}

/// As much of a file as `read_safetensors_header` needs.
std::string read_head(const detail::InputFile& file) {
    constexpr std::uint64_t usual = std::uint64_t{1} << 14;
    std::string head;
    const auto extend = [&](std::uint64_t size) {
        const std::size_t before = head.size();
        head.resize(static_cast<std::size_t>(size));
        if (size <= before) return;
        file.read(before, reinterpret_cast<std::byte*>(head.data() + before), head.size() - before);
    };
    extend(std::min(file.size(), usual));
    if (head.size() < 8) return head;
    const std::uint64_t length =
        integer_at(reinterpret_cast<const std::byte*>(head.data()), 8, false);
    if (length <= safetensors_max_header_bytes && length <= file.size() - 8) extend(8 + length);
    return head;
}

/// A file, its header read and checked.
struct OpenFile {
    OpenFile(const std::string& op, const std::string& path)
        : file(op, path),
          where(op + ": " + path),
          head(read_head(file)),
          header(detail::read_safetensors_header(std::as_bytes(std::span(head)), file.size(),
                                                 where)) {}

    Read reading() const {
        return [this](std::uint64_t at, std::byte* out, std::size_t count) {
            file.read(at, out, count);
        };
    }

    detail::InputFile file;
    std::string where;
    std::string head;
    SafetensorsHeader header;
};

}  // namespace

SafetensorsFile load_safetensors(const std::string& path) {
    OpenFile file("load_safetensors", path);
    return read_all(std::move(file.header), file.reading(), file.where);
}

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
    const std::string where = fmt::format("parse_safetensors: {}", name);
    const auto read = [&](std::uint64_t at, std::byte* out, std::size_t count) {
        if (count > 0) std::memcpy(out, bytes.data() + at, count);
    };
    return read_all(detail::read_safetensors_header(bytes, bytes.size(), where), read, where);
}

detail::SafetensorsLayout detail::lay_out_safetensors(
    std::span<const std::pair<std::string, Tensor>> tensors,
    std::span<const std::pair<std::string, std::string>> metadata) {
    check_names(tensors, metadata);
    std::vector<std::size_t> order = data_order(tensors);
    std::string text = head(tensors, metadata, order);
    return {std::move(text), std::move(order)};
}

void detail::write_safetensors(OutputFile& file, const SafetensorsLayout& layout,
                               std::span<const std::pair<std::string, Tensor>> tensors) {
    file.write(layout.head.data(), layout.head.size());
    for (const std::size_t index : layout.order) {
        const Tensor& x = tensors[index].second;
        file.write(x.bytes(), bytes_of(x));
    }
}

std::string to_safetensors(std::span<const std::pair<std::string, Tensor>> tensors,
                           std::span<const std::pair<std::string, std::string>> metadata) {
    auto [result, order] = detail::lay_out_safetensors(tensors, metadata);
    for (const std::size_t index : order) {
        const Tensor& x = tensors[index].second;
        result.append(reinterpret_cast<const char*>(x.bytes()), bytes_of(x));
    }
    return std::move(result);
}

void save_safetensors(const std::string& path,
                      std::span<const std::pair<std::string, Tensor>> tensors,
                      std::span<const std::pair<std::string, std::string>> metadata) {
    const detail::SafetensorsLayout layout = detail::lay_out_safetensors(tensors, metadata);
    detail::OutputFile file("save_safetensors", path);
    detail::write_safetensors(file, layout, tensors);
    file.commit();
}

struct SafetensorsReader::State : OpenFile {
    using OpenFile::OpenFile;

    /// The place of a name in the header, or how many there are.
    std::size_t find(std::string_view name) const noexcept {
        const auto place = std::lower_bound(
            header.by_name.begin(), header.by_name.end(), name,
            [&](std::uint32_t index, std::string_view text) { return header.names[index] < text; });
        if (place == header.by_name.end() || header.names[*place] != name) {
            return header.names.size();
        }
        return *place;
    }
    std::size_t place(std::string_view name) const {
        const std::size_t index = find(name);
        if (index == header.names.size()) {
            fail<FileError>("{}: there is no tensor {}", where, quoted(name, longest_name));
        }
        return index;
    }
};

SafetensorsReader::SafetensorsReader(const std::string& path, const std::string& op)
    : state_(std::make_unique<State>(op, path)) {}
SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;

const std::vector<std::string>& SafetensorsReader::names() const noexcept {
    return state_->header.names;
}

bool SafetensorsReader::contains(std::string_view name) const noexcept {
    return state_->find(name) < state_->header.names.size();
}

SafetensorsReader::Info SafetensorsReader::info(std::string_view name) const {
    const SafetensorsEntry& entry = state_->header.entries[state_->place(name)];
    return {entry.type->name, entry.shape, entry.end - entry.begin};
}

Tensor SafetensorsReader::load(std::string_view name) const {
    const SafetensorsEntry& entry = state_->header.entries[state_->place(name)];
    return read_tensor(state_->reading(), entry, state_->where, name);
}

std::string_view SafetensorsReader::head() const noexcept { return state_->head; }

const std::vector<std::pair<std::string, std::string>>& SafetensorsReader::metadata()
    const noexcept {
    return state_->header.metadata;
}

}  // namespace glassgrad
