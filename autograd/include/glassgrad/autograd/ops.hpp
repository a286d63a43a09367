#pragma once
// Ops on Variables, under the names of the Tensor functions that compute them. y is the result,
// gy the gradient that arrives; derivatives of any order follow from the same rules.

#include <glassgrad/autograd/ops/attention.hpp>
#include <glassgrad/autograd/ops/elementwise.hpp>
#include <glassgrad/autograd/ops/index.hpp>
#include <glassgrad/autograd/ops/loss.hpp>
#include <glassgrad/autograd/ops/normalize.hpp>
#include <glassgrad/autograd/ops/product.hpp>
#include <glassgrad/autograd/ops/reduce.hpp>
#include <glassgrad/autograd/ops/rotary.hpp>
#include <glassgrad/autograd/ops/shape.hpp>
