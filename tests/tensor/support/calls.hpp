#pragma once
// Functions by name, called with operands and options as tests/data/tensor/numpy_cases.json has
// them.

#include <glassgrad/tensor.hpp>

#include "tensor/support/data.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace glassgrad::testing {

using Operands = std::vector<Tensor>;
using Options = nlohmann::json;
using Call = std::function<Tensor(const Operands&, const Options&)>;

/// All functions that have reference cases.
const std::map<std::string, Call>& calls();

}  // namespace glassgrad::testing
