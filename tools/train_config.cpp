#include "train_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace glassgrad::tools {
namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
// clang 14 doesn't deduce it for an aggregate.
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class T>
bool parse(std::string_view text, T& value) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string upper(std::string_view text, char from, char to, bool capital) {
    std::string changed(text);
    for (char& c : changed) {
        if (c == from) c = to;
        if (capital && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return changed;
}

std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            out += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
            out += c;
        }
    }
    return out + '"';
}

}  // namespace

std::string Setting::flag() const { return "--" + upper(key, '_', '-', false); }

std::string Setting::environment() const { return "GLASSGRAD_" + upper(key, '_', '_', true); }

Setting::Kind Setting::kind() const {
    return std::visit(Overloaded{
                          [](const std::string*) { return Kind::text; },
                          [](const std::optional<std::string>*) { return Kind::text; },
                          [](const bool*) { return Kind::truth; },
                          [](const std::optional<bool>*) { return Kind::truth; },
                          [](const double*) { return Kind::real; },
                          [](const std::optional<double>*) { return Kind::real; },
                          [](const auto*) { return Kind::whole; },
                      },
                      place);
}

bool Setting::given() const {
    return std::visit(Overloaded{
                          []<class T>(const std::optional<T>* value) { return value->has_value(); },
                          [](const auto*) { return true; },
                      },
                      place);
}

std::string Setting::full_help() const {
    std::string text = help;
    if (!values.empty()) text += ": " + listed(values);
    if (!choice.empty()) text += fmt::format(" (of {} {})", choice, listed(of));
    return text;
}

std::string listed(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
        text += words[i];
    }
    return text;
}

std::string text_of(const Setting& setting) {
    static constexpr Overloaded write{
        [](const std::string& text) { return text; },
        [](const bool& value) { return std::string(value ? "true" : "false"); },
        [](const auto& number) { return fmt::format("{}", number); },
    };
    return std::visit(Overloaded{
                          []<class T>(const std::optional<T>* value) {
                              return *value ? write(**value) : std::string();
                          },
                          [](const auto* value) { return write(*value); },
                      },
                      setting.place);
}

void set(const Setting& setting, std::string_view text, const std::string& where) {
    const auto refuse = [&](std::string_view expected, std::string_view hint = "") {
        throw ConfigError(
            fmt::format("{}: {} is {}, not '{}'{}", where, setting.key, expected, text, hint));
    };
    const Overloaded read{
        [&](std::string& value) {
            const std::vector<std::string>& values = setting.values;
            if (!values.empty() && std::find(values.begin(), values.end(), text) == values.end()) {
                refuse(listed(values), did_you_mean(text, values));
            }
            value = text;
        },
        [&](bool& value) {
            if (text != "true" && text != "false") refuse("true or false");
            value = text == "true";
        },
        [&](double& value) {
            if (!parse(text, value)) refuse("a number");
        },
        [&](std::int64_t& value) {
            if (!parse(text, value)) refuse("a whole number");
        },
        [&](std::uint64_t& value) {
            if (!parse(text, value)) refuse("a whole number that is not negative");
        },
    };
    std::visit(Overloaded{
                   [&]<class T>(std::optional<T>* value) {
                       T got{};
                       read(got);
                       *value = std::move(got);
                   },
                   [&](auto* value) { read(*value); },
               },
               setting.place);
}

void clear(const Setting& setting) {
    std::visit(Overloaded{
                   []<class T>(std::optional<T>* value) { value->reset(); },
                   [](const auto*) {},
               },
               setting.place);
}

std::string to_toml(const TrainConfig& config) {
    TrainConfig copy = config, filled = with_defaults(config);
    const std::vector<Setting> all = settings(copy), effective = settings(filled);
    std::string out;
    std::string section;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Setting& each = all[i];
        if (each.section != section) {
            section = each.section;
            out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
        }
        std::string text = text_of(effective[i]);
        if (!effective[i].given()) {
            text = "# " + each.key;
        } else {
            if (each.kind() == Setting::Kind::text) text = quoted(text);
            // Without a point, TOML takes it for a whole number.
            if (each.kind() == Setting::Kind::real &&
                text.find_first_of(".en") == std::string::npos) {
                text += ".0";
            }
            text = fmt::format("{}{} = {}", each.given() ? "" : "# ", each.key, text);
        }
        out += fmt::format("{:<32} # {}\n", text, each.full_help());
    }
    return out;
}

void read_environment(std::span<const Setting> all,
                      const std::function<const char*(const char*)>& variable) {
    for (const Setting& each : all) {
        const std::string name = each.environment();
        if (const char* text = variable(name.c_str())) set(each, text, name);
    }
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
    std::size_t least = 1 + (name.size() + 2) / 3;
    std::string nearest;
    for (const std::string& each : names) {
        const std::size_t d = distance(name, each);
        if (d >= least) continue;
        least = d;
        nearest = each;
    }
    return nearest.empty() ? nearest : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace glassgrad::tools
