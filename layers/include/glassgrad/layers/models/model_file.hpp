#pragma once
// Models in .safetensors files that say what they are: the metadata holds the configuration as JSON
// ("config") and, for rotary positions, the layout of q_proj and k_proj ("rotary": "neighbours" or
// "halves"). Weights that are tied are stored once.

#include <glassgrad/layers/models/gpt.hpp>
#include <glassgrad/layers/models/llama.hpp>

#include <memory>
#include <string>

namespace glassgrad {

/// Writes weights, in their own type, and configuration. Throws FileError.
void save_model(const std::string& path, const Gpt& model);
void save_model(const std::string& path, const Llama& model);

/// The model of a file, in the type of its weights. Throws FileError when it is none, holds fewer
/// numbers than its configuration needs, or holds weights of several types.
std::unique_ptr<Gpt> load_gpt(const std::string& path);
std::unique_ptr<Llama> load_llama(const std::string& path);

/// Sets the weights of a model that is there already; on an error it stays as it was. Weights in
/// another rotary layout than the model's are converted. Throws FileError as above, ValueError as
/// `load_state_dict`.
void load_model(const std::string& path, Gpt& model);
void load_model(const std::string& path, Llama& model);

/// The model of one of llama2.c's checkpoints, f32, with neighbours for pairs and a norm_eps of
/// 1e-5. Throws as `load_llama2c_checkpoint`.
std::unique_ptr<Llama> load_llama2c(const std::string& path);

}  // namespace glassgrad
