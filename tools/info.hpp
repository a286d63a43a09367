#pragma once
// What `glassgrad info` says of each kind of file, and the lines that they share.

#include <glassgrad/tensor.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad::tools {

std::string describe_array(const std::string& path);
std::string describe_npz(const std::string& path);
std::string describe_safetensors(const std::string& path);
/// What stands before the tensors of a checkpoint of training; empty for another file.
std::string describe_checkpoint(const std::string& path,
                                const std::vector<std::pair<std::string, std::string>>& metadata);
std::string describe_trace(const std::string& path);
/// A checkpoint or a tokenizer of llama2.c: the first numbers tell them apart.
std::string describe_llama2c(const std::string& path);

/// `1 element`, `2 elements`.
std::string count(std::size_t n, std::string_view what);
/// Least, greatest and mean element, or what there is to say for the type; empty for none.
std::string statistics(const Tensor& x);

/// Named tensors, a line each; NaN is warned of on standard error.
class TensorList {
  public:
    /// `type` is what the file calls the type.
    void add(std::string_view name, std::string_view type, const Tensor& x);
    std::size_t elements() const noexcept { return elements_; }
    std::string text() const;

  private:
    struct Line {
        std::string name;
        std::string what;
        std::string figures;
    };
    std::vector<Line> lines_;
    std::size_t elements_ = 0;
};

}  // namespace glassgrad::tools
