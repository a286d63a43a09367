#pragma once
// The optimizers there are. Each takes parameter groups, or a model whose parameters get its
// weight_decay, all of them, as torch.optim does it.

#include <glassgrad/training/optimizer.hpp>

namespace glassgrad {

struct SgdOptions {
    double lr = 1e-3;
    double momentum = 0;
    double dampening = 0;
    double weight_decay = 0;  ///< added to the gradient
    bool nesterov = false;
};
/// v = momentum v + (1 - dampening) g, w -= lr v, as torch.optim.SGD; Nesterov: w -= lr (g +
/// momentum v).
class SGD : public Optimizer {
  public:
    explicit SGD(const Module& model, const SgdOptions& options = {});
    explicit SGD(std::vector<ParameterGroup> groups, const SgdOptions& options = {});

  private:
    void update(Slot& slot, const Step& step) override;
    const SgdOptions options_;
};

struct AdamOptions {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;  ///< outside the root
    double weight_decay = 0;
};
/// m = β1 m + (1 - β1) g, s = β2 s + (1 - β2) g², w -= lr m̂ / (√ŝ + eps), with m̂ and ŝ divided by 1
/// - βⁿ. The decay is added to the gradient, as torch.optim.Adam. Source: Kingma and Ba 2015.
class Adam : public Optimizer {
  public:
    explicit Adam(const Module& model, const AdamOptions& options = {});
    explicit Adam(std::vector<ParameterGroup> groups, const AdamOptions& options = {});

  protected:
    Adam(std::string op, std::vector<ParameterGroup> groups, const AdamOptions& options,
         bool decoupled);

  private:
    void update(Slot& slot, const Step& step) override;
    const AdamOptions options_;
    const bool decoupled_;
    // Of the last update: parameters mostly have had equally many.
    std::int64_t corrected_ = 0;
    double correction1_ = 0;
    double correction2_ = 0;
};

/// Adam with the decay apart from the gradient: the old value loses lr weight_decay of itself, as
/// torch.optim.AdamW. Source: Loshchilov and Hutter 2019.
class AdamW : public Adam {
  public:
    explicit AdamW(const Module& model, const AdamOptions& options = {.weight_decay = 1e-2});
    explicit AdamW(std::vector<ParameterGroup> groups, const AdamOptions& options = {});
};

struct LionOptions {
    double lr = 1e-4;
    double beta1 = 0.9;
    double beta2 = 0.99;
    double weight_decay = 0;
};
/// w -= lr (sign(β1 m + (1 - β1) g) + weight_decay w), then m = β2 m + (1 - β2) g.
/// Source: Chen et al. 2023, algorithm 2.
class Lion : public Optimizer {
  public:
    explicit Lion(const Module& model, const LionOptions& options = {});
    explicit Lion(std::vector<ParameterGroup> groups, const LionOptions& options = {});

  private:
    void update(Slot& slot, const Step& step) override;
    const LionOptions options_;
};

struct MuonOptions {
    double lr = 0.02;
    double momentum = 0.95;
    bool nesterov = true;
    std::int64_t iterations = 5;  ///< of the quintic that makes the direction orthogonal
    double weight_decay = 0;      ///< apart from the gradient, as in AdamW
};
/// For matrices only: the momentum's nearest orthogonal matrix, by an odd polynomial that is
/// iterated, times lr √max(1, rows / columns). Vectors, embeddings and heads belong to AdamW
/// (`muon_groups`).
/// Source: Jordan et al. 2024, their code.
class Muon : public Optimizer {
  public:
    explicit Muon(std::vector<ParameterGroup> groups, const MuonOptions& options = {});

    /// UVᵀ of a matrix UΣVᵀ, nearly: singular values land in 0.7 to 1.2.
    static Tensor orthogonal(const Tensor& matrix, std::int64_t iterations = 5);

  private:
    void check(const Slot& slot) const override;
    Tensor direction(const Slot& slot, const Tensor& gradient, double grad_scale) const override;
    void update(Slot& slot, const Step& step) override;
    const MuonOptions options_;
};

struct MuonGroups {
    std::vector<ParameterGroup> matrices;  ///< for Muon
    std::vector<ParameterGroup> rest;      ///< for AdamW beside it
};
/// A model's parameters that are not frozen, as Muon's authors part them: matrices are Muon's,
/// save embeddings and what is named `head`. `weight_decay` is that of matrices in both.
MuonGroups muon_groups(Module& model, double weight_decay = 0);

}  // namespace glassgrad
