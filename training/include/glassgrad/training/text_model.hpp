#pragma once
// A model with the tokenizer that it was trained with, and texts from both.

#include <glassgrad/layers/models/generate.hpp>
#include <glassgrad/training/checkpoint.hpp>
#include <glassgrad/training/tokenizer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace glassgrad {

struct TextModel {
    std::unique_ptr<CausalModel> model;  ///< a Gpt or a Llama
    std::unique_ptr<Tokenizer> tokenizer;
};

/// Adds what `text_model` needs beside the weights: the metadata `config` and `tokenizer`. Throws
/// ValueError for a model that is neither Gpt nor Llama.
void add_text_model(Checkpoint& checkpoint, const CausalModel& model, const Tokenizer& tokenizer);

/// The model of a trainer's checkpoint, with averaged weights if there are such. Throws FileError
/// for a checkpoint without the metadata or with other weights than they say.
TextModel text_model(const Checkpoint& checkpoint);

/// What comes after `prompt`: `options.max_tokens` tokens, fewer if a stop token is drawn. A text
/// may be longer than the model's context: when that is full, the model goes on with its second
/// half. An empty prompt is a line's end, or token 0 where the tokenizer has none. Throws
/// ValueError for a prompt that the tokenizer can't encode, and as `generate`.
/// `options.on_token` is called for each token; `on_text` gets the text as it comes, piece by piece
/// in whole characters of UTF-8: bytes of one that isn't complete are held back.
std::string continue_text(CausalModel& model, const Tokenizer& tokenizer, std::string_view prompt,
                          GenerateOptions options = {},
                          const std::function<void(std::string_view)>& on_text = {});

}  // namespace glassgrad
