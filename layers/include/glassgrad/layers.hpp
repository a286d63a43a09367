#pragma once
// All of layers/.

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers/activation.hpp>
#include <glassgrad/layers/attention.hpp>
#include <glassgrad/layers/dropout.hpp>
#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/layers/feed_forward.hpp>
#include <glassgrad/layers/gradcheck.hpp>
#include <glassgrad/layers/init.hpp>
#include <glassgrad/layers/linear.hpp>
#include <glassgrad/layers/mask.hpp>
#include <glassgrad/layers/module.hpp>
#include <glassgrad/layers/module_list.hpp>
#include <glassgrad/layers/multi_head_attention.hpp>
#include <glassgrad/layers/norm.hpp>
#include <glassgrad/layers/positions.hpp>
#include <glassgrad/layers/sequential.hpp>
#include <glassgrad/layers/summary.hpp>
#include <glassgrad/layers/transformer_block.hpp>
#include <glassgrad/layers/unused_parameters.hpp>
