#pragma once
// All of autograd/.

#include <glassgrad/autograd/anomaly.hpp>
#include <glassgrad/autograd/checkpoint.hpp>
#include <glassgrad/autograd/engine.hpp>
#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/gradcheck.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/autograd/op_row.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/autograd/record.hpp>
#include <glassgrad/autograd/unused_parameters.hpp>
#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor.hpp>
