// A new op with its derivative, and the proof that the derivative is right.
//
// An op is a row (what it is called, its formulas) and a function: the value, and for each input
// an edge with the rule for its gradient. The rule names what it reads: here the op's own result
// and its input. The same lines give derivatives of any order.

#include <glassgrad/autograd.hpp>

#include <iostream>

using namespace glassgrad;

// --- the op ---------------------------------------------------------------------------------
const OpRow smooth_abs_row{
    .name = "smooth_abs", .forward = "y = sqrt(1 + x²)", .backward = "gx = gy x / y"};

Variable smooth_abs(const Variable& x) {
    return record(smooth_abs_row, sqrt(1.0 + x.value() * x.value()),
                  edge(
                      x, [](const auto& gy, const auto& y, const auto& in) { return gy * in / y; },
                      result, x));
}
// --------------------------------------------------------------------------------------------

int main() {
    const Variable x = parameter(tensor({{-2.0, -0.5, 0.0}, {0.25, 1.0, 3.0}}, f64), "x");
    const Variable y = smooth_abs(x);
    std::cout << "smooth_abs of\n" << x << "\nis\n" << y << "\n\n";

    backward(sum(y));
    std::cout << "The gradient of its sum is x / y:\n" << x.grad() << "\n\n";

    const auto f = [](std::span<const Variable> in) { return smooth_abs(in[0]); };
    const GradcheckReport first = gradcheck(f, {x});
    const GradcheckReport second = gradgradcheck(f, {x});
    std::cout << first.text << '\n' << second.text << '\n';

    const auto wrong = [](std::span<const Variable> in) {
        return record(
            smooth_abs_row, sqrt(1.0 + in[0].value() * in[0].value()),
            edge(
                in[0], [](const auto& gy, const auto& saved) { return -(gy * saved); }, in[0]));
    };
    std::cout << "\nHad the rule been -gy x:\n" << gradcheck(wrong, {x}).text << '\n';
    return first && second ? 0 : 1;
}
