// One array, or many in an archive.

#include "info.hpp"
#include "output.hpp"

#include <glassgrad/trace.hpp>

#include <algorithm>
#include <cmath>

namespace glassgrad::tools {
namespace {

constexpr std::size_t listed_values = 8;

/// The first values, as they are printed in traces: exact and short.
std::string first_values(const Tensor& x) {
    const auto n = std::min(static_cast<std::size_t>(x.numel()), listed_values);
    std::string text;
    const auto list = [&]<class T>(T) {
        for (std::size_t i = 0; i < n; ++i) {
            text += fmt::format("{}{}", i == 0 ? "" : " ", x.data<T>()[i]);
        }
    };
    switch (x.dtype()) {
        case DType::f32: list(float{}); break;
        case DType::f64: list(double{}); break;
        case DType::i64: list(std::int64_t{}); break;
        case DType::boolean: list(bool{}); break;
    }
    if (static_cast<std::size_t>(x.numel()) > n) text += " ...";
    return text;
}

std::string float_statistics(const TraceStats& stats) {
    std::string text = "no finite value";
    if (stats.finite() > 0) {
        text = fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}  std {:.6g}", stats.min, stats.max,
                           stats.mean, stats.std);
    }
    if (stats.nan > 0) text += fmt::format("  NaN {}", stats.nan);
    if (stats.pinf > 0) text += fmt::format("  +inf {}", stats.pinf);
    if (stats.ninf > 0) text += fmt::format("  -inf {}", stats.ninf);
    return text;
}

template <class T>
std::int64_t first_nan_of(const Tensor& x) {
    const auto values = x.values<T>();
    const auto place =
        std::find_if(values.begin(), values.end(), [](T value) { return std::isnan(value); });
    return place == values.end() ? -1 : place - values.begin();
}

/// The place of the first NaN, `(2, 3)`, or nothing.
std::string first_nan(const Tensor& x) {
    if (!is_floating(x.dtype())) return {};
    std::int64_t offset = x.dtype() == f32 ? first_nan_of<float>(x) : first_nan_of<double>(x);
    if (offset < 0) return {};
    Shape index = x.shape();
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
        index[axis] = offset % x.shape()[axis];
        offset /= x.shape()[axis];
    }
    return to_string(index);
}

/// The characters that a terminal shows: bytes that don't continue one.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

std::string padded(std::string_view text, std::size_t columns) {
    const std::size_t shown = width(text);
    return std::string(text) + std::string(shown < columns ? columns - shown : 0, ' ');
}

}  // namespace

std::string count(std::size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string statistics(const Tensor& x) {
    if (x.numel() == 0) return {};
    if (is_floating(x.dtype())) return float_statistics(tensor_stats(x));
    if (x.dtype() == boolean) {
        const auto values = x.values<bool>();
        return fmt::format("true {}", std::count(values.begin(), values.end(), true));
    }
    const auto values = x.values<std::int64_t>();
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return fmt::format("min {}  max {}", *low, *high);
}

void TensorList::add(std::string_view name, std::string_view type, const Tensor& x) {
    const std::string safe = printable(name);
    elements_ += static_cast<std::size_t>(x.numel());
    lines_.push_back({safe, fmt::format("{} {}", type, to_string(x.shape())), statistics(x)});
    if (const std::string place = first_nan(x); !place.empty()) {
        warn(fmt::format("{} has NaN, the first at {}", safe, place));
    }
}

std::string TensorList::text() const {
    constexpr std::size_t widest = 60;
    std::size_t names = 0;
    std::size_t whats = 0;
    for (const Line& line : lines_) {
        names = std::max(names, std::min(width(line.name), widest));
        whats = std::max(whats, width(line.what));
    }
    std::string text;
    for (const Line& line : lines_) {
        std::string row = fmt::format("{}  {}  {}", padded(line.name, names),
                                      padded(line.what, whats), line.figures);
        row.erase(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    }
    return text;
}

std::string describe_array(const std::string& path) {
    const Tensor x = load_npy(path);
    std::string text = fmt::format("array {} {}, {}\n", name(x.dtype()), to_string(x.shape()),
                                   count(static_cast<std::size_t>(x.numel()), "element"));
    if (x.numel() > 0) {
        if (x.dtype() != boolean) text += fmt::format("{}\n", statistics(x));
        text += fmt::format("first {}\n", first_values(x));
    }
    return text;
}

std::string describe_npz(const std::string& path) {
    const NpzReader archive(path);
    TensorList list;
    for (const std::string& each : archive.names()) {
        const Tensor x = archive.load(each);
        list.add(each, name(x.dtype()), x);
    }
    std::string text = fmt::format("archive of {}, {}\n", count(archive.names().size(), "array"),
                                   count(list.elements(), "element"));
    text += list.text();
    for (const std::string& other : archive.others()) {
        text += fmt::format("{}  no array\n", printable(other));
    }
    return text;
}

std::string describe_safetensors(const std::string& path) {
    const SafetensorsReader file(path);
    TensorList list;
    for (const std::string& name : file.names())
        list.add(name, file.info(name).dtype, file.load(name));
    std::string text = fmt::format("safetensors of {}, {}\n", count(file.names().size(), "tensor"),
                                   count(list.elements(), "element"));
    const std::string run = describe_checkpoint(path, file.metadata());
    text += run;
    for (const auto& [name, value] : file.metadata()) {
        if (!run.empty()) break;
        text += fmt::format("metadata {}: {}\n", printable(name), printable(value));
    }
    return text + list.text();
}

}  // namespace glassgrad::tools
