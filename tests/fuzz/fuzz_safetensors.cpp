#include "round_trip.hpp"

#include <glassgrad/tensor/safetensors.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace glassgrad;
    fuzz::round_trip(
        std::as_bytes(std::span(data, size)),
        [](std::span<const std::byte> bytes) { return parse_safetensors(bytes, "x"); },
        [](const SafetensorsFile& file) { return to_safetensors(file.tensors, file.metadata); });
    return 0;
}
