#include "round_trip.hpp"

#include <glassgrad/layers/llama2c.hpp>
#include <glassgrad/tensor/safetensors.hpp>

// There is no writer of checkpoints: weights survive as safetensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace glassgrad;
    StateDict weights;
    try {
        weights = parse_llama2c_checkpoint(std::as_bytes(std::span(data, size)), "x").weights;
    } catch (const Error&) {
        return 0;
    }
    const std::string once = to_safetensors(weights);
    fuzz::round_trip(
        fuzz::bytes_of(once),
        [](std::span<const std::byte> bytes) { return parse_safetensors(bytes, "x").tensors; },
        [](const StateDict& state) { return to_safetensors(state); });
    return 0;
}
