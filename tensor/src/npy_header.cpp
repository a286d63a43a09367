#include "npy_header.hpp"

#include "fail.hpp"

#include <glassgrad/tensor/detail/text.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>
#include <utility>

namespace glassgrad::detail {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
  public:
    Parser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

    NpyHeader parse() {
        if (const std::size_t nul = text_.find('\0'); nul != text_.npos) {
            bad("the header has a NUL byte at offset {}", nul);
        }
        if (peek() != '{') bad("the header is not a dictionary: {}", quoted(rest()));
        ++at_;
        bool comma = true;
        while (peek() != '}') {
            if (!comma) bad("no comma before {} in the header", quoted(rest()));
            read_entry();
            comma = peek() == ',';
            if (comma) ++at_;
        }
        ++at_;
        while (at_ < text_.size()) {
            if (!is_space(text_[at_])) bad("text after the header: {}", quoted(rest()));
            ++at_;
        }
        for (const auto& [key, seen] : keys_) {
            if (!seen) bad("key '{}' is missing in the header", key);
        }
        return header_;
    }

  private:
    template <class... Args>
    [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
        bad(Hint{}, text, std::forward<Args>(args)...);
    }
    template <class... Args>
    [[noreturn]] void bad(const Hint& fix, fmt::format_string<Args...> text, Args&&... args) const {
        fail<FileError>(fix, "{}: {}", where_, fmt::format(text, std::forward<Args>(args)...));
    }

    std::string_view rest() const {
        std::size_t end = text_.size();
        while (end > at_ && is_space(text_[end - 1])) --end;
        return text_.substr(at_, end - at_);
    }

    /// The next character that is no blank.
    char peek() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
        if (at_ == text_.size()) bad("the header ends before its dictionary does");
        return text_[at_];
    }

    std::string_view read_text() {
        const char quote = text_[at_];
        const std::size_t end = text_.find(quote, at_ + 1);
        if (end == text_.npos) bad("no quote ends {} in the header", quoted(rest()));
        const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
        if (result.find('\\') != result.npos) bad("escape in the header: {}", quoted(result));
        at_ = end + 1;
        return result;
    }

    void read_entry() {
        const char start = peek();
        if (start != '\'' && start != '"') bad("no key in quotes at {}", quoted(rest()));
        const std::string_view key = read_text();
        const auto known = std::find_if(std::begin(keys_), std::end(keys_),
                                        [&](const Key& each) { return each.name == key; });
        if (known == std::end(keys_)) bad("key {} is not known", quoted(key));
        if (known->seen) bad("key '{}' stands twice in the header", key);
        known->seen = true;
        if (peek() != ':') bad("no colon after key '{}'", key);
        ++at_;
        peek();
        if (key == "descr") {
            read_descr();
        } else if (key == "fortran_order") {
            read_order();
        } else {
            read_shape();
        }
    }

    void read_order() {
        std::size_t end = at_;
        while (end < text_.size() && !is_space(text_[end]) && text_[end] != ',' &&
               text_[end] != '}') {
            ++end;
        }
        const std::string_view word = text_.substr(at_, end - at_);
        if (word != "True" && word != "False") {
            bad("fortran_order is {}, not True or False", quoted(word));
        }
        header_.fortran_order = word == "True";
        at_ = end;
    }

    void read_shape() {
        if (text_[at_] != '(') bad("shape is not a tuple: {}", quoted(rest()));
        const std::size_t start = at_++;
        std::size_t rank = 0;
        bool comma = true;
        bool any_comma = false;
        while (peek() != ')') {
            if (!comma) bad(evaluated, "{} follows a size in shape", quoted(rest().substr(0, 1)));
            const std::int64_t size = read_size();
            if (rank < max_rank) header_.shape.push_back(size);
            ++rank;
            comma = peek() == ',';
            any_comma = any_comma || comma;
            if (comma) ++at_;
        }
        ++at_;
        if (rank == 1 && !any_comma) {
            bad("shape is not a tuple: {} has no comma", quoted(text_.substr(start, at_ - start)));
        }
        if (rank > max_rank) {
            bad(hint("save it with fewer axes: np.save(path, x.reshape(...))"),
                "rank {} is above the limit of {}", rank, max_rank);
        }
    }

    std::int64_t read_size() {
        const std::size_t start = at_;
        if (text_[at_] == '-') ++at_;
        const std::size_t digits = at_;
        while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
        if (at_ == digits) bad("no size in shape at {}", quoted(text_.substr(start)));
        std::string_view number = text_.substr(start, at_ - start);
        if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e')) {
            while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')') ++at_;
            bad("size {} is not an integer", quoted(text_.substr(start, at_ - start)));
        }
        std::int64_t size = 0;
        const auto result = std::from_chars(number.data(), number.data() + number.size(), size);
        if (result.ec != std::errc()) bad("size {} does not fit 64 bits", quoted(number));
        if (size < 0) bad("size {} is negative", size);
        if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
        return size;
    }

    void read_descr() {
        const char start = text_[at_];
        if (start == '[' || start == '(') {
            bad(hint("save each field on its own: np.save(path, x['field'])"),
                "structured element types are not supported: {}", quoted(rest()));
        }
        if (start != '\'' && start != '"') {
            bad(evaluated, "descr is not a text in quotes: {}", quoted(rest()));
        }
        header_.descr = read_text();
        std::string_view type = header_.descr;
        if (type.empty()) bad("the element type is empty");
        header_.big_endian = std::endian::native == std::endian::big;
        if (type[0] == '<' || type[0] == '>' || type[0] == '=' || type[0] == '|') {
            if (type[0] == '<' || type[0] == '>') header_.big_endian = type[0] == '>';
            type.remove_prefix(1);
        }
        const char kind = type.empty() ? '\0' : type[0];
        const std::string_view width = type.substr(std::min<std::size_t>(1, type.size()));
        refuse_kind(kind);
        int bytes = 0;
        const auto result = std::from_chars(width.data(), width.data() + width.size(), bytes);
        if (result.ec != std::errc() || result.ptr != width.data() + width.size()) {
            bad("element type {} is not known", quoted(header_.descr));
        }
        const bool exists = kind == 'b'   ? bytes == 1
                            : kind == 'f' ? bytes == 2 || bytes == 4 || bytes == 8
                                          : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
        if (!exists) {
            bad("element type {} is not supported: {} of {} bytes", quoted(header_.descr),
                kind == 'f'   ? "a float"
                : kind == 'b' ? "a boolean"
                              : "an integer",
                bytes);
        }
        header_.kind = kind;
        header_.item_bytes = bytes;
    }

    /// Refuses the kinds that NumPy has and a tensor has not.
    void refuse_kind(char kind) const {
        struct Refusal {
            std::string_view kinds;
            std::string_view what;
            const char* fix;
        };
        static constexpr Refusal refusals[] = {
            {"O", "Python objects, a pickle, which is never read",
             "save numbers: np.save(path, x.astype(np.float64), allow_pickle=False)"},
            {"c", "complex, not supported", "save x.real and x.imag"},
            {"USa", "text, not supported", ""},
            {"Mm", "dates, not supported", "save x.astype(np.int64)"},
            {"V", "raw bytes, not supported", ""},
        };
        for (const auto& [kinds, what, fix] : refusals) {
            if (kinds.find(kind) == kinds.npos) continue;
            bad(Hint{fix}, "element type {} is {}", quoted(header_.descr), what);
        }
        if (std::string_view("fiub").find(kind) == std::string_view::npos) {
            bad("element type {} is not known", quoted(header_.descr));
        }
    }

    struct Key {
        std::string_view name;
        bool seen = false;
    };

    const Hint evaluated{"a header is data: nothing in it is evaluated"};
    std::string_view text_;
    std::string_view where_;
    std::size_t at_ = 0;
    Key keys_[3] = {{"descr"}, {"fortran_order"}, {"shape"}};
    NpyHeader header_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, std::string_view where) {
    return Parser(text, where).parse();
}

}  // namespace glassgrad::detail
