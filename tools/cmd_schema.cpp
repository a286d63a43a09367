#include "commands.hpp"
#include "output.hpp"

#include <glassgrad/trace.hpp>
#include <glassgrad/version.hpp>

namespace glassgrad::tools {

int schema() {
    print(trace_schema());
    return exit_ok;
}

int version() {
    print("glassgrad " GLASSGRAD_VERSION ", traces glassgrad-trace 1.0\n");
    return exit_ok;
}

}  // namespace glassgrad::tools
