#include <glassgrad/tensor/instruction_set.hpp>

#include "fail.hpp"
#include "kernels/kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace glassgrad {
namespace detail {

namespace baseline {
KernelTable kernels();
}
#ifdef GLASSGRAD_X86_KERNELS
namespace avx2 {
KernelTable kernels();
}
namespace avx512 {
KernelTable kernels();
}
#endif

constinit std::atomic<const KernelTable*> chosen_kernels{nullptr};

std::span<const InstructionSet> instruction_sets() {
    static const std::vector<InstructionSet> sets = [] {
        std::vector<InstructionSet> found{{"baseline", baseline::kernels}};
#ifdef GLASSGRAD_X86_KERNELS
        // The levels x86-64-v3 and -v4 of the architecture, by the features that set them apart.
        const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi2");
        const bool v4 = v3 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        if (v3) found.push_back({"avx2", avx2::kernels});
        if (v4) found.push_back({"avx512", avx512::kernels});
#endif
        return found;
    }();
    return sets;
}

namespace {

const InstructionSet& wanted() {
    const std::span<const InstructionSet> sets = instruction_sets();
    const char* asked = std::getenv("GLASSGRAD_ISA");
    if (!asked || !*asked) return sets.back();
    const auto at = std::ranges::find(sets, std::string_view(asked), &InstructionSet::name);
    if (at != sets.end()) return *at;
    std::string names;
    for (const InstructionSet& each : sets) {
        if (!names.empty()) names += ", ";
        names += each.name;
    }
    fail<ValueError>(hint("unset it, or name one of these"),
                     "instruction_set: GLASSGRAD_ISA is '{}', this processor has {}", asked, names);
}

struct Chosen {
    InstructionSet set;
    KernelTable table;
};
const Chosen& chosen() {
    static const Chosen choice = [] {
        const InstructionSet& set = wanted();
        return Chosen{set, set.kernels()};
    }();
    return choice;
}

}  // namespace

const KernelTable& choose_kernels() {
    const KernelTable& table = chosen().table;
    chosen_kernels.store(&table, std::memory_order_release);
    return table;
}

}  // namespace detail

std::string_view instruction_set() { return detail::chosen().set.name; }

}  // namespace glassgrad
