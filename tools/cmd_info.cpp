// info: one screen about a file. Its name's end tells the kind, else its first bytes do.

#include "commands.hpp"
#include "info.hpp"
#include "output.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/error.hpp>

#include <algorithm>

namespace glassgrad::tools {
namespace {

using Describe = std::string (*)(const std::string&);

Describe by_name(std::string_view path) {
    static constexpr std::pair<std::string_view, Describe> kinds[] = {
        {".npy", describe_array},   {".npz", describe_npz},
        {".json", describe_trace},  {".safetensors", describe_safetensors},
        {".jsonl", describe_trace}, {".bin", describe_llama2c},
    };
    for (const auto& [end, describe] : kinds) {
        if (path.ends_with(end)) return describe;
    }
    return nullptr;
}

Describe by_content(const std::string& path) {
    const detail::InputFile file("info", path);
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(9, file.size())), '\0');
    file.read(0, reinterpret_cast<std::byte*>(start.data()), start.size());
    if (start.starts_with("\x93NUMPY")) return describe_array;
    if (start.starts_with("PK")) return describe_npz;
    if (start.starts_with("{")) return describe_trace;
    if (start.size() == 9 && start.back() == '{') return describe_safetensors;
    throw FileError("info: " + path + ": neither its name nor its first bytes tell what it is",
                    "files end in .npy, .npz, .safetensors, .json, .jsonl or .bin");
}

}  // namespace

int info(const std::string& path) {
    const Describe known = by_name(path);
    print(known != nullptr ? known(path) : by_content(path)(path));
    return exit_ok;
}

}  // namespace glassgrad::tools
