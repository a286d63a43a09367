#include "op_ports.hpp"

#include <fmt/format.h>

namespace glassgrad::detail {

std::string saved_name(const TraceOp& of, std::int64_t tensor, std::size_t place) {
    for (const auto* ports : {&of.in, &of.out}) {
        for (const TracePort& port : *ports) {
            if (port.tensor == tensor) return port.name;
        }
    }
    return fmt::format("s{}", place);
}

}  // namespace glassgrad::detail
