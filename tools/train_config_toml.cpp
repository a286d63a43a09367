#include "train_config.hpp"

#include <fmt/format.h>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>

namespace glassgrad::tools {
namespace {

std::string at(const std::string& source, const toml::source_region& region) {
    return fmt::format("{}:{}:{}", source, region.begin.line, region.begin.column);
}

/// The value as `set` reads it. Text stays text: `lr = "1"` is refused where a number is wanted.
std::string plain(const Setting& setting, const toml::node& node, const std::string& where) {
    using Kind = Setting::Kind;
    const Kind kind = setting.kind();
    if (kind == Kind::text) {
        if (const auto* text = node.as_string()) return text->get();
    } else {
        if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
        if (const auto* value = node.as_integer()) return std::to_string(value->get());
        if (const auto* value = node.as_floating_point()) {
            std::string number = fmt::format("{}", value->get());
            // 12.0 is a fraction's notation, which a count doesn't take.
            if (number.find_first_of(".en") == std::string::npos && kind != Kind::real) {
                number += ".0";
            }
            return number;
        }
    }
    throw ConfigError(fmt::format("{}: {} is {}", where, setting.key,
                                  kind == Kind::text    ? "a text in quotes"
                                  : kind == Kind::truth ? "true or false"
                                                        : "a number"));
}

}  // namespace

void read_toml(std::span<const Setting> all, std::string_view text, const std::string& source) {
    toml::table document;
    try {
        document = toml::parse(text, source);
    } catch (const toml::parse_error& error) {
        throw ConfigError(fmt::format("{}: {}", at(source, error.source()), error.description()));
    }
    std::vector<std::string> sections, names;
    for (const Setting& each : all) {
        if (sections.empty() || sections.back() != each.section) sections.push_back(each.section);
        names.push_back(each.section + '.' + each.key);
    }
    for (const auto& [section, content] : document) {
        const std::string section_name(section.str());
        const toml::table* table = content.as_table();
        if (table == nullptr ||
            std::find(sections.begin(), sections.end(), section_name) == sections.end()) {
            // A key that stands outside its section.
            for (const Setting& each : all) {
                if (table == nullptr && each.key == section_name) {
                    throw ConfigError(fmt::format("{}: '{}' belongs under [{}]",
                                                  at(source, section.source()), section_name,
                                                  each.section));
                }
            }
            throw ConfigError(fmt::format("{}: unknown {} '{}'{}", at(source, section.source()),
                                          table == nullptr ? "key" : "section", section_name,
                                          did_you_mean(section_name, sections)));
        }
        for (const auto& [key, value] : *table) {
            const std::string name = section_name + '.' + std::string(key.str());
            const auto found = std::find(names.begin(), names.end(), name);
            if (found == names.end()) {
                throw ConfigError(fmt::format("{}: unknown key '{}'{}", at(source, key.source()),
                                              name, did_you_mean(name, names)));
            }
            const Setting& setting = all[static_cast<std::size_t>(found - names.begin())];
            const std::string where = at(source, value.source());
            set(setting, plain(setting, value, where), where);
        }
    }
}

}  // namespace glassgrad::tools
