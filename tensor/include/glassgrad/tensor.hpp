#pragma once
// All of tensor/ but the bridge to xtensor, which is <glassgrad/tensor/xtensor.hpp>.

#include <glassgrad/tensor/counter_rng.hpp>
#include <glassgrad/tensor/dtype.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/instruction_set.hpp>
#include <glassgrad/tensor/memory.hpp>
#include <glassgrad/tensor/npy.hpp>
#include <glassgrad/tensor/npz.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/tensor/random.hpp>
#include <glassgrad/tensor/safetensors.hpp>
#include <glassgrad/tensor/scope.hpp>
#include <glassgrad/tensor/shape.hpp>
#include <glassgrad/tensor/tensor.hpp>
#include <glassgrad/tensor/threads.hpp>
