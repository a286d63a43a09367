// Which encoding a tensor gets: a nested list while a person may want to read it, base64 above,
// one element where all are equal, and base64 again where a list would lose bits of a NaN.

#include "value_json.hpp"
#include "vocabulary.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace glassgrad::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "b64le is written from memory");

constexpr std::int64_t longest_list = 1024;
/// Up to here equal elements are written out: a mask of four tokens should look like one.
constexpr std::int64_t shortest_fill = 65;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
constexpr Bits<T> canonical_nan = static_cast<Bits<T>>(sizeof(T) == 4 ? 0x7fc00000ULL
                                                                      : 0x7ff8000000000000ULL);

/// The bits of all NaN of a tensor: none, one kind, or several that no list can tell apart.
struct NanKind {
    bool mixed = false;
    std::string bits;  ///< hexadecimal, where not the plain quiet NaN
};

template <class T>
NanKind nan_kind_of(const Tensor& x) {
    Bits<T> seen = 0;
    for (const T value : x.values<T>()) {
        if (!std::isnan(value)) continue;
        const auto bits = std::bit_cast<Bits<T>>(value);
        if (seen != 0 && seen != bits) return {.mixed = true, .bits = {}};
        seen = bits;
    }
    if (seen == 0 || seen == canonical_nan<T>) return {};
    std::string text;
    for (int byte = static_cast<int>(sizeof(T)) - 1; byte >= 0; --byte) {
        const char c = static_cast<char>(seen >> (8 * byte) & 255U);
        text += to_hex({&c, 1});
    }
    return {.mixed = false, .bits = text};
}

NanKind nan_kind(const Tensor& x) {
    if (x.dtype() == f32) return nan_kind_of<float>(x);
    if (x.dtype() == f64) return nan_kind_of<double>(x);
    return {};
}

/// Lists that a nested list of `shape` has, up to a bound: (1000000, 0) is no list to write out.
bool is_list_short(const Shape& shape) {
    std::int64_t lists = 1;
    for (const std::int64_t size : shape) {
        if (size == 0) return true;
        if (size > longest_list / lists) return false;
        lists *= size;
    }
    return true;
}

bool all_bits_equal(const Tensor& x) {
    const std::size_t item = item_size(x.dtype());
    const std::size_t bytes = item * static_cast<std::size_t>(x.numel());
    return std::memcmp(x.bytes(), x.bytes() + item, bytes - item) == 0;
}

template <class T>
void append_element(std::string& out, T x) {
    if constexpr (std::is_same_v<T, bool>) {
        out.append(x ? "true" : "false");
    } else if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(x)) {
            out.append("\"NaN\"");
        } else if (std::isinf(x)) {
            out.append(x > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        } else {
            append_number(out, x);
        }
    } else {
        append_number(out, x);
    }
}

template <class T>
void append_list(std::string& out, const Shape& shape, int axis, const T*& next) {
    if (axis == shape.rank()) {
        append_element(out, *next++);
        return;
    }
    out.push_back('[');
    for (std::int64_t i = 0; i < shape[axis]; ++i) {
        if (i > 0) out.push_back(',');
        append_list(out, shape, axis + 1, next);
    }
    out.push_back(']');
}

void append_nested(std::string& out, const Tensor& x) {
    const auto append = [&]<class T>(T) {
        const T* next = x.data<T>();
        append_list(out, x.shape(), 0, next);
    };
    switch (x.dtype()) {
        case DType::f32: append(float{}); break;
        case DType::f64: append(double{}); break;
        case DType::i64: append(std::int64_t{}); break;
        case DType::boolean: append(bool{}); break;
    }
}

void write_encoding(JsonWriter& out, Encoding encoding) {
    out.name("enc").text(word(encoding_words, encoding));
}

void write_list(JsonWriter& out, Encoding encoding, const Tensor& x, const NanKind& nan) {
    write_encoding(out, encoding);
    if (!nan.bits.empty()) out.name("nan_bits").text(nan.bits);
    append_nested(out.name("data").value(), x);
}

void write_base64(JsonWriter& out, const Tensor& x) {
    write_encoding(out, Encoding::b64le);
    std::string& text = out.name("data").value();
    text.push_back('"');
    const auto count = static_cast<std::size_t>(x.numel());
    append_base64(text, {x.bytes(), count * item_size(x.dtype())});
    text.push_back('"');
}

void write_full(JsonWriter& out, const Tensor& x) {
    if (x.numel() >= shortest_fill && all_bits_equal(x)) {
        Tensor one = Tensor::empty({}, x.dtype());
        switch (x.dtype()) {
            case DType::f32: *one.mutable_data<float>() = *x.data<float>(); break;
            case DType::f64: *one.mutable_data<double>() = *x.data<double>(); break;
            case DType::i64: *one.mutable_data<std::int64_t>() = *x.data<std::int64_t>(); break;
            case DType::boolean: *one.mutable_data<bool>() = *x.data<bool>(); break;
        }
        write_list(out, Encoding::fill, one, nan_kind(one));
        return;
    }
    const NanKind nan = nan_kind(x);
    if (nan.mixed || !is_list_short(x.shape())) {
        write_base64(out, x);
    } else {
        write_list(out, Encoding::list, x, nan);
    }
}

void write_sample(JsonWriter& out, const TraceValue& value) {
    write_encoding(out, Encoding::sample);
    if (!value.why.empty()) out.name("why").text(value.why);
    out.name("index").begin_array();
    for (const std::int64_t position : value.index) out.number(position);
    out.end_array();
    if (const NanKind nan = nan_kind(value.data); !nan.bits.empty()) {
        out.name("nan_bits").text(nan.bits);
    }
    append_nested(out.name("data").value(), value.data);
}

}  // namespace

void write_real(JsonWriter& out, double x) { append_element(out.value(), x); }

void write_value(JsonWriter& out, const TraceTensor& tensor) {
    const TraceValue& value = tensor.value;
    out.begin_object();
    switch (value.kind) {
        case TraceValue::Kind::full: write_full(out, value.data); break;
        case TraceValue::Kind::fill:
            write_list(out, Encoding::fill, value.data, nan_kind(value.data));
            break;
        case TraceValue::Kind::sample: write_sample(out, value); break;
        case TraceValue::Kind::ref:
            write_encoding(out, Encoding::ref);
            out.name("uri").text(value.uri);
            out.name("key").text(value.key);
            if (!value.sha256.empty()) out.name("sha256").text(value.sha256);
            break;
        case TraceValue::Kind::none:
            write_encoding(out, Encoding::none);
            if (!value.why.empty()) out.name("why").text(value.why);
            break;
    }
    out.end_object();
}

}  // namespace glassgrad::detail
