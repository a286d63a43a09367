#pragma once
// Names and layouts of weights in Hugging Face's files, and ours. Which weights are transposed or
// permuted follows from the kind of layer, never from shapes, which may be square.

#include <glassgrad/layers/models/gpt.hpp>
#include <glassgrad/layers/models/llama.hpp>

namespace glassgrad {

/// GPT-2's weights under our names. Its layers c_attn, c_proj and c_fc are Conv1D, with weights
/// (in, out), and are transposed; c_attn is cut in q_proj, k_proj and v_proj. The prefix
/// "transformer." may be there; the masks h.N.attn.bias and h.N.attn.masked_bias are left out.
/// Throws ValueError that lists every name that is none of GPT-2's and every shape that does not
/// fit.
StateDict gpt2_from_hugging_face(const StateDict& state);
/// The inverse, with the prefix "transformer." and without lm_head where it is the embedding.
/// Throws ValueError that lists every name that is none of Gpt's.
StateDict gpt2_to_hugging_face(const StateDict& state);

/// LLaMA's weights under our names, with q_proj and k_proj in the layout that `config` asks for:
/// Hugging Face's have halves. `config` says how many heads there are. Buffers of the rotary table
/// (inv_freq) are left out. Throws as `gpt2_from_hugging_face`.
StateDict llama_from_hugging_face(const StateDict& state, const LlamaConfig& config);
/// The inverse, from the layout of `config` to halves, without lm_head where it is the embedding.
StateDict llama_to_hugging_face(const StateDict& state, const LlamaConfig& config);

/// Weights of a Llama with the rows of each q_proj and k_proj moved from one layout of rotary pairs
/// to another: the model gives the same logits. `config` says how many heads there are.
/// Throws ShapeError unless the rows are that many heads with pairs.
StateDict convert_rotary(const StateDict& state, const LlamaConfig& config, RotaryPairing from,
                         RotaryPairing to);

}  // namespace glassgrad
