#pragma once

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers.hpp>
#include <glassgrad/tensor.hpp>
#include <glassgrad/trace.hpp>
#include <glassgrad/training.hpp>
#include <glassgrad/version.hpp>
