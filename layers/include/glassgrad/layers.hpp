#pragma once
// All of layers/.

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers/attention.hpp>
#include <glassgrad/layers/gradcheck.hpp>
#include <glassgrad/layers/linear.hpp>
#include <glassgrad/layers/mask.hpp>
#include <glassgrad/layers/module.hpp>
#include <glassgrad/layers/unused_parameters.hpp>
