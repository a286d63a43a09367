#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/trainer.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad {

double mean_loss(CausalModel& model, const TextBatches& batches, std::int64_t batch_size) {
    if (batch_size < 1) {
        throw ValueError(fmt::format("mean_loss: batch_size {} must be positive", batch_size));
    }
    struct Restore {
        CausalModel& model;
        bool training;
        ~Restore() {
            if (training) model.train();
        }
    };
    const Restore restore{model, model.training()};
    const NoGrad no_grad;
    model.eval();
    double sum = 0;
    for (std::int64_t at = 0; at < batches.windows(); at += batch_size) {
        const std::int64_t count = std::min(batch_size, batches.windows() - at);
        const Batch batch = batches.batch(at, count);
        const Variable loss = cross_entropy(model(batch.inputs), Variable(batch.targets));
        sum += loss.item() * static_cast<double>(count);
    }
    return sum / static_cast<double>(batches.windows());
}

}  // namespace glassgrad
