#pragma once
// Builds a JSON text piece by piece; commas and nesting are its business, layout the caller's.

#include <glassgrad/tensor/detail/text.hpp>

#include <glassgrad/tensor/error.hpp>

#include <string>
#include <string_view>

namespace glassgrad::detail {

class JsonWriter {
  public:
    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }

    JsonWriter& name(std::string_view member) {
        comma();
        quote(member);
        out_.push_back(':');
        comma_ = false;
        return *this;
    }
    /// The next item begins on a line of its own.
    void line() { line_ = true; }
    /// A line break here, between texts or before a closing bracket.
    void end_line() { out_.push_back('\n'); }
    /// What follows is a new text.
    void new_text() noexcept { comma_ = false; }

    /// Bytes that are no UTF-8 become U+FFFD.
    void text(std::string_view value) {
        comma();
        quote(value);
    }
    void boolean(bool value) { raw(value ? "true" : "false"); }
    void null() { raw("null"); }
    template <class T>
    void number(T value) {
        comma();
        append_number(out_, value);
    }
    /// JSON that is already written.
    void raw(std::string_view json) {
        comma();
        out_.append(json);
    }
    /// For a caller that appends a value itself.
    std::string& value() {
        comma();
        return out_;
    }

    std::string take() { return std::move(out_); }

  private:
    void comma() {
        if (comma_) out_.push_back(',');
        if (line_) out_.append("\n").append(static_cast<std::size_t>(depth_), ' ');
        comma_ = true;
        line_ = false;
    }
    void open(char bracket) {
        comma();
        if (++depth_ > 64) throw ValueError("to_json: nested deeper than 64 levels");
        out_.push_back(bracket);
        comma_ = false;
    }
    void close(char bracket) {
        --depth_;
        out_.push_back(bracket);
        comma_ = true;
    }
    void quote(std::string_view value);

    std::string out_;
    int depth_ = 0;
    bool comma_ = false;
    bool line_ = false;
};

}  // namespace glassgrad::detail
