#include "config_json.hpp"

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace glassgrad::detail {
namespace {

/// Insertions, deletions and exchanges that make b of a.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
        }
    }
    return row[b.size()];
}

/// A text that `parse` reads; its ValueError is told with the place in the file.
template <class T>
void read_named(JsonCursor& in, T& value, T (*parse)(std::string_view)) {
    const std::string text = in.string();
    std::string problem;
    try {
        value = parse(text);
        return;
    } catch (const ValueError& error) {
        problem = error.what();
    }
    in.fail(problem);
}

}  // namespace

ConfigWriter::ConfigWriter(std::string_view architecture) {
    out_.begin_object();
    out_.line();
    out_.name("architecture").text(architecture);
}
void ConfigWriter::write(std::int64_t value) const { out_.number(value); }
void ConfigWriter::write(double value) const { out_.number(value); }
void ConfigWriter::write(bool value) const { out_.boolean(value); }
void ConfigWriter::write(Activation value) const { out_.text(name(value)); }
void ConfigWriter::write(RotaryPairing value) const { out_.text(name(value)); }

std::string ConfigWriter::take() {
    out_.end_line();
    out_.end_object();
    out_.end_line();
    return out_.take();
}

void ConfigReader::read(JsonCursor& in, std::int64_t& value) { value = in.integer(); }
void ConfigReader::read(JsonCursor& in, double& value) { value = in.real(); }
void ConfigReader::read(JsonCursor& in, bool& value) { value = in.boolean(); }
void ConfigReader::read(JsonCursor& in, Activation& value) {
    read_named(in, value, activation_from);
}
void ConfigReader::read(JsonCursor& in, RotaryPairing& value) {
    read_named(in, value, rotary_pairing_from);
}

void ConfigReader::refuse(JsonCursor& in, std::string_view name) const {
    const auto distance = [&](const Field& field) { return edit_distance(name, field.name); };
    const auto nearest =
        std::min_element(fields_.begin(), fields_.end(),
                         [&](const Field& a, const Field& b) { return distance(a) < distance(b); });
    std::string problem = "there is no such member";
    if (nearest != fields_.end() && distance(*nearest) <= 1 + nearest->name.size() / 3) {
        problem += fmt::format("; did you mean '{}'", nearest->name);
    }
    in.fail(problem);
}

void ConfigReader::read(std::string_view architecture, std::string_view text) {
    std::vector<bool> seen(fields_.size());
    read_json(text, fmt::format("{}_config: ", architecture), [&](JsonCursor& in) {
        in.peek();
        const std::size_t begin = in.offset();
        in.object([&](std::string_view name) {
            if (name == "architecture") {
                const std::string found = in.string();
                if (found != architecture) {
                    in.fail(fmt::format("'{}' is not '{}'", found, architecture));
                }
                return;
            }
            const auto same = [&](const Field& field) { return field.name == name; };
            const auto field = std::find_if(fields_.begin(), fields_.end(), same);
            if (field == fields_.end()) refuse(in, name);
            field->read(in);
            seen[static_cast<std::size_t>(field - fields_.begin())] = true;
        });
        for (std::size_t i = 0; i < fields_.size(); ++i) {
            if (fields_[i].needed && !seen[i]) {
                in.fail(begin, fmt::format("the member '{}' is missing", fields_[i].name));
            }
        }
    });
}

void check_size(std::string_view model, std::string_view field, std::int64_t value) {
    // Files of models hold sizes of 32 bits; products of two of them don't overflow.
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (value < 1 || value > most) {
        throw ValueError(fmt::format("{}: {} {} is outside 1 to {}", model, field, value, most));
    }
}

void check_optional_size(std::string_view model, std::string_view field, std::int64_t value) {
    if (value != 0) check_size(model, field, value);
}

void check_heads(std::string_view model, std::int64_t d_model, std::int64_t num_heads) {
    if (d_model % num_heads != 0) {
        throw ValueError(fmt::format("{}: d_model {} is not a multiple of num_heads {}", model,
                                     d_model, num_heads));
    }
}

void check_dropout(std::string_view model, double p) {
    if (!(p >= 0 && p < 1)) {
        throw ValueError(fmt::format("{}: dropout {} is not in [0, 1)", model, p));
    }
}

void check_positive(std::string_view model, std::string_view field, double value) {
    if (!(value > 0) || std::isinf(value)) {
        throw ValueError(
            fmt::format("{}: {} {} is not a finite number above 0", model, field, value));
    }
}

}  // namespace glassgrad::detail
