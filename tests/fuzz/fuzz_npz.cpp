#include "round_trip.hpp"

#include <glassgrad/tensor/npz.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace glassgrad;
    for (const bool compress : {false, true}) {
        fuzz::round_trip(
            std::as_bytes(std::span(data, size)),
            [](std::span<const std::byte> bytes) { return parse_npz(bytes, "x"); },
            [&](const NamedArrays& arrays) { return to_npz(arrays, {.compress = compress}); });
    }
    return 0;
}
