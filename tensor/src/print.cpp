// Text of tensors in NumPy's layout: aligned columns, one format for all elements, lines wrapped,
// large tensors summarised. The rules are those of NumPy 1.24 with floatmode 'maxprec'; a tensor
// of rank 0 obeys the options as well.

#include <glassgrad/tensor/tensor.hpp>

#include "dispatch.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>
#include <utility>
#include <vector>

namespace glassgrad {

namespace {

/// A number cut at its point and its `e`: `-12`, `5`, `+03`.
struct Digits {
    std::string integer;
    std::string fraction;
    std::string exponent;
};

/// The fewest digits that name `x` among its type, at most `precision` of them after the point.
template <class T>
Digits digits_of(T x, std::chars_format format, int precision) {
    char buffer[512];
    const auto split = [](std::string_view text) {
        Digits digits;
        const std::size_t e = std::min(text.find('e'), text.size());
        if (e < text.size()) digits.exponent = text.substr(e + 1);
        text = text.substr(0, e);
        const std::size_t point = std::min(text.find('.'), text.size());
        digits.integer = text.substr(0, point);
        if (point < text.size()) digits.fraction = text.substr(point + 1);
        return digits;
    };
    const auto text = [&](std::to_chars_result end) {
        return std::string_view(buffer, static_cast<std::size_t>(end.ptr - buffer));
    };
    Digits digits = split(text(std::to_chars(buffer, std::end(buffer), x, format)));
    if (digits.fraction.size() > static_cast<std::size_t>(precision)) {
        digits = split(text(std::to_chars(buffer, std::end(buffer), x, format, precision)));
        digits.fraction.resize(digits.fraction.find_last_not_of('0') + 1);
    }
    return digits;
}

/// How all elements of one tensor are written.
struct Format {
    bool scientific = false;
    std::size_t precision = 0;
    std::size_t left = 0;      ///< characters before the point
    std::size_t right = 0;     ///< characters after it
    std::size_t exponent = 0;  ///< digits of the exponent
};

template <class T>
Format format_of(const std::vector<T>& values, const PrintOptions& options) {
    Format format;
    format.precision = static_cast<std::size_t>(std::clamp(options.precision, 0, 100));
    const int precision = static_cast<int>(format.precision);
    T largest = 0;
    T smallest = 0;
    bool has_nan = false;
    std::size_t infinity = 0;  // characters of the widest one
    for (const T value : values) {
        if (std::isnan(value)) {
            has_nan = true;
        } else if (std::isinf(value)) {
            infinity = std::max<std::size_t>(infinity, value < 0 ? 4 : 3);
        } else {
            const T size = std::abs(value);
            largest = std::max(largest, size);
            if (size != 0 && (smallest == 0 || size < smallest)) smallest = size;
        }
    }
    format.scientific =
        largest >= T{100000000} ||
        (smallest != 0 && (static_cast<double>(smallest) < 0.0001 || largest / smallest > T{1000}));
    const auto chars = format.scientific ? std::chars_format::scientific : std::chars_format::fixed;
    for (const T value : values) {
        if (!std::isfinite(value)) continue;
        const Digits digits = digits_of(value, chars, precision);
        format.left = std::max(format.left, digits.integer.size());
        format.right = std::max(format.right, digits.fraction.size());
        if (format.scientific)
            format.exponent = std::max(format.exponent, digits.exponent.size() - 1);
    }
    if (format.scientific) {
        format.precision = format.right;
        format.right += format.exponent + 2;
    }
    const std::size_t widest = std::max<std::size_t>(infinity, has_nan ? 3 : 0);
    const std::size_t after = format.right + 1;
    if (widest > after) format.left = std::max(format.left, widest - after);
    return format;
}

std::string padded(std::string_view text, std::size_t width) {
    std::string result(width > text.size() ? width - text.size() : 0, ' ');
    return result.append(text);
}

template <class T>
std::string written(T value, const Format& format) {
    if (!std::isfinite(value)) {
        const std::string_view text = std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
        return padded(text, format.left + format.right + 1);
    }
    const auto chars = format.scientific ? std::chars_format::scientific : std::chars_format::fixed;
    Digits digits = digits_of(value, chars, static_cast<int>(format.precision));
    std::string text = padded(digits.integer, format.left) + '.';
    if (!format.scientific) {
        digits.fraction.resize(format.right, ' ');
        return text + digits.fraction;
    }
    digits.fraction.resize(format.precision, '0');
    const std::size_t missing = format.exponent + 1 - digits.exponent.size();
    digits.exponent.insert(1, missing, '0');
    return text + digits.fraction + 'e' + digits.exponent;
}

/// The layout: which elements are shown, and how their texts are put into lines.
class Layout {
  public:
    Layout(const Shape& shape, const PrintOptions& options)
        : shape_(shape), edge_(shape.numel()), width_(options.line_width) {
        if (shape.numel() > options.threshold) {
            summary_ = true;
            edge_ = std::max<std::int64_t>(1, options.edge_items);
        }
    }

    /// Row-major offsets of the elements shown, in order.
    std::vector<std::int64_t> shown() const {
        std::vector<std::int64_t> offsets{0};
        for (int axis = 0; axis < shape_.rank(); ++axis) {
            std::vector<std::int64_t> longer;
            for (const std::int64_t offset : offsets) {
                for (const std::int64_t i : shown_along(axis)) {
                    if (i >= 0) longer.push_back(offset * shape_[axis] + i);
                }
            }
            offsets = std::move(longer);
        }
        return offsets;
    }

    /// `words` are the texts of the elements shown.
    std::string text(const std::vector<std::string>& words) const {
        std::size_t next = 0;
        return block(0, width_, words, next);
    }

  private:
    /// Indices shown along an axis; -1 stands for the rest.
    std::vector<std::int64_t> shown_along(int axis) const {
        std::vector<std::int64_t> indices;
        const std::int64_t size = shape_[axis];
        const bool cut = summary_ && size > 2 * edge_;
        for (std::int64_t i = 0; i < size; ++i) {
            if (cut && i == edge_) {
                indices.push_back(-1);
                i = size - edge_;
            }
            indices.push_back(i);
        }
        return indices;
    }

    /// One pair of brackets, `width` columns to its right edge.
    std::string block(int axis, int width, const std::vector<std::string>& words,
                      std::size_t& next) const {
        const bool row = axis + 1 == shape_.rank();
        const std::string indent(static_cast<std::size_t>(axis) + 1, ' ');
        const std::string gap(static_cast<std::size_t>(shape_.rank() - axis - 1), '\n');
        std::string text;
        std::string line = indent;
        bool first = true;
        for (const std::int64_t i : shown_along(axis)) {
            if (row) {
                const std::string word = i < 0 ? "..." : words[next++];
                if (!first) line += ' ';
                // A bracket closes the row; a word too long for any line stays where it is.
                const auto end = static_cast<std::int64_t>(line.size() + word.size());
                if (end > width - 1 && line.size() > indent.size()) {
                    line.resize(line.find_last_not_of(' ') + 1);
                    text += line + '\n';
                    line = indent;
                }
                line += word;
            } else {
                if (!first) text += gap;
                text += indent + (i < 0 ? "..." : block(axis + 1, width - 1, words, next));
            }
            first = false;
        }
        if (row) text += line;
        return '[' + text.substr(indent.size()) + ']';
    }

    Shape shape_;
    std::int64_t edge_;
    int width_;
    bool summary_ = false;
};

template <class T>
std::vector<std::string> words_of(const std::vector<T>& values, const PrintOptions& options) {
    const Format format = format_of(values, options);
    std::vector<std::string> words;
    words.reserve(values.size());
    for (const T value : values) words.push_back(written(value, format));
    return words;
}

std::vector<std::string> words_of(const std::vector<std::int64_t>& values, const PrintOptions&) {
    std::vector<std::string> words;
    std::size_t width = 0;
    for (const std::int64_t value : values) {
        words.push_back(std::to_string(value));
        width = std::max(width, words.back().size());
    }
    for (std::string& word : words) word = padded(word, width);
    return words;
}

}  // namespace

std::string to_string(const Tensor& x, const PrintOptions& options) {
    if (!x.defined()) return "undefined";
    if (x.numel() == 0) return "[]";
    const Layout layout(x.shape(), options);
    const std::vector<std::int64_t> shown = layout.shown();
    std::vector<std::string> words;
    detail::with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.template data<T>();
        if constexpr (std::is_same_v<T, bool>) {
            const char* yes = x.rank() == 0 ? "True" : " True";
            for (const std::int64_t i : shown) words.push_back(in[i] ? yes : "False");
        } else {
            std::vector<T> values;
            values.reserve(shown.size());
            for (const std::int64_t i : shown) values.push_back(in[i]);
            words = words_of(values, options);
        }
    });
    return x.rank() == 0 ? words.front() : layout.text(words);
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}  // namespace glassgrad
