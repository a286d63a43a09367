// The elements of a tensor from JSON: each encoding, its faults, and nothing allocated that the
// text could not fill.

#include "value_json.hpp"
#include "vocabulary.hpp"

#include <glassgrad/tensor/error.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace glassgrad::detail {
namespace {

using Kind = JsonCursor::Kind;

constexpr std::string_view three_texts = "the texts NaN, Infinity and -Infinity";

template <class T>
T canonical_nan() noexcept {
    if constexpr (sizeof(T) == 4) {
        return std::bit_cast<float>(0x7fc00000U);
    } else {
        return std::bit_cast<double>(std::uint64_t{0x7ff8000000000000});
    }
}

[[noreturn]] void fail_kind(const JsonCursor& in, Kind kind, std::string_view wanted) {
    std::string problem(describe(kind));
    if (kind == Kind::null) problem += ", which is no number";
    in.fail(problem + "; expected " + std::string(wanted));
}

template <class T>
T read_floating(JsonCursor& in) {
    const Kind kind = in.peek();
    if (kind == Kind::number) {
        const std::string_view text = in.number();
        T x = 0;
        switch (parse_number(text, x)) {
            case NumberFault::none: return x;
            case NumberFault::too_small:
                in.fail(std::string(text) + " is too small for " +
                        std::string(name(dtype_of<T>())) + ": it would become zero");
            default:
                in.fail(std::string(text) + " is out of range for " +
                        std::string(name(dtype_of<T>())));
        }
    }
    if (kind == Kind::string) {
        const std::string text = in.string();
        if (text == "NaN") return canonical_nan<T>();
        if (text == "Infinity") return std::numeric_limits<T>::infinity();
        if (text == "-Infinity") return -std::numeric_limits<T>::infinity();
        in.fail("'" + text + "' is no number; non-finite ones are " + std::string(three_texts));
    }
    fail_kind(in, kind, "a number; non-finite ones are " + std::string(three_texts));
}

template <class T>
T read_element(JsonCursor& in) {
    if constexpr (std::is_same_v<T, bool>) {
        if (const Kind kind = in.peek(); kind != Kind::boolean) {
            fail_kind(in, kind, "true or false, the elements of a bool");
        }
        return in.boolean();
    } else if constexpr (std::is_floating_point_v<T>) {
        return read_floating<T>(in);
    } else {
        return read_integer(in);
    }
}

template <class T>
void read_list(JsonCursor& in, const Shape& shape, int axis, T*& next) {
    if (axis == shape.rank()) {
        if (in.peek() == Kind::array) {
            in.fail("the list is deeper than the shape " + to_string(shape));
        }
        *next++ = read_element<T>(in);
        return;
    }
    if (const Kind kind = in.peek(); kind != Kind::array) {
        in.fail(std::string(describe(kind)) + " where a list is expected: rank " +
                std::to_string(axis) + " for shape " + to_string(shape));
    }
    const std::size_t start = in.start();
    std::int64_t count = 0;
    in.array([&](std::size_t) {
        if (count == shape[axis]) {
            in.peek();
            in.fail("more than the " + std::to_string(count) + " items that shape " +
                    to_string(shape) + " says");
        }
        read_list(in, shape, axis + 1, next);
        ++count;
    });
    if (count != shape[axis]) {
        in.fail(start, std::to_string(count) + (count == 1 ? " item" : " items") + " where shape " +
                           to_string(shape) + " says " + std::to_string(shape[axis]));
    }
}

template <class F>
void with_type(DType dtype, F&& f) {
    switch (dtype) {
        case DType::f32: f(float{}); break;
        case DType::f64: f(double{}); break;
        case DType::i64: f(std::int64_t{}); break;
        case DType::boolean: f(bool{}); break;
    }
}

Tensor read_nested(JsonCursor& in, const Shape& shape, DType dtype) {
    in.peek();
    if (static_cast<std::uint64_t>(shape.numel()) > in.remaining()) {
        in.fail("shape " + to_string(shape) + " has " + std::to_string(shape.numel()) +
                " elements, more than the text could hold");
    }
    Tensor result = Tensor::empty(shape, dtype);
    with_type(dtype, [&]<class T>(T) {
        T* next = result.mutable_data<T>();
        read_list(in, shape, 0, next);
    });
    return result;
}

Tensor read_base64(JsonCursor& in, const Shape& shape, DType dtype) {
    const std::string text = in.string();
    const std::size_t quote = in.start();
    std::vector<std::byte> bytes;
    if (const auto fault = decode_base64(text, bytes)) {
        in.fail(quote + 1 + fault->position, fault->problem);
    }
    const std::size_t item = item_size(dtype);
    const auto count = static_cast<std::uint64_t>(shape.numel());
    if (bytes.size() % item != 0 || bytes.size() / item != count) {
        in.fail(quote, std::to_string(bytes.size()) + " bytes for a " + to_string(shape) + " " +
                           std::string(word(dtype_words, dtype)) + ", which has " +
                           std::to_string(count * item));
    }
    if (dtype == boolean) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (bytes[i] > std::byte{1}) {
                in.fail(quote, "element " + std::to_string(i) + " of a bool is neither 0 nor 1");
            }
        }
    }
    Tensor result = Tensor::empty(shape, dtype);
    with_type(dtype, [&]<class T>(T) {
        if (!bytes.empty()) std::memcpy(result.mutable_data<T>(), bytes.data(), bytes.size());
    });
    return result;
}

/// Gives every NaN of `x` the bits that the file says they had.
void set_nan_bits(JsonCursor& in, std::size_t offset, const std::string& text, Tensor& x) {
    const auto bytes = from_hex(text);
    const bool fits = bytes && is_floating(x.dtype()) && bytes->size() == item_size(x.dtype());
    if (!fits) {
        in.fail(offset, "nan_bits '" + text + "' are not the bits of a " +
                            std::string(word(dtype_words, x.dtype())));
    }
    std::uint64_t bits = 0;
    for (const char c : *bytes) bits = bits << 8 | static_cast<unsigned char>(c);
    const auto set = [&]<class T, class B>(T, B pattern) {
        const T nan = std::bit_cast<T>(pattern);
        if (!std::isnan(nan)) in.fail(offset, "nan_bits '" + text + "' are no NaN");
        T* const values = x.mutable_data<T>();
        for (std::int64_t i = 0; i < x.numel(); ++i) {
            if (std::isnan(values[i])) std::memcpy(values + i, &pattern, sizeof(T));
        }
    };
    if (x.dtype() == f32) {
        set(float{}, static_cast<std::uint32_t>(bits));
    } else {
        set(double{}, bits);
    }
}

/// What a value object holds before it is known which encoding it is.
struct Parts {
    std::string encoding;
    std::size_t encoding_offset = 0;
    std::size_t data_offset = 0;
    bool has_data = false;
    std::string nan_bits;
    std::size_t nan_offset = 0;
};

std::optional<Encoding> find_encoding(std::string_view text) {
    for (const auto& [known, encoding] : encoding_words) {
        if (known == text) return encoding;
    }
    return std::nullopt;
}

void read_data(JsonCursor& in, Encoding encoding, const Shape& shape, DType dtype,
               TraceValue& value) {
    switch (encoding) {
        case Encoding::list: value.data = read_nested(in, shape, dtype); break;
        case Encoding::b64le: value.data = read_base64(in, shape, dtype); break;
        case Encoding::fill: value.data = read_nested(in, {}, dtype); break;
        case Encoding::sample: {
            const auto count = static_cast<std::int64_t>(value.index.size());
            value.data = read_nested(in, {count}, dtype);
            break;
        }
        case Encoding::ref:
        case Encoding::none: in.skip(); break;
    }
}

void check_sample(const JsonCursor& in, std::size_t offset, const Shape& shape,
                  const TraceValue& value) {
    for (const std::int64_t position : value.index) {
        if (position < 0 || position >= shape.numel()) {
            in.fail(offset,
                    "index " + std::to_string(position) + " is outside shape " + to_string(shape));
        }
    }
}

TraceValue::Kind kind_of(Encoding encoding) noexcept {
    switch (encoding) {
        case Encoding::list:
        case Encoding::b64le: return TraceValue::Kind::full;
        case Encoding::fill: return TraceValue::Kind::fill;
        case Encoding::sample: return TraceValue::Kind::sample;
        case Encoding::ref: return TraceValue::Kind::ref;
        case Encoding::none: break;
    }
    return TraceValue::Kind::none;
}

}  // namespace

double read_real(JsonCursor& in) { return read_floating<double>(in); }

std::int64_t read_integer(JsonCursor& in) {
    const Kind kind = in.peek();
    if (kind != Kind::number && kind != Kind::string) fail_kind(in, kind, "an integer");
    const std::string text = kind == Kind::number ? std::string(in.number()) : in.string();
    std::int64_t x = 0;
    switch (parse_number(text, x)) {
        case NumberFault::none: return x;
        case NumberFault::not_a_number: in.fail("'" + text + "' is no integer");
        default: in.fail(text + " does not fit an i64");
    }
}

TraceValue read_value(JsonCursor& in, const Shape& shape, DType dtype) {
    in.peek();
    const std::size_t start = in.start();
    TraceValue value;
    Parts parts;
    bool read_already = false;
    in.members({
        {"enc", JsonCursor::required,
         [&] {
             parts.encoding = in.string();
             parts.encoding_offset = in.start();
         }},
        {"nan_bits", JsonCursor::optional,
         [&] {
             parts.nan_bits = in.string();
             parts.nan_offset = in.start();
         }},
        {"why", JsonCursor::optional, [&] { value.why = in.string(); }},
        {"index", JsonCursor::optional,
         [&] { in.array([&](std::size_t) { value.index.push_back(read_integer(in)); }); }},
        {"uri", JsonCursor::optional, [&] { value.uri = in.string(); }},
        {"key", JsonCursor::optional, [&] { value.key = in.string(); }},
        {"sha256", JsonCursor::optional, [&] { value.sha256 = in.string(); }},
        {"data", JsonCursor::optional,
         [&] {
             in.peek();
             parts.data_offset = in.start();
             parts.has_data = true;
             // Usually the encoding stands before the data, and one pass is enough.
             const auto encoding = find_encoding(parts.encoding);
             if (encoding && (*encoding == Encoding::list || *encoding == Encoding::b64le)) {
                 read_data(in, *encoding, shape, dtype, value);
                 read_already = true;
             } else {
                 in.skip();
             }
         }},
    });
    const auto encoding = find_encoding(parts.encoding);
    if (!encoding) {
        in.fail(parts.encoding_offset,
                "enc '" + parts.encoding + "' is not known (list, b64le, fill, ref, sample, none)");
    }
    value.kind = kind_of(*encoding);
    const bool needs_data = *encoding != Encoding::ref && *encoding != Encoding::none;
    if (needs_data && !parts.has_data) in.fail(start, "'data' is missing");
    if (*encoding == Encoding::ref && (value.uri.empty() || value.key.empty())) {
        in.fail(start, "'uri' or 'key' is missing");
    }
    if (*encoding == Encoding::sample) check_sample(in, start, shape, value);
    if (needs_data && !read_already) {
        in.reread(parts.data_offset, "data",
                  [&] { read_data(in, *encoding, shape, dtype, value); });
    }
    if (!parts.nan_bits.empty() && value.data.defined()) {
        set_nan_bits(in, parts.nan_offset, parts.nan_bits, value.data);
    }
    return value;
}

}  // namespace glassgrad::detail
