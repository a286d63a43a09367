#include <glassgrad/training/checkpoint.hpp>

#include "checkpoint_reader.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/hash.hpp>
#include <glassgrad/tensor/detail/safetensors_layout.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace glassgrad {
namespace {

constexpr std::string_view own = "checkpoint.";
constexpr std::string_view format_name = "checkpoint.format";
constexpr std::string_view step_name = "checkpoint.step";
constexpr std::string_view sums_name = "checkpoint.tensors";
/// What follows the length of the header, in every format: the checksum of all before the data,
/// itself taken as zeros.
constexpr std::string_view opening = R"({"__metadata__":{"checkpoint.checksum":")";
constexpr std::string_view no_sum = "0000000000000000";
constexpr std::size_t sum_place = 8 + opening.size();

std::string head_sum(std::string head) {
    head.replace(sum_place, no_sum.size(), no_sum);
    return detail::hash_text(detail::xxh64(head));
}

/// Over type, shape, name and bytes.
std::string tensor_sum(std::string_view name, const Tensor& x) {
    const std::string about = fmt::format("{} {} {}", detail::safetensors_type_name(x.dtype()),
                                          fmt::join(x.shape(), ","), name);
    const auto bytes = static_cast<std::size_t>(x.numel()) * item_size(x.dtype());
    return detail::hash_text(detail::xxh64(x.bytes(), bytes, detail::xxh64(about)));
}

std::optional<std::string> find_entry(
    const std::vector<std::pair<std::string, std::string>>& metadata, std::string_view name) {
    for (const auto& [key, text] : metadata) {
        if (key == name) return text;
    }
    return std::nullopt;
}

}  // namespace

void Checkpoint::add(std::string_view part, const StateDict& state) {
    for (const auto& [name, x] : state) tensors.emplace_back(fmt::format("{}.{}", part, name), x);
}

StateDict Checkpoint::part(std::string_view part) const {
    StateDict state;
    const std::string prefix = fmt::format("{}.", part);
    for (const auto& [name, x] : tensors) {
        if (name.starts_with(prefix)) state.emplace_back(name.substr(prefix.size()), x);
    }
    return state;
}

std::optional<std::string> Checkpoint::find(std::string_view name) const {
    return find_entry(metadata, name);
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
    if (checkpoint.step < 0) {
        throw ValueError(fmt::format("save_checkpoint: the step {} is negative", checkpoint.step));
    }
    std::string sums;
    for (const auto& [name, x] : checkpoint.tensors) {
        if (!x.defined()) {
            throw ValueError(fmt::format("save_checkpoint: tensor '{}' is undefined", name));
        }
        if (!sums.empty()) sums += ' ';
        sums += tensor_sum(name, x);
    }
    std::vector<std::pair<std::string, std::string>> metadata{
        {"checkpoint.checksum", std::string(no_sum)},
        {std::string(format_name), std::to_string(checkpoint_format)},
        {std::string(step_name), std::to_string(checkpoint.step)},
        {std::string(sums_name), std::move(sums)},
    };
    for (const auto& [name, text] : checkpoint.metadata) {
        if (name.starts_with(own)) {
            throw ValueError(fmt::format(
                "save_checkpoint: metadata '{}': names that begin with '{}' are the format's", name,
                own));
        }
        metadata.emplace_back(name, text);
    }
    detail::SafetensorsLayout layout = detail::lay_out_safetensors(checkpoint.tensors, metadata);
    layout.head.replace(sum_place, no_sum.size(), head_sum(layout.head));
    detail::OutputFile file("save_checkpoint", path);
    detail::write_safetensors(file, layout, checkpoint.tensors);
    file.commit();
}

Checkpoint load_checkpoint(const std::string& path) {
    return detail::CheckpointReader(path).load();
}

namespace detail {

CheckpointReader::CheckpointReader(const std::string& path)
    : where_("load_checkpoint: " + path), file_(path, "load_checkpoint") {
    check_head();
    const std::int64_t format = number(format_name);
    if (format != checkpoint_format) {
        throw NewerFormat(fmt::format("{}: a checkpoint of format {}, and format {} is the newest "
                                      "known here",
                                      where_, format, checkpoint_format),
                          "read it with a newer glassgrad");
    }
    checkpoint_.step = number(step_name);
    for (const auto& each : file_.metadata()) {
        if (!each.first.starts_with(own)) checkpoint_.metadata.push_back(each);
    }
}

void CheckpointReader::check_head() const {
    const std::string_view head = file_.head();
    if (head.size() < sum_place + no_sum.size() || head.substr(8, opening.size()) != opening) {
        throw FileError(
            fmt::format("{}: not a checkpoint: its header doesn't begin with a checksum", where_));
    }
    if (head.substr(sum_place, no_sum.size()) != head_sum(std::string(head))) {
        throw FileError(fmt::format("{}: damaged: the header doesn't have its checksum", where_));
    }
}

const std::string& CheckpointReader::entry(std::string_view name) const {
    for (const auto& [key, text] : file_.metadata()) {
        if (key == name) return text;
    }
    throw FileError(fmt::format("{}: not a checkpoint: '{}' is missing", where_, name));
}

std::int64_t CheckpointReader::number(std::string_view name) const {
    const std::string& text = entry(name);
    std::int64_t value = -1;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || value < 0) {
        throw FileError(fmt::format("{}: '{}' is '{}', not a count", where_, name, text));
    }
    return value;
}

Checkpoint CheckpointReader::load() && {
    const std::vector<std::string>& names = file_.names();
    const std::string& sums = entry(sums_name);
    if (sums.size() + 1 != std::max<std::size_t>(1, (no_sum.size() + 1) * names.size())) {
        throw FileError(fmt::format("{}: '{}' is not one checksum a tensor", where_, sums_name));
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        Tensor x = file_.load(names[i]);
        const std::string sum = tensor_sum(names[i], x);
        if (sums.compare((no_sum.size() + 1) * i, no_sum.size(), sum) != 0) {
            throw FileError(fmt::format("{}: damaged: tensor '{}' doesn't have its checksum",
                                        where_, names[i]));
        }
        checkpoint_.tensors.emplace_back(names[i], std::move(x));
    }
    return std::move(checkpoint_);
}

}  // namespace detail
}  // namespace glassgrad
