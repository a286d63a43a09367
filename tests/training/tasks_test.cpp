// Tasks: right answers, two parts that share nothing, and what counts as exact.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/training.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

constexpr TaskKind kinds[] = {TaskKind::copy, TaskKind::reverse, TaskKind::sort, TaskKind::addition,
                              TaskKind::modular};

/// Small enough to go through all questions.
Task small(TaskKind kind, std::uint64_t seed = 3) {
    const bool adds = kind == TaskKind::addition;
    return Task(kind, {.length = adds ? 1 : 3, .symbols = 4, .test_share = 0.25, .seed = seed});
}

/// What stands before and after the sign, by a way of its own.
std::pair<std::string, std::string> cut(const std::string& text) {
    const std::size_t at = text.find('=');
    return {text.substr(0, at), text.substr(at + 1)};
}

std::string expected(TaskKind kind, std::string question) {
    if (kind == TaskKind::copy) return question;
    if (kind == TaskKind::reverse) return {question.rbegin(), question.rend()};
    if (kind == TaskKind::sort) {
        std::sort(question.begin(), question.end());
        return question;
    }
    const std::size_t plus = question.find('+');
    const int sum = std::stoi(question.substr(0, plus)) + std::stoi(question.substr(plus + 1));
    if (kind == TaskKind::modular) return std::to_string(sum % 4);
    std::string digits = std::to_string(sum);
    digits.insert(0, plus + 1 - digits.size(), '0');
    return {digits.rbegin(), digits.rend()};
}

}  // namespace

TEST_CASE("every question of a task is in one part, once an epoch, with the right answer") {
    for (const TaskKind kind : kinds) {
        INFO(name(kind));
        const Task task = small(kind);
        const std::int64_t train = task.questions(TaskSplit::train);
        const std::int64_t test = task.questions(TaskSplit::test);
        std::set<std::string> seen;
        for (const TaskSplit split : {TaskSplit::train, TaskSplit::test}) {
            for (std::int64_t i = 0; i < task.questions(split); ++i) {
                const auto [question, answer] = cut(task.decode(task.sequence(i, split)));
                CHECK(answer == expected(kind, question));
                CHECK(seen.insert(question).second);
            }
        }
        const std::int64_t all = kind == TaskKind::addition  ? 100
                                 : kind == TaskKind::modular ? 16
                                                             : 64;
        CHECK(train + test == all);
        CHECK(test == all / 4);
        CHECK(seen.size() == static_cast<std::size_t>(all));
        // The second epoch: the same questions in another order. The test begins again as it was.
        std::set<std::vector<std::int64_t>> first, second;
        bool same = true;
        for (std::int64_t i = 0; i < train; ++i) {
            first.insert(task.sequence(i));
            second.insert(task.sequence(train + i));
            same = same && task.sequence(i) == task.sequence(train + i);
        }
        CHECK(first == second);
        CHECK_FALSE(same);
        CHECK(task.sequence(0, TaskSplit::test) == task.sequence(test, TaskSplit::test));
        CHECK(task.sequence(1) == small(kind).sequence(1));
    }
    std::set<std::vector<std::int64_t>> tests;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        tests.insert(small(TaskKind::copy, seed).sequence(0, TaskSplit::test));
    }
    CHECK(tests.size() > 1);
}

TEST_CASE("a batch of a task asks for the answer alone") {
    for (const TaskKind kind : kinds) {
        INFO(name(kind));
        const Task task = small(kind);
        const Batch batch = task.batch(40, 3);
        CHECK(batch.inputs.shape() == Shape{3, task.context_length()});
        CHECK(batch.targets.shape() == batch.inputs.shape());
        for (std::int64_t row = 0; row < 3; ++row) {
            const auto tokens = task.sequence(40 + row);
            for (std::int64_t t = 0; t < task.context_length(); ++t) {
                const auto at = static_cast<std::size_t>(t);
                CHECK(batch.inputs.at<std::int64_t>({row, t}) == tokens[at]);
                CHECK(batch.targets.at<std::int64_t>({row, t}) ==
                      (t + 1 < task.question_length() ? -100 : tokens[at + 1]));
            }
        }
        CHECK(max(batch.inputs).item() < static_cast<double>(task.vocab_size()));
    }
    CHECK(Task(TaskKind::addition, {.length = 3, .lowest_first = false}).context_length() == 11);
    // Large numbers of questions, none stored.
    const Task large(TaskKind::sort, {.length = 18, .symbols = 10});
    CHECK(large.questions(TaskSplit::train) == 900000000000000000);
    const auto [question, answer] = cut(large.decode(large.sequence(7)));
    CHECK(answer == expected(TaskKind::sort, question));
    const Task sum(TaskKind::addition, {.length = 9, .lowest_first = false});
    const auto [terms, digits] = cut(sum.decode(sum.sequence(5)));
    CHECK(std::stoll(digits) == std::stoll(terms) + std::stoll(terms.substr(10)));
}

TEST_CASE("an answer is exact when every logit that counts is above the others") {
    const double nan = std::nan("");
    const Tensor targets = tensor({{-100, 1}, {-100, 0}, {-100, 2}}, i64);
    const auto count = [&](const NestedList& rows, DType dtype = f32) {
        return count_exact(reshape(tensor(rows, dtype), {3, 2, 3}), targets);
    };
    CHECK(count({9, 0, 0, 0, 1, 0, 0, 0, 9, 5, 4, 3, 0, 0, 0, 1, 2, 3}) == 3);
    CHECK(count({9, 0, 0, 0, 1, 0, 0, 0, 9, 5, 4, 6, 0, 0, 0, 1, 2, 3}, f64) == 2);
    CHECK(count({9, 0, 0, 0, 0, 0, 0, 0, 9, 5, 5, 3, 0, 0, 0, 1, 2, 3}) == 1);
    CHECK(count({9, 0, nan, nan, 1, 0, 0, 0, 9, nan, 4, 3, 0, 0, 0, 1, 2, nan}) == 0);
    CHECK(count_exact(full({1, 1, 1}, nan), zeros({1, 1}, i64)) == 0);
    CHECK(text_of<IndexError>([] {
              count_exact(zeros({1, 1, 3}), full({1, 1}, 3, i64));
          }) == "count_exact: target 3 at (0, 0) is outside 0 to 2");
    CHECK(
        text_of<ShapeError>([] {
            count_exact(zeros({2, 1, 3}), zeros({1, 2}, i64));
        }) ==
        "count_exact: logits (2, 1, 3) and targets (1, 2) are not (batch, tokens, vocabulary) and "
        "(batch, tokens)");
    CHECK(text_of<TypeError>([] {
              count_exact(zeros({1, 1, 3}), zeros({1, 1}));
          }) == "count_exact: logits are f32 and targets f32, not floating and i64");
}

TEST_CASE("tasks that make no sense are refused") {
    const auto refusal = [](TaskKind kind, const TaskOptions& options) {
        return text_of<ValueError>([&] { Task task(kind, options); });
    };
    CHECK(refusal(TaskKind::copy, {.length = 0}) == "task: length 0 is outside 1 to 62");
    CHECK(refusal(TaskKind::copy, {.symbols = 63}) == "task: symbols 63 is outside 2 to 62");
    CHECK(refusal(TaskKind::sort, {.length = 30}) ==
          "task: 10 symbols, 30 of them a question, are more than 2^62 questions");
    CHECK(refusal(TaskKind::addition, {.length = 10}) == "task: length 10 is outside 1 to 9");
    CHECK(refusal(TaskKind::modular, {.symbols = 1}) == "task: symbols 1 is outside 2 to 1048576");
    CHECK(refusal(TaskKind::copy, {.test_share = 1}) ==
          "task: test_share 1 is not between 0 and 1");
    CHECK(refusal(TaskKind::copy, {.length = 1, .symbols = 4}) ==
          "task: 4 questions give 4 to train on and 0 to test on; raise length or symbols, or "
          "change test_share");
    const Task task(TaskKind::reverse);
    CHECK(text_of<ValueError>([&] { task.batch(-1, 1); }) == "task: sample -1 is negative");
    CHECK(text_of<ValueError>([&] { task.batch(0, 0); }) == "task: a batch of 0 samples");
    CHECK_THROWS_AS(task.batch(std::numeric_limits<std::int64_t>::max(), 1), ValueError);
    CHECK(text_of<IndexError>([&] {
              task.decode(std::vector<std::int64_t>{1, 11});
          }) == "task: decode: token 11 at place 1 is outside 0 to 10");
    CHECK(task_kind_from("sort") == TaskKind::sort);
    CHECK(text_of<ValueError>([] { task_kind_from("sum"); }) ==
          "task: 'sum' is none of copy, reverse, sort, addition, modular");
}
