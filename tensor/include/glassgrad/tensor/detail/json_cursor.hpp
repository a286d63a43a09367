#pragma once
// A strict RFC 8259 reader that walks over a text and builds no tree: callers say what they expect
// and where they are is known at any time, so every refusal has a line, a column and a path.
// Duplicate members and nesting beyond 64 are refused everywhere, also in what is skipped.
//
//     read_json(text, "load_config: " + path + ": ", [&](JsonCursor& in) {
//         in.object([&](std::string_view name) { ... });
//     });

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad::detail {

inline constexpr int max_json_depth = 64;
inline constexpr std::size_t max_json_name_bytes = 4096;

/// Why a text was refused. The reader turns it into a FileError.
struct JsonFailure {
    std::size_t offset;
    std::string path;  ///< `tensors[2].value.data`, empty for the whole text
    std::string problem;
};

/// A reference to something callable that outlives the call.
template <class Signature>
class FunctionRef;
template <class... Arguments>
class FunctionRef<void(Arguments...)> {
  public:
    template <class F>
    FunctionRef(const F& f)
        : object_(&f), call_([](const void* object, Arguments... arguments) {
              (*static_cast<const F*>(object))(arguments...);
          }) {}
    void operator()(Arguments... arguments) const { call_(object_, arguments...); }

  private:
    const void* object_;
    void (*call_)(const void*, Arguments...);
};

class JsonCursor {
  public:
    enum class Kind { object, array, string, number, boolean, null };

    struct Member {
        std::string_view name;
        bool required;
        FunctionRef<void()> read;
    };
    static constexpr bool required = true;
    static constexpr bool optional = false;

    explicit JsonCursor(std::string_view text) noexcept : text_(text) {}

    /// What comes next, after blanks.
    Kind peek();
    /// Reads an object; members not listed are skipped.
    void members(std::initializer_list<Member> known);
    /// Reads an object; `read` gets each name and must read or skip its value.
    void object(FunctionRef<void(std::string_view)> read);
    /// Reads an array; `read` gets each index and must read or skip its item.
    void array(FunctionRef<void(std::size_t)> read);
    std::string string();
    /// The number as it is written.
    std::string_view number();
    /// The number as its value; `2.0` and `2e0` are no integers, and none is rounded or wraps.
    std::int64_t integer();
    std::uint64_t unsigned_integer();
    /// The nearest double; refused where it would be infinite, or zero without being written so.
    double real();
    bool boolean();
    void null();
    void skip();
    /// Refuses anything but blanks up to the end.
    void finish();

    /// Where the last thing read began.
    std::size_t start() const noexcept { return start_; }
    std::size_t offset() const noexcept { return offset_; }
    std::size_t remaining() const noexcept { return text_.size() - offset_; }

    /// Reads again what begins at `offset`, as the member `name` of the object at hand.
    void reread(std::size_t offset, std::string_view name, FunctionRef<void()> read);

    /// Refuses what was read last, or what begins at `offset`.
    [[noreturn]] void fail(std::string problem) const { fail(start_, std::move(problem)); }
    [[noreturn]] void fail(std::size_t offset, std::string problem) const;

  private:
    static constexpr std::size_t no_index = ~std::size_t{0};
    struct PathPart {
        std::string name;
        std::size_t index;  ///< no_index for a member
    };

    void skip_blanks() noexcept;
    char next();  ///< the next character that is no blank
    void expect(char c, std::string_view where);
    void enter();
    void leave() noexcept { --depth_; }
    void literal(std::string_view word);
    void escape(std::string& out);
    unsigned hex4();
    template <class T>
    T whole(std::string_view range);
    [[noreturn]] void stray();
    [[noreturn]] void fail_kind(std::string_view wanted, Kind kind) const;

    std::string_view text_;
    std::size_t offset_ = 0;
    std::size_t start_ = 0;
    int depth_ = 0;
    std::vector<PathPart> path_;
};

/// "an object", "a number": for messages.
std::string_view describe(JsonCursor::Kind kind) noexcept;

/// Throws JsonFailure for an empty text and for a byte order mark.
void check_json_start(std::string_view text);
/// Throws JsonFailure at the first byte that is not UTF-8.
void check_utf8(std::string_view text);
/// `line 3, column 14: path: problem`, columns counted in characters from 1.
std::string describe(const JsonFailure& failure, std::string_view text);

/// Hands a cursor over all of `text` to `read`, which must read one value; nothing may follow it.
/// What is refused is thrown as a FileError: `where`, then the position, the path and the problem.
void read_json(std::string_view text, std::string_view where, FunctionRef<void(JsonCursor&)> read);

}  // namespace glassgrad::detail
