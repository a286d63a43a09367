#include "round_trip.hpp"

#include <glassgrad/trace.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace glassgrad;
    const auto read = [](std::span<const std::byte> bytes) {
        return parse_trace({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    const auto bytes = std::as_bytes(std::span(data, size));
    fuzz::round_trip(bytes, read, [](const TraceDocument& trace) { return to_json(trace); });
    fuzz::round_trip(bytes, read, [](const TraceDocument& trace) { return to_json_lines(trace); });
    return 0;
}
