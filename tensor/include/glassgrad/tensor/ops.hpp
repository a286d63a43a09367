#pragma once
// Functions of tensors under their NumPy names. Operands of two take one element type and
// broadcast; anything else is a TypeError or ShapeError that names both.

#include <glassgrad/tensor/ops/attention.hpp>
#include <glassgrad/tensor/ops/elementwise.hpp>
#include <glassgrad/tensor/ops/index.hpp>
#include <glassgrad/tensor/ops/loss.hpp>
#include <glassgrad/tensor/ops/normalize.hpp>
#include <glassgrad/tensor/ops/product.hpp>
#include <glassgrad/tensor/ops/reduce.hpp>
#include <glassgrad/tensor/ops/rotary.hpp>
#include <glassgrad/tensor/ops/shape.hpp>
