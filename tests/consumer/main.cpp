// What a program outside the tree does with the library: a product of two tensors, its gradient.

#include <glassgrad/glassgrad.hpp>

#include <iostream>

using namespace glassgrad;

int main() {
    const Variable w = parameter(tensor({{1.0, 2.0}, {3.0, 4.0}}, f64));
    const Variable y = sum(matmul(w, w));
    backward(y);
    std::cout << "glassgrad " << GLASSGRAD_VERSION << '\n' << w.grad() << '\n';
}
