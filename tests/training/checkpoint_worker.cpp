// A run as users write one by hand, small enough to be killed a thousand times:
// `checkpoint_test.py` starts it again with the same command until it is done, and looks at the
// bytes.
//
//     checkpoint_worker FOLDER STEPS EVERY [PAUSE_US] [DIE_AT] [LINGER_US] [WIDTH]
#include <glassgrad/training.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

using namespace glassgrad;

namespace {

constexpr std::int64_t samples = 24;
constexpr std::int64_t parts = 3;      // micro-batches a step
constexpr std::int64_t part_size = 2;  // samples a micro-batch

}  // namespace

int main(int count, char** arguments) {
    const auto number = [&](int place) {
        return place < count ? std::atoll(arguments[place]) : 0LL;
    };
    const std::string path = count > 1 ? arguments[1] : "";
    const std::int64_t steps = number(2);
    const std::int64_t every = number(3);
    const std::int64_t width = number(7) == 0 ? 6 : number(7);
    const auto sleep = [](long long microseconds) {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    };
    try {
        const RunLock lock(path);
        probe_folder(path, {.bytes = 16384});
        StopSignals stop(path + "/stop");

        RandomState rng(1);
        Sequential model;
        model.append<Linear>(3, width, rng);
        model.append([](const Variable& x) { return gelu(x); });
        model.append<Dropout>(0.1, rng);
        model.append<Linear>(width, 4, rng);
        AdamW optimizer(decay_matrices(model, 0.1), {.lr = 1e-2});
        WeightAverage average(model, 0.9);
        const Schedule schedule =
            cosine_schedule({.lr = 1e-2, .last = 1e-3, .steps = steps, .warmup = 3});
        const Tensor inputs = rng.randn({samples, 3}, {.dtype = f32});
        const Tensor targets = rng.randint(0, 4, {samples});
        GradientTree tree(model.parameters());
        std::vector<double> losses;
        double best = 1e9;
        std::int64_t step = 0;

        CheckpointFolder folder(path, {.keep_last = 2});
        if (const auto found = folder.newest()) {
            for (const std::string& why : found->damaged) {
                std::fprintf(stderr, "passed over: %s\n", why.c_str());
            }
            const Checkpoint& at = found->checkpoint;
            model.load_state_dict(at.part("model"));
            optimizer.load_state_dict(at.part("optimizer"));
            average.load_state_dict(at.part("average"));
            const Tensor told = at.part("run").at(0).second;
            losses.assign(told.values<double>().begin(), told.values<double>().end());
            best = std::strtod(at.find("best").value().c_str(), nullptr);
            step = at.step;
            std::printf("resumed at %lld\n", static_cast<long long>(step));
        }
        const auto state = [&] {
            Checkpoint result{.step = step};
            result.add("model", model.state_dict());
            result.add("optimizer", optimizer.state_dict());
            result.add("average", average.state_dict());
            result.add("run", {{"losses", from_values(losses, {step}, f64)}});
            char text[32];
            std::snprintf(text, sizeof(text), "%a", best);
            result.metadata = {{"best", text}};
            return result;
        };

        while (step < steps) {
            double loss = 0;
            for (std::int64_t part = 0; part < parts; ++part) {
                std::vector<double> numbers;
                for (std::int64_t i = 0; i < part_size; ++i) {
                    const std::int64_t sample = (step * parts + part) * part_size + i;
                    RandomState epoch(static_cast<std::uint32_t>(sample / samples));
                    numbers.push_back(static_cast<double>(
                        epoch.permutation(samples)
                            .values<std::int64_t>()[static_cast<std::size_t>(sample % samples)]));
                }
                const Tensor at = from_values(numbers, {part_size}, i64);
                seed_dropout(model, 5, static_cast<std::uint64_t>(step * parts + part) << 20);
                const Variable value =
                    cross_entropy(model(index_select(inputs, 0, at)), index_select(targets, 0, at));
                backward(value);
                tree.add(part);
                loss += value.value().item();
            }
            tree.finish(1.0 / parts);
            clip_grad_norm(model.parameters(), 0.5);
            optimizer.set_lr(schedule(step));
            optimizer.step();
            optimizer.zero_grad();
            average.update();
            losses.push_back(loss / parts);
            ++step;
            std::printf("step %lld\n", static_cast<long long>(step));
            std::fflush(stdout);
            sleep(number(4));

            const bool better = step % every == 0 && losses.back() < best;
            if (better) best = losses.back();
            if (stop.requested()) {
                std::puts("stopping");
                std::fflush(stdout);
                sleep(number(6));
            }
            if (step % every == 0 || stop.requested()) {
                folder.save(state(), {.best = better});
            }
            if (stop.requested()) return stop.exit_status();
            if (step == number(5)) std::raise(SIGKILL);
        }
        save_checkpoint(path + "/final.safetensors", state());
    } catch (const Error& error) {
        std::fprintf(stderr, "checkpoint_worker: %s\n", error.what());
        return 1;
    }
    return 0;
}
