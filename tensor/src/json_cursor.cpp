#include <glassgrad/tensor/detail/json_cursor.hpp>

#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace glassgrad::detail {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The names of one object, to find a name that comes twice.
class Names {
  public:
    bool insert(std::string_view name) {
        if (!many_.empty()) return many_.emplace(name).second;
        if (std::find(few_.begin(), few_.end(), name) != few_.end()) return false;
        few_.emplace_back(name);
        if (few_.size() == 16) many_.insert(few_.begin(), few_.end());
        return true;
    }

  private:
    std::vector<std::string> few_;
    std::set<std::string, std::less<>> many_;
};

void append_utf8(std::string& out, unsigned code) {
    const auto put = [&](unsigned byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6);
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

/// A character of a text that an error can show, or its byte.
std::string shown(char c) {
    return c > ' ' && c < 0x7F ? std::string(1, c) : "byte 0x" + to_hex({&c, 1});
}

}  // namespace

std::string_view describe(JsonCursor::Kind kind) noexcept {
    switch (kind) {
        case JsonCursor::Kind::object: return "an object";
        case JsonCursor::Kind::array: return "an array";
        case JsonCursor::Kind::string: return "a text";
        case JsonCursor::Kind::number: return "a number";
        case JsonCursor::Kind::boolean: return "true or false";
        case JsonCursor::Kind::null: return "null";
    }
    return "";
}

void JsonCursor::fail(std::size_t offset, std::string problem) const {
    std::string path;
    for (const PathPart& part : path_) {
        if (part.index != no_index) {
            path.append(fmt::format("[{}]", part.index));
        } else {
            path.append(path.empty() ? "" : ".").append(part.name);
        }
    }
    throw JsonFailure{offset, std::move(path), std::move(problem)};
}

void JsonCursor::skip_blanks() noexcept {
    while (offset_ < text_.size()) {
        const char c = text_[offset_];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
        ++offset_;
    }
}

char JsonCursor::next() {
    skip_blanks();
    start_ = offset_;
    if (offset_ == text_.size()) fail("the text ends too early");
    return text_[offset_];
}

void JsonCursor::stray() {
    const std::string_view rest = text_.substr(offset_);
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"}) {
        if (rest.starts_with(word)) {
            fail(fmt::format(R"({} is no JSON; write the text "NaN", "Infinity" or "-Infinity")",
                             word));
        }
    }
    fail(fmt::format("unexpected {}", shown(rest.front())));
}

JsonCursor::Kind JsonCursor::peek() {
    switch (const char c = next()) {
        case '{': return Kind::object;
        case '[': return Kind::array;
        case '"': return Kind::string;
        case 't':
        case 'f': return Kind::boolean;
        case 'n':
            if (text_.substr(offset_).starts_with("nan")) stray();
            return Kind::null;
        default:
            if (c == '-' ? offset_ + 1 < text_.size() && !is_digit(text_[offset_ + 1])
                         : !is_digit(c)) {
                stray();
            }
            return Kind::number;
    }
}

void JsonCursor::expect(char c, std::string_view where) {
    if (next() != c) {
        fail(fmt::format("expected {} {}, not {}", c, where, shown(text_[offset_])));
    }
    ++offset_;
}

void JsonCursor::fail_kind(std::string_view wanted, Kind kind) const {
    fail(fmt::format("{} is expected, not {}", wanted, describe(kind)));
}

void JsonCursor::enter() {
    if (++depth_ > max_json_depth) {
        fail(fmt::format("nested deeper than {} levels", max_json_depth));
    }
}

void JsonCursor::object(FunctionRef<void(std::string_view)> read) {
    if (const Kind kind = peek(); kind != Kind::object) {
        fail_kind("an object", kind);
    }
    enter();
    ++offset_;
    Names names;
    if (next() == '}') {
        ++offset_;
        leave();
        return;
    }
    while (true) {
        if (next() != '"') fail("a member name in double quotes is expected");
        const std::size_t name_start = start_;
        std::string name = string();
        if (name.size() > max_json_name_bytes) {
            fail(name_start, fmt::format("a member name of {} bytes, above the limit of {}",
                                         name.size(), max_json_name_bytes));
        }
        if (!names.insert(name)) fail(name_start, fmt::format("member '{}' comes twice", name));
        expect(':', "after a member name");
        path_.push_back({name, no_index});
        read(name);
        path_.pop_back();
        if (next() == '}') break;
        if (text_[offset_] != ',') fail("expected , or } after a member");
        ++offset_;
        if (next() == '}') fail("a comma before }");
    }
    ++offset_;
    leave();
}

void JsonCursor::array(FunctionRef<void(std::size_t)> read) {
    if (const Kind kind = peek(); kind != Kind::array) {
        fail_kind("an array", kind);
    }
    enter();
    ++offset_;
    if (next() == ']') {
        ++offset_;
        leave();
        return;
    }
    path_.push_back({{}, 0});
    while (true) {
        read(path_.back().index);
        if (next() == ']') break;
        if (text_[offset_] != ',') fail("expected , or ] after an item");
        ++offset_;
        if (next() == ']') fail("a comma before ]");
        ++path_.back().index;
    }
    path_.pop_back();
    ++offset_;
    leave();
}

void JsonCursor::members(std::initializer_list<Member> known) {
    peek();
    const std::size_t object_start = start_;
    std::uint64_t seen = 0;
    object([&](std::string_view name) {
        std::uint64_t bit = 1;
        for (const Member& member : known) {
            if (member.name == name) {
                seen |= bit;
                member.read();
                return;
            }
            bit <<= 1;
        }
        skip();
    });
    std::uint64_t bit = 1;
    for (const Member& member : known) {
        if (member.required && (seen & bit) == 0) {
            fail(object_start, fmt::format("'{}' is missing", member.name));
        }
        bit <<= 1;
    }
}

std::string JsonCursor::string() {
    if (const Kind kind = peek(); kind != Kind::string) {
        fail_kind("a text", kind);
    }
    std::string out;
    ++offset_;
    while (true) {
        const std::size_t run = offset_;
        while (offset_ < text_.size() && text_[offset_] != '"' && text_[offset_] != '\\' &&
               static_cast<unsigned char>(text_[offset_]) >= 0x20) {
            ++offset_;
        }
        out.append(text_.substr(run, offset_ - run));
        if (offset_ == text_.size()) fail(offset_, "the text ends inside quotes");
        const char c = text_[offset_];
        if (c == '"') break;
        if (c != '\\') fail(offset_, "a control character inside quotes must be escaped");
        escape(out);
    }
    ++offset_;
    return out;
}

void JsonCursor::escape(std::string& out) {
    const std::size_t escape_start = offset_++;
    if (offset_ == text_.size()) fail(offset_, "the text ends inside quotes");
    switch (const char c = text_[offset_++]) {
        case '"':
        case '\\':
        case '/': out.push_back(c); return;
        case 'b': out.push_back('\b'); return;
        case 'f': out.push_back('\f'); return;
        case 'n': out.push_back('\n'); return;
        case 'r': out.push_back('\r'); return;
        case 't': out.push_back('\t'); return;
        case 'u': break;
        default: fail(escape_start, "an escape that JSON does not have");
    }
    unsigned code = hex4();
    if (code >= 0xD800 && code < 0xDC00) {
        if (!text_.substr(offset_).starts_with("\\u")) fail(escape_start, "half a surrogate pair");
        offset_ += 2;
        const unsigned low = hex4();
        if (low < 0xDC00 || low > 0xDFFF) fail(escape_start, "half a surrogate pair");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
        fail(escape_start, "half a surrogate pair");
    }
    append_utf8(out, code);
}

unsigned JsonCursor::hex4() {
    if (text_.size() - offset_ < 4) fail(text_.size(), "the text ends inside quotes");
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
        const char c = text_[offset_++];
        const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c;
        if (!is_digit(lower) && (lower < 'a' || lower > 'f')) {
            fail(offset_ - 1, "four hexadecimal digits are expected after \\u");
        }
        code = code * 16 + static_cast<unsigned>(is_digit(lower) ? lower - '0' : lower - 'a' + 10);
    }
    return code;
}

std::string_view JsonCursor::number() {
    if (const Kind kind = peek(); kind != Kind::number) {
        fail_kind("a number", kind);
    }
    const auto at = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
    const auto digits = [&](std::string_view where) {
        if (offset_ == text_.size()) fail(offset_, "the text ends inside a number");
        if (!is_digit(at(offset_))) fail(offset_, fmt::format("a digit is expected {}", where));
        while (is_digit(at(offset_))) ++offset_;
    };
    if (at(offset_) == '-') ++offset_;
    if (at(offset_) == '0' && is_digit(at(offset_ + 1))) fail("a number with a leading zero");
    digits("in a number");
    if (at(offset_) == '.') {
        ++offset_;
        digits("after the point");
    }
    if (at(offset_) == 'e' || at(offset_) == 'E') {
        ++offset_;
        if (at(offset_) == '+' || at(offset_) == '-') ++offset_;
        digits("in the exponent");
    }
    return text_.substr(start_, offset_ - start_);
}

template <class T>
T JsonCursor::whole(std::string_view range) {
    const std::string_view text = number();
    T x = 0;
    switch (parse_number(text, x)) {
        case NumberFault::none: return x;
        case NumberFault::not_a_number:
            // from_chars knows no sign for an unsigned type.
            if (text.find_first_of(".eE") == std::string_view::npos) {
                fail(fmt::format("{} is negative", text));
            }
            fail(fmt::format("{} is no integer", text));
        default: fail(fmt::format("{} does not fit {}", text, range));
    }
}

std::int64_t JsonCursor::integer() { return whole<std::int64_t>("an i64"); }
std::uint64_t JsonCursor::unsigned_integer() { return whole<std::uint64_t>("64 bits"); }

double JsonCursor::real() {
    const std::string_view text = number();
    double x = 0;
    switch (parse_number(text, x)) {
        case NumberFault::none: return x;
        case NumberFault::too_small:
            fail(fmt::format("{} is too small for f64: it would become zero", text));
        default: fail(fmt::format("{} is out of range for f64", text));
    }
}

void JsonCursor::literal(std::string_view word) {
    const std::string_view rest = text_.substr(offset_);
    if (!rest.starts_with(word)) {
        if (word.starts_with(rest)) fail(text_.size(), "the text ends too early");
        stray();
    }
    offset_ += word.size();
}

bool JsonCursor::boolean() {
    if (const Kind kind = peek(); kind != Kind::boolean) {
        fail_kind("true or false", kind);
    }
    const bool value = text_[offset_] == 't';
    literal(value ? "true" : "false");
    return value;
}

void JsonCursor::null() {
    if (const Kind kind = peek(); kind != Kind::null) {
        fail_kind("null", kind);
    }
    literal("null");
}

void JsonCursor::skip() {
    switch (peek()) {
        case Kind::object: object([this](std::string_view) { skip(); }); return;
        case Kind::array: array([this](std::size_t) { skip(); }); return;
        case Kind::string: string(); return;
        case Kind::number: number(); return;
        case Kind::boolean: boolean(); return;
        case Kind::null: null(); return;
    }
}

void JsonCursor::finish() {
    skip_blanks();
    start_ = offset_;
    if (offset_ != text_.size()) fail("more text after the end");
}

void JsonCursor::reread(std::size_t offset, std::string_view name, FunctionRef<void()> read) {
    const std::size_t back = offset_;
    offset_ = offset;
    path_.push_back({std::string(name), no_index});
    read();
    path_.pop_back();
    offset_ = back;
}

void check_json_start(std::string_view text) {
    if (text.empty()) throw JsonFailure{0, {}, "the file is empty"};
    if (text.starts_with("\xEF\xBB\xBF")) {
        throw JsonFailure{0, {}, "a byte order mark before the JSON"};
    }
}

void check_utf8(std::string_view text) {
    const std::size_t bad = find_invalid_utf8(text);
    if (bad == std::string_view::npos) return;
    throw JsonFailure{bad, {}, fmt::format("byte 0x{} is not UTF-8", to_hex(text.substr(bad, 1)))};
}

std::string describe(const JsonFailure& failure, std::string_view text) {
    const std::string_view before = text.substr(0, failure.offset);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::string_view row = before.substr(before.find_last_of('\n') + 1);
    const auto column = std::count_if(row.begin(), row.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    });
    std::string told = failure.path + (failure.path.empty() ? "" : ": ") + failure.problem;
    // Names and texts of the file are in it, which may have escaped control characters.
    for (std::size_t i = 0; i < told.size(); ++i) {
        const char c = told[i];
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7F)
            told.replace(i, 1, "\\x" + to_hex({&c, 1}));
    }
    return fmt::format("line {}, column {}: {}", line, column + 1, told);
}

void read_json(std::string_view text, std::string_view where, FunctionRef<void(JsonCursor&)> read) {
    try {
        check_json_start(text);
        check_utf8(text);
        JsonCursor in(text);
        read(in);
        in.finish();
    } catch (const JsonFailure& failure) {
        throw FileError(std::string(where) + describe(failure, text));
    }
}

}  // namespace glassgrad::detail
