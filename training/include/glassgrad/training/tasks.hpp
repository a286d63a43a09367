#pragma once
// Questions that a program makes and can answer, for models small enough to look inside. A sample
// is one sequence, `314=413`: the question, a sign, the answer. All have the same length.

#include <glassgrad/training/dataset.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad {

enum class TaskKind : std::uint8_t {
    copy,      ///< 3141=3141
    reverse,   ///< 3141=1413
    sort,      ///< 3141=1134
    addition,  ///< 314+059=3730, the digits of the sum from the lowest on
    modular,   ///< 96+5=4, a number is one token
};
std::string_view name(TaskKind kind) noexcept;
/// The inverse of `name`. Throws ValueError that lists them.
TaskKind task_kind_from(std::string_view name);

/// No question is in both.
enum class TaskSplit : std::uint8_t { train, test };

struct TaskOptions {
    /// Symbols of a question to copy, reverse or sort; digits of each number to add.
    std::int64_t length = 6;
    /// How many symbols there are to copy, reverse or sort, 2 to 62; the modulus.
    std::int64_t symbols = 10;
    /// The digits of a sum from the lowest on, as a carry goes; otherwise from the highest on,
    /// which a small model learns far more slowly.
    bool lowest_first = true;
    /// Of all questions, those that are never trained on.
    double test_share = 0.1;
    std::uint64_t seed = 0;  ///< which those are, and the order of all
};

/// All questions of a kind, in two parts that the seed decides: a random order of all questions is
/// cut in two, so a question is in one part by construction.
class Task {
  public:
    /// Throws ValueError for options out of range, for more than 2^62 questions, and when a part
    /// would have none.
    explicit Task(TaskKind kind, const TaskOptions& options = {});

    /// Inputs and targets (count, context_length()). Targets that belong to the question are
    /// -100, which cross_entropy ignores. To train, each question comes once an epoch, in an order
    /// of the epoch's own. Throws ValueError for a negative sample or a count below 1.
    Batch batch(std::int64_t first_sample, std::int64_t count,
                TaskSplit split = TaskSplit::train) const;
    /// A sample's whole sequence.
    std::vector<std::int64_t> sequence(std::int64_t sample,
                                       TaskSplit split = TaskSplit::train) const;

    TaskKind kind() const noexcept { return kind_; }
    /// Different questions of a part.
    std::int64_t questions(TaskSplit split) const noexcept {
        return split == TaskSplit::train ? train_ : test_;
    }
    std::int64_t vocab_size() const noexcept;
    /// Tokens of a sequence but the last one, which is only predicted.
    std::int64_t context_length() const noexcept { return question_length_ + answer_length_ - 1; }
    /// Tokens of the question, with the sign before the answer.
    std::int64_t question_length() const noexcept { return question_length_; }
    std::int64_t answer_length() const noexcept { return answer_length_; }

    /// `314+059=3730`. Throws IndexError with the place of a token outside the vocabulary.
    std::string decode(std::span<const std::int64_t> tokens) const;

  private:
    void write(std::uint64_t question, std::int64_t* out) const;
    std::uint64_t question(std::int64_t sample, TaskSplit split) const;

    TaskKind kind_;
    TaskOptions options_;
    std::int64_t train_ = 0;
    std::int64_t test_ = 0;
    std::int64_t question_length_ = 0;
    std::int64_t answer_length_ = 0;
};

/// How many rows have all answers right: at each target that isn't -100, its logit is above all
/// others. That is what greedy generation gives, too, as it sees the same tokens up to its first
/// mistake. `logits` are floating (batch, tokens, vocabulary), `targets` i64 (batch, tokens).
/// Throws ShapeError, TypeError, and IndexError for a target outside the vocabulary.
std::int64_t count_exact(const Tensor& logits, const Tensor& targets);

}  // namespace glassgrad
