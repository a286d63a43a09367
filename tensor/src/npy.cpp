#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/npy.hpp>

#include "dispatch.hpp"
#include "element_bits.hpp"
#include "npy_source.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::integer_at;
using detail::NpyHeader;
using detail::quoted;
using detail::widen_half;

namespace {

using Source = detail::NpySource;

constexpr std::string_view magic = "\x93NUMPY";

/// The text of the header, and where the data starts.
std::string read_header_text(const Source& source, std::uint64_t& data_offset) {
    std::byte start[12] = {};
    const auto available = static_cast<std::size_t>(std::min<std::uint64_t>(12, source.size));
    if (available == 0) fail<FileError>("{}: the file is empty, not an array", source.where);
    source.read(0, start, available);
    const std::string_view text(reinterpret_cast<const char*>(start), available);
    if (!text.starts_with(magic.substr(0, available))) {
        const bool zip = text.starts_with("PK");
        fail<FileError>(zip ? hint("it is a zip archive, perhaps a .npz of several arrays")
                            : hint("np.save writes such files"),
                        "{}: not a .npy file: it starts with {}", source.where,
                        quoted(text.substr(0, magic.size())));
    }
    if (available < 8) {
        fail<FileError>("{}: the file ends after {} bytes, before its version", source.where,
                        available);
    }
    const auto major = std::to_integer<int>(start[6]);
    const auto minor = std::to_integer<int>(start[7]);
    if (major < 1 || major > 3 || minor != 0) {
        fail<FileError>("{}: version {}.{} is not known; known are 1.0, 2.0 and 3.0", source.where,
                        major, minor);
    }
    const int length_bytes = major == 1 ? 2 : 4;
    data_offset = static_cast<std::uint64_t>(8 + length_bytes);
    if (source.size < data_offset) {
        fail<FileError>("{}: the file ends after {} bytes, inside the length of its header",
                        source.where, source.size);
    }
    const std::uint64_t length = integer_at(start + 8, length_bytes, false);
    if (length > source.size - data_offset) {
        fail<FileError>("{}: the header says it has {} bytes, {} follow", source.where, length,
                        source.size - data_offset);
    }
    if (length > npy_max_header_bytes) {
        fail<FileError>("{}: the header has {} bytes, above the limit of {}", source.where, length,
                        npy_max_header_bytes);
    }
    std::string header(static_cast<std::size_t>(length), '\0');
    source.read(data_offset, reinterpret_cast<std::byte*>(header.data()), header.size());
    data_offset += length;
    return header;
}

DType dtype_for(const NpyHeader& header) {
    if (header.kind == 'b') return boolean;
    if (header.kind == 'f') return header.item_bytes == 8 ? f64 : f32;
    return i64;
}

/// Throws unless the file holds the elements of the header and nothing else.
void check_size(const Source& source, const NpyHeader& header, std::uint64_t data_offset) {
    std::int64_t count = 0;
    try {
        count = checked_numel("npy", header.shape, dtype_for(header));
    } catch (const ShapeError&) {
        fail<FileError>("{}: shape {} is too large: its bytes exceed 2^62", source.where,
                        header.shape);
    }
    const std::uint64_t expected =
        static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(header.item_bytes);
    const std::uint64_t found = source.size - data_offset;
    if (found < expected) {
        fail<FileError>("{}: shape {} of {} needs {} bytes of data, {} found", source.where,
                        header.shape, quoted(header.descr), expected, found);
    }
    if (found > expected) {
        fail<FileError>("{}: {} bytes too many: shape {} of {} needs {} bytes of data, {} found",
                        source.where, found - expected, header.shape, quoted(header.descr),
                        expected, found);
    }
}

/// Row-major offsets in the order in which a Fortran file lists its elements.
class FortranOrder {
  public:
    explicit FortranOrder(const Shape& shape) : shape_(shape) {
        std::int64_t stride = 1;
        for (int axis = shape.rank() - 1; axis >= 0; --axis) {
            strides_[axis] = stride;
            stride *= shape[axis];
        }
    }
    std::int64_t next() {
        const std::int64_t result = offset_;
        for (int axis = 0; axis < shape_.rank(); ++axis) {
            offset_ += strides_[axis];
            if (++index_[axis] < shape_[axis]) break;
            offset_ -= strides_[axis] * shape_[axis];
            index_[axis] = 0;
        }
        return result;
    }

  private:
    Shape shape_;
    std::int64_t strides_[max_rank] = {};
    std::int64_t index_[max_rank] = {};
    std::int64_t offset_ = 0;
};

/// Writes `decode(bits, index in the file)` of every element to its place.
template <class T, class Decode>
void read_decoded(const Source& source, std::uint64_t offset, const NpyHeader& header, T* out,
                  Decode decode) {
    const std::int64_t count = header.shape.numel();
    const auto item = static_cast<std::size_t>(header.item_bytes);
    std::vector<std::byte> chunk(std::size_t{1} << 16);
    FortranOrder order(header.shape);
    std::int64_t done = 0;
    while (done < count) {
        const auto batch = static_cast<std::size_t>(
            std::min<std::int64_t>(count - done, static_cast<std::int64_t>(chunk.size() / item)));
        source.read(offset, chunk.data(), batch * item);
        offset += batch * item;
        for (std::size_t i = 0; i < batch; ++i, ++done) {
            const std::uint64_t bits =
                integer_at(chunk.data() + i * item, header.item_bytes, header.big_endian);
            out[header.fortran_order ? order.next() : done] = decode(bits, done);
        }
    }
}

std::int64_t decode_integer(const Source& source, const NpyHeader& header, std::uint64_t bits,
                            std::int64_t index) {
    const int unused = 64 - 8 * header.item_bytes;
    if (header.kind == 'i') return static_cast<std::int64_t>(bits << unused) >> unused;
    if (bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail<FileError>("{}: element {} of the data, {}, does not fit i64", source.where, index,
                        bits);
    }
    return static_cast<std::int64_t>(bits);
}

Tensor read_data(const Source& source, const NpyHeader& header, std::uint64_t offset) {
    const DType dtype = dtype_for(header);
    Tensor result = Tensor::empty(header.shape, dtype);
    const bool same_order = !header.fortran_order || header.shape.rank() <= 1;
    const bool same_bytes = header.big_endian == (std::endian::native == std::endian::big) &&
                            header.item_bytes == static_cast<int>(item_size(dtype)) &&
                            (header.kind == 'f' || header.kind == 'i');
    if (same_order && same_bytes) {
        detail::with_type(dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            source.read(offset, reinterpret_cast<std::byte*>(result.mutable_data<T>()),
                        static_cast<std::size_t>(result.numel()) * sizeof(T));
        });
        return result;
    }
    switch (dtype) {
        case DType::f32:
            read_decoded(source, offset, header, result.mutable_data<float>(),
                         [&](std::uint64_t bits, std::int64_t) {
                             return header.item_bytes == 2
                                        ? widen_half(bits)
                                        : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
                         });
            break;
        case DType::f64:
            read_decoded(
                source, offset, header, result.mutable_data<double>(),
                [](std::uint64_t bits, std::int64_t) { return std::bit_cast<double>(bits); });
            break;
        case DType::i64:
            read_decoded(source, offset, header, result.mutable_data<std::int64_t>(),
                         [&](std::uint64_t bits, std::int64_t index) {
                             return decode_integer(source, header, bits, index);
                         });
            break;
        case DType::boolean:
            read_decoded(source, offset, header, result.mutable_data<bool>(),
                         [&](std::uint64_t bits, std::int64_t index) {
                             if (bits > 1) {
                                 fail<FileError>("{}: element {} of the data is {}, not 0 or 1",
                                                 source.where, index, bits);
                             }
                             return bits == 1;
                         });
            break;
    }
    return result;
}

}  // namespace

Tensor detail::read_npy(const Source& source) {
    std::uint64_t offset = 0;
    const std::string text = read_header_text(source, offset);
    const NpyHeader header = detail::parse_npy_header(text, source.where);
    check_size(source, header, offset);
    return read_data(source, header, offset);
}

std::string detail::npy_head(const Tensor& x) {
    constexpr std::size_t growth_digits = 21;  // NumPy leaves room for a longer first axis
    const char order = std::endian::native == std::endian::big ? '>' : '<';
    const std::string descr = x.dtype() == boolean ? "|b1"
                              : x.dtype() == i64
                                  ? fmt::format("{}i8", order)
                                  : fmt::format("{}f{}", order, item_size(x.dtype()));
    std::string text =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, x.shape());
    if (x.rank() > 0) text.append(growth_digits - std::to_string(x.shape()[0]).size(), ' ');
    const std::size_t preamble = magic.size() + 4;
    text.append((64 - (preamble + text.size() + 1) % 64) % 64, ' ');
    text += '\n';
    std::string result(magic);
    result += {'\x01', '\x00', static_cast<char>(text.size() & 0xff),
               static_cast<char>(text.size() >> 8)};
    return result + text;
}

Tensor load_npy(const std::string& path) {
    const detail::InputFile file("load_npy", path);
    return detail::read_npy({"load_npy: " + path, file.size(),
                             [&](std::uint64_t offset, std::byte* out, std::size_t count) {
                                 file.read(offset, out, count);
                             }});
}

Tensor parse_npy(std::span<const std::byte> bytes, std::string_view name) {
    return detail::read_npy({fmt::format("parse_npy: {}", name), bytes.size(),
                             [&](std::uint64_t offset, std::byte* out, std::size_t count) {
                                 if (count > 0) std::memcpy(out, bytes.data() + offset, count);
                             }});
}

std::string to_npy(const Tensor& x) {
    const auto* data = reinterpret_cast<const char*>(x.bytes());
    return detail::npy_head(x).append(data,
                                      static_cast<std::size_t>(x.numel()) * item_size(x.dtype()));
}

void save_npy(const std::string& path, const Tensor& x) {
    const std::byte* data = x.bytes();
    const std::string header = detail::npy_head(x);
    detail::OutputFile file("save_npy", path);
    file.write(header.data(), header.size());
    file.write(data, static_cast<std::size_t>(x.numel()) * item_size(x.dtype()));
    file.commit();
}

}  // namespace glassgrad
