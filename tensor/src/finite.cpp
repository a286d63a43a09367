#include <glassgrad/tensor/detail/finite.hpp>

#include "kernels/kernels.hpp"

namespace glassgrad::detail {

bool all_finite(const Tensor& x) {
    switch (x.dtype()) {
        case f32: return kernels<float>().row.all_finite(x.numel(), x.data<float>());
        case f64: return kernels<double>().row.all_finite(x.numel(), x.data<double>());
        default: return true;
    }
}

}  // namespace glassgrad::detail
