#include <glassgrad/tensor/detail/trailing.hpp>

#include <bit>

namespace glassgrad {

detail::Trailing detail::trailing(std::string_view op, const Shape& shape, const Axes& axes) {
    const std::uint32_t mask = normalize_axes(op, axes, shape);
    Trailing result;
    for (const std::uint32_t wanted : {0u, 1u}) {
        for (int i = 0; i < shape.rank(); ++i) {
            if ((mask >> i & 1u) != wanted) continue;
            result.already = result.already && result.order.rank() == i;
            result.order.push_back(i);
            result.count += static_cast<int>(wanted);
        }
    }
    result.inverse = result.order;
    for (int i = 0; i < shape.rank(); ++i) result.inverse[static_cast<int>(result.order[i])] = i;
    return result;
}

int detail::last_count(std::string_view op, const Shape& shape, const Axes& axes) {
    const std::uint32_t mask = normalize_axes(op, axes, shape);
    const int count = std::popcount(mask);
    return mask == ((1u << count) - 1) << (shape.rank() - count) ? count : -1;
}

Axes detail::Trailing::last() const {
    std::int64_t axes[max_rank] = {};
    for (int i = 0; i < count; ++i) axes[i] = i - count;
    return Axes(std::span<const std::int64_t>(axes, static_cast<std::size_t>(count)));
}

}  // namespace glassgrad
