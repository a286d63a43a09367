#include <glassgrad/training/tasks.hpp>

#include "permutation.hpp"

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace glassgrad {
namespace {

constexpr std::int64_t ignored = -100;
constexpr std::array<std::string_view, 5> names{"copy", "reverse", "sort", "addition", "modular"};
constexpr std::string_view symbols =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::int64_t most_symbols = static_cast<std::int64_t>(symbols.size());
constexpr std::int64_t most_questions = std::int64_t{1} << 62;

bool takes_symbols(TaskKind kind) noexcept {
    return kind == TaskKind::copy || kind == TaskKind::reverse || kind == TaskKind::sort;
}

/// base to the power of exponent; none above 2^62.
std::optional<std::int64_t> power(std::int64_t base, std::int64_t exponent) noexcept {
    std::int64_t result = 1;
    for (std::int64_t i = 0; i < exponent; ++i) {
        if (result > most_questions / base) return std::nullopt;
        result *= base;
    }
    return result;
}

void check_range(std::string_view what, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most) {
        throw ValueError(fmt::format("task: {} {} is outside {} to {}", what, value, least, most));
    }
}

/// The digits of `number` to the base given, the lowest at out[0] and then on by `step`.
void write_digits(std::uint64_t number, std::uint64_t base, std::int64_t count, std::int64_t* out,
                  std::int64_t step) {
    for (std::int64_t i = 0; i < count; ++i) {
        out[i * step] = static_cast<std::int64_t>(number % base);
        number /= base;
    }
}

template <class T>
std::int64_t count_exact_rows(const Tensor& logits, const Tensor& targets) {
    const std::int64_t classes = logits.size(-1), tokens = targets.size(1);
    const T* row = logits.data<T>();
    const auto wanted = targets.values<std::int64_t>();
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < targets.size(0); ++i) {
        bool all = true;
        for (std::int64_t t = 0; t < tokens; ++t, row += classes) {
            const std::int64_t target = wanted[static_cast<std::size_t>(i * tokens + t)];
            if (target == ignored) continue;
            if (target < 0 || target >= classes) {
                throw IndexError(
                    fmt::format("count_exact: target {} at ({}, {}) is outside 0 to {}", target, i,
                                t, classes - 1));
            }
            for (std::int64_t c = 0; c < classes; ++c) {
                all = all && (c == target || row[c] < row[target]);
            }
            // A NaN alone, where nothing is compared.
            all = all && row[target] == row[target];
        }
        right += all;
    }
    return right;
}

}  // namespace

std::string_view name(TaskKind kind) noexcept { return names[static_cast<std::size_t>(kind)]; }

TaskKind task_kind_from(std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        throw ValueError(fmt::format("task: '{}' is none of {}", name, fmt::join(names, ", ")));
    }
    return static_cast<TaskKind>(found - names.begin());
}

Task::Task(TaskKind kind, const TaskOptions& options) : kind_(kind), options_(options) {
    std::optional<std::int64_t> all;
    switch (kind) {
        case TaskKind::copy:
        case TaskKind::reverse:
        case TaskKind::sort:
            check_range("length", options.length, 1, 62);
            check_range("symbols", options.symbols, 2, most_symbols);
            all = power(options.symbols, options.length);
            question_length_ = options.length + 1;
            answer_length_ = options.length;
            break;
        case TaskKind::addition:
            check_range("length", options.length, 1, 9);
            all = power(10, 2 * options.length);
            question_length_ = 2 * options.length + 2;
            answer_length_ = options.length + 1;
            break;
        case TaskKind::modular:
            check_range("symbols", options.symbols, 2, std::int64_t{1} << 20);
            all = power(options.symbols, 2);
            question_length_ = 4;
            answer_length_ = 1;
            break;
    }
    if (!all) {
        throw ValueError(
            fmt::format("task: {} symbols, {} of them a question, are more than 2^62 "
                        "questions",
                        options.symbols, options.length));
    }
    if (!(options.test_share > 0 && options.test_share < 1)) {
        throw ValueError(
            fmt::format("task: test_share {} is not between 0 and 1", options.test_share));
    }
    test_ = static_cast<std::int64_t>(options.test_share * static_cast<double>(*all));
    train_ = *all - test_;
    if (test_ < 1 || train_ < 1) {
        throw ValueError(fmt::format("task: {} questions give {} to train on and {} to test on",
                                     *all, train_, test_),
                         "raise length or symbols, or change test_share");
    }
}

std::int64_t Task::vocab_size() const noexcept {
    if (kind_ == TaskKind::addition) return 12;
    return options_.symbols + (kind_ == TaskKind::modular ? 2 : 1);
}

std::uint64_t Task::question(std::int64_t sample, TaskSplit split) const {
    if (sample < 0) throw ValueError(fmt::format("task: sample {} is negative", sample));
    const auto all = static_cast<std::uint64_t>(train_ + test_);
    const detail::Permutation order(all, options_.seed, 0);
    if (split == TaskSplit::test) {
        return order(static_cast<std::uint64_t>(train_ + sample % test_));
    }
    const detail::Permutation epoch(static_cast<std::uint64_t>(train_), options_.seed,
                                    static_cast<std::uint64_t>(sample / train_) + 1);
    return order(epoch(static_cast<std::uint64_t>(sample % train_)));
}

void Task::write(std::uint64_t question, std::int64_t* out) const {
    const std::int64_t n = options_.length;
    std::int64_t* answer = out + question_length_;
    if (takes_symbols(kind_)) {
        write_digits(question, static_cast<std::uint64_t>(options_.symbols), n, out, 1);
        out[n] = options_.symbols;
        std::copy_n(out, n, answer);
        if (kind_ == TaskKind::reverse) std::reverse(answer, answer + n);
        if (kind_ == TaskKind::sort) std::sort(answer, answer + n);
    } else if (kind_ == TaskKind::addition) {
        const auto limit = static_cast<std::uint64_t>(*power(10, n));
        const std::uint64_t a = question / limit, b = question % limit;
        write_digits(a, 10, n, out + n - 1, -1);
        out[n] = 10;
        write_digits(b, 10, n, out + 2 * n, -1);
        out[2 * n + 1] = 11;
        if (options_.lowest_first) {
            write_digits(a + b, 10, n + 1, answer, 1);
        } else {
            write_digits(a + b, 10, n + 1, answer + n, -1);
        }
    } else {
        const auto modulus = static_cast<std::uint64_t>(options_.symbols);
        const std::uint64_t a = question / modulus, b = question % modulus;
        out[0] = static_cast<std::int64_t>(a);
        out[1] = options_.symbols;
        out[2] = static_cast<std::int64_t>(b);
        out[3] = options_.symbols + 1;
        answer[0] = static_cast<std::int64_t>((a + b) % modulus);
    }
}

std::vector<std::int64_t> Task::sequence(std::int64_t sample, TaskSplit split) const {
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(question_length_ + answer_length_));
    write(question(sample, split), tokens.data());
    return tokens;
}

Batch Task::batch(std::int64_t first_sample, std::int64_t count, TaskSplit split) const {
    if (count < 1) throw ValueError(fmt::format("task: a batch of {} samples", count));
    if (first_sample > std::numeric_limits<std::int64_t>::max() - count) {
        throw ValueError(fmt::format("task: no sample comes {} after {}", count, first_sample));
    }
    const std::int64_t context = context_length();
    Batch batch{Tensor::empty({count, context}, i64), full({count, context}, ignored, i64)};
    auto* inputs = batch.inputs.mutable_data<std::int64_t>();
    auto* targets = batch.targets.mutable_data<std::int64_t>();
    for (std::int64_t row = 0; row < count; ++row) {
        const std::vector<std::int64_t> tokens = sequence(first_sample + row, split);
        std::copy_n(tokens.data(), context, inputs + row * context);
        const std::int64_t asked = question_length_ - 1;
        std::copy_n(tokens.data() + question_length_, answer_length_,
                    targets + row * context + asked);
    }
    return batch;
}

std::string Task::decode(std::span<const std::int64_t> tokens) const {
    const std::int64_t plain = kind_ == TaskKind::addition ? 10 : options_.symbols;
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::int64_t token = tokens[i];
        if (token < 0 || token >= vocab_size()) {
            throw IndexError(fmt::format("task: decode: token {} at place {} is outside 0 to {}",
                                         token, i, vocab_size() - 1));
        }
        if (token >= plain) {
            text += token == vocab_size() - 1 ? '=' : '+';
        } else if (kind_ == TaskKind::modular) {
            text += std::to_string(token);
        } else {
            text += symbols[static_cast<std::size_t>(token)];
        }
    }
    return text;
}

std::int64_t count_exact(const Tensor& logits, const Tensor& targets) {
    if (!logits.defined() || !targets.defined()) {
        throw ValueError("count_exact: a tensor is undefined");
    }
    if (targets.dtype() != i64 || (logits.dtype() != f32 && logits.dtype() != f64)) {
        throw TypeError(
            fmt::format("count_exact: logits are {} and targets {}, not floating and i64",
                        name(logits.dtype()), name(targets.dtype())));
    }
    if (logits.rank() != 3 || targets.rank() != 2 || logits.size(0) != targets.size(0) ||
        logits.size(1) != targets.size(1)) {
        throw ShapeError(
            fmt::format("count_exact: logits {} and targets {} are not (batch, tokens, "
                        "vocabulary) and (batch, tokens)",
                        to_string(logits.shape()), to_string(targets.shape())));
    }
    return logits.dtype() == f32 ? count_exact_rows<float>(logits, targets)
                                 : count_exact_rows<double>(logits, targets);
}

}  // namespace glassgrad
