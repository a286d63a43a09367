#pragma once
// What must hold between the records of a trace, whoever made it.

#include <glassgrad/trace/document.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace glassgrad::detail {

inline constexpr std::size_t max_name = 4096;          ///< bytes of a name, key or path
inline constexpr std::size_t max_records = 1'000'000;  ///< of one kind

struct TraceFault {
    std::string_view list;  ///< `tensors`; empty for the header
    std::size_t index = 0;  ///< the record in it
    std::string member;     ///< `in[0].t`
    std::string problem;    ///< `t99 does not exist`
};

/// `ops[0].in[0].t`
std::string place(const TraceFault& fault);

/// The first reference to a record that is not there, value that does not fit its tensor, or
/// limit that is passed.
std::optional<TraceFault> find_fault(const TraceDocument& trace);

}  // namespace glassgrad::detail
