#include <glassgrad/tensor/detail/text.hpp>

#include <charconv>
#include <cmath>
#include <system_error>

namespace glassgrad::detail {
namespace {

constexpr std::size_t longest = 48;

/// nlohmann-json and Python take `1` for an integer.
void append_as_real(std::string& out, std::string_view digits) {
    out.append(digits);
    if (digits.find_first_of(".e") == std::string_view::npos) out.append(".0");
}

template <class T>
NumberFault parse_real(std::string_view text, T& x) {
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, x);
    if (fault == std::errc::invalid_argument || stop != end) return NumberFault::not_a_number;
    const std::string_view digits = text.substr(0, text.find_first_of("eE"));
    const bool is_zero = digits.find_first_of("123456789") == std::string_view::npos;
    if (fault == std::errc::result_out_of_range) {
        // Both ends of the range give this and leave x alone.
        const auto exponent = text.find_first_of("eE");
        if (is_zero) {
            x = text.front() == '-' ? -T{0} : T{0};
            return NumberFault::none;
        }
        const bool small = exponent != std::string_view::npos && text[exponent + 1] == '-';
        return small || digits.starts_with("0.") || digits.starts_with("-0.")
                   ? NumberFault::too_small
                   : NumberFault::too_large;
    }
    if (std::isinf(x)) return NumberFault::too_large;
    if (x == 0 && !is_zero) return NumberFault::too_small;
    return NumberFault::none;
}

template <class T>
NumberFault parse_whole(std::string_view text, T& x) {
    const char* end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, x);
    if (fault == std::errc::invalid_argument || stop != end) return NumberFault::not_a_number;
    return fault == std::errc::result_out_of_range ? NumberFault::too_large : NumberFault::none;
}

}  // namespace

void append_number(std::string& out, float x) {
    char buffer[longest];
    auto end = std::to_chars(buffer, buffer + longest, x).ptr;
    // The shortest text is exact for a reader of floats. One that reads a double and narrows it
    // rounds twice, which goes wrong for a single magnitude (0x15ae43fd): that one gets more
    // digits.
    double widened = 0;
    std::from_chars(buffer, end, widened);
    for (int precision = 7; static_cast<float>(widened) != x && precision < 17; ++precision) {
        end = std::to_chars(buffer, buffer + longest, x, std::chars_format::scientific, precision)
                  .ptr;
        std::from_chars(buffer, end, widened);
    }
    append_as_real(out, {buffer, end});
}

void append_number(std::string& out, double x) {
    char buffer[longest];
    append_as_real(out, {buffer, std::to_chars(buffer, buffer + longest, x).ptr});
}

void append_number(std::string& out, std::int64_t x) {
    char buffer[longest];
    const std::string_view digits(buffer, std::to_chars(buffer, buffer + longest, x).ptr);
    const bool exact = x >= -max_exact_integer && x <= max_exact_integer;
    if (!exact) out.push_back('"');
    out.append(digits);
    if (!exact) out.push_back('"');
}

void append_number(std::string& out, std::uint64_t x) {
    if (x <= static_cast<std::uint64_t>(max_exact_integer)) {
        append_number(out, static_cast<std::int64_t>(x));
        return;
    }
    out.push_back('"');
    char buffer[longest];
    out.append(buffer, std::to_chars(buffer, buffer + longest, x).ptr);
    out.push_back('"');
}

NumberFault parse_number(std::string_view text, float& x) { return parse_real(text, x); }
NumberFault parse_number(std::string_view text, double& x) { return parse_real(text, x); }
NumberFault parse_number(std::string_view text, std::int64_t& x) { return parse_whole(text, x); }
NumberFault parse_number(std::string_view text, std::uint64_t& x) { return parse_whole(text, x); }

}  // namespace glassgrad::detail
