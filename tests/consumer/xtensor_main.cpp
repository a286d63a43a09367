// A program that hands tensors to xtensor and back.

#include <glassgrad/tensor/xtensor.hpp>

#include <iostream>

int main() {
    const xt::xarray<double> array{{1.0, 2.0}, {3.0, 4.0}};
    const glassgrad::Tensor x = glassgrad::from_xtensor(array * 2.0);
    const auto view = glassgrad::as_xtensor<double>(x);
    std::cout << view(1, 0) << '\n';
    return view(1, 0) == 6.0 ? 0 : 1;
}
