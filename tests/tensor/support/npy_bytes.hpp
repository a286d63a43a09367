#pragma once
// Bytes of .npy files, well-formed or not, put together in memory.

#include <glassgrad/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <unistd.h>

namespace glassgrad::testing {

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span<const char>(text));
}

/// Magic, version, length, header and data, with nothing checked or padded.
inline std::string npy(const std::string& header, const std::string& data = "", int major = 1,
                       int minor = 0) {
    std::string file = "\x93NUMPY";
    file += static_cast<char>(major);
    file += static_cast<char>(minor);
    for (int i = 0; i < (major == 1 ? 2 : 4); ++i) {
        file += static_cast<char>(header.size() >> (8 * i) & 0xff);
    }
    return file + header + data;
}

/// A header of three entries; each argument is the text of a value.
inline std::string npy_header(const std::string& shape, const std::string& descr = "'<f4'",
                              const std::string& order = "False") {
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

inline std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string hex;
    for (const std::byte each : bytes) {
        hex += digits[std::to_integer<int>(each) >> 4];
        hex += digits[std::to_integer<int>(each) & 15];
    }
    return hex;
}

inline std::span<const std::byte> element_bytes(const Tensor& x) {
    return {x.bytes(), static_cast<std::size_t>(x.numel()) * item_size(x.dtype())};
}

inline std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A new folder that goes with the object.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "glassgrad.XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(std::filesystem::directory_iterator(path_), {}));
    }

  private:
    std::filesystem::path path_;
};

}  // namespace glassgrad::testing
