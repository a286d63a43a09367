#include "round_trip.hpp"

#include <glassgrad/tensor/npy.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace glassgrad;
    fuzz::round_trip(
        std::as_bytes(std::span(data, size)),
        [](std::span<const std::byte> bytes) { return parse_npy(bytes, "x"); },
        [](const Tensor& x) { return to_npy(x); });
    return 0;
}
