#include "commands.hpp"
#include "output.hpp"

#include <glassgrad/tensor/instruction_set.hpp>
#include <glassgrad/trace.hpp>
#include <glassgrad/version.hpp>

#include <fmt/format.h>

namespace glassgrad::tools {

int schema() {
    print(trace_schema());
    return exit_ok;
}

int version() {
    print(fmt::format("glassgrad " GLASSGRAD_VERSION ", traces glassgrad-trace 1.0, kernels {}\n",
                      instruction_set()));
    return exit_ok;
}

}  // namespace glassgrad::tools
