#pragma once
// Configurations as JSON. A model lists its fields once, in a function
//
//     template <class Config, class Field>
//     void list_fields(Config& config, const Field& field) { field("d_model", config.d_model,
//     needed); … }
//
// which writer and reader call.

#include <glassgrad/layers/activation.hpp>
#include <glassgrad/layers/positions.hpp>
#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad::detail {

/// Behind a field: it has no default.
struct Needed {};
inline constexpr Needed needed;

class ConfigWriter {
  public:
    explicit ConfigWriter(std::string_view architecture);

    template <class T, class... Mark>
    void operator()(std::string_view name, const T& value, Mark...) const {
        out_.line();
        out_.name(name);
        write(value);
    }
    std::string take();

  private:
    void write(std::int64_t value) const;
    void write(double value) const;
    void write(bool value) const;
    void write(Activation value) const;
    void write(RotaryPairing value) const;

    mutable JsonWriter out_;
};

class ConfigReader {
  public:
    template <class T>
    void operator()(std::string_view name, T& value) const {
        fields_.push_back({name, [&value](JsonCursor& in) { read(in, value); }});
    }
    template <class T>
    void operator()(std::string_view name, T& value, Needed) const {
        (*this)(name, value);
        fields_.back().needed = true;
    }
    /// Reads an object with the fields listed. Throws FileError.
    void read(std::string_view architecture, std::string_view text);

  private:
    struct Field {
        std::string_view name;
        std::function<void(JsonCursor&)> read;
        bool needed = false;
    };
    static void read(JsonCursor& in, std::int64_t& value);
    static void read(JsonCursor& in, double& value);
    static void read(JsonCursor& in, bool& value);
    static void read(JsonCursor& in, Activation& value);
    static void read(JsonCursor& in, RotaryPairing& value);
    [[noreturn]] void refuse(JsonCursor& in, std::string_view name) const;

    mutable std::vector<Field> fields_;
};

// For `validate`; `model` begins the text of the ValueError.
void check_size(std::string_view model, std::string_view field, std::int64_t value);
/// As check_size, and 0 may stand for a default.
void check_optional_size(std::string_view model, std::string_view field, std::int64_t value);
void check_heads(std::string_view model, std::int64_t d_model, std::int64_t num_heads);
void check_dropout(std::string_view model, double p);
void check_positive(std::string_view model, std::string_view field, double value);

}  // namespace glassgrad::detail
