#pragma once
// Where a NaN or an infinity came from: the op that made it, told apart from those that pass it on.

#include <glassgrad/autograd/observer.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace glassgrad {

enum class OnAnomaly {
    collect,  ///< goes on; see `Anomaly::reports`
    fail,     ///< throws ValueError with the text of the report at once
};

struct AnomalyOptions {
    OnAnomaly on_anomaly = OnAnomaly::fail;
    /// False to look for NaN alone.
    bool infinities = true;
    /// Most reports that are kept; later ones are counted only.
    std::int64_t limit = 100;
};

/// A tensor as a report shows it. Extremes and mean are of the finite elements, NaN without any.
struct TensorSummary {
    std::string name;  ///< `x 'hidden'`, `gy`, `saved (result of exp)`
    Shape shape;
    DType dtype = f32;
    double min = 0;
    double max = 0;
    double mean = 0;
    std::int64_t nans = 0;
    std::int64_t infinities = 0;
};

struct AnomalyReport {
    enum class Pass { forward, backward };
    enum class Cause {
        made,     ///< by this op: what it read was in order
        came_in,  ///< with a parameter, a constant, a cotangent or a hook: no op made it
    };
    Pass pass = Pass::forward;
    Cause cause = Cause::made;
    bool nan = false;                   ///< a NaN; otherwise an infinity
    std::string op;                     ///< `log`; in the backward pass the op whose rule ran
    std::string scope;                  ///< `blocks.1.attention`
    std::int64_t output_id = 0;         ///< id() of the op's result
    std::string where;                  ///< the bad tensor: `its result`, `the gradient of x`
    Shape index;                        ///< of the first bad element in it
    double value = 0;                   ///< that element
    std::vector<TensorSummary> inputs;  ///< what the op read
    TensorSummary result;               ///< what the op gave
    std::string text;                   ///< all of this, in a few lines
};

/// Watches both passes of this thread while an `Observing` of it lives.
///
/// An op made a NaN when none of the values it read has one, and an infinity when they are finite.
/// An infinity that is meant is passed on: one that a constant input or a setting of the call
/// brings in, such as the -inf of a mask, and whatever infinities are computed from it; a NaN
/// computed from it is reported. What descends from a reported value is passed on and counted.
class Anomaly final : public Observer {
  public:
    explicit Anomaly(const AnomalyOptions& options = {});

    /// In the order of their making: the first is the one to look at.
    const std::vector<AnomalyReport>& reports() const noexcept { return reports_; }
    /// Results and gradients that were bad because of what was reported.
    std::int64_t passed_on() const noexcept { return passed_on_; }
    /// All reports, or that nothing was found.
    std::string text() const;
    void clear();

    void on_forward(const ForwardEvent& event) override;
    void on_backward(const BackwardEvent& event) override;
    void on_accumulate(const AccumulateEvent& event) override;
    void on_gradient(const GradientEvent& event) override;

  private:
    void report(AnomalyReport report);
    bool known(std::int64_t of) const;
    bool was_finite(std::int64_t of, const Tensor& gradient);

    AnomalyOptions options_;
    std::vector<AnomalyReport> reports_;
    std::int64_t passed_on_ = 0;
    std::int64_t not_kept_ = 0;
    // Values, and gradients by the id of their value, that are bad and were reported, or descend
    // from such.
    std::unordered_set<std::int64_t> bad_values_;
    std::unordered_set<std::int64_t> bad_gradients_;
    std::unordered_set<std::int64_t> meant_gradients_;  // infinite, but not by a fault
    // Gradients on their way, by the id of their value, that were found finite: their elements.
    std::unordered_map<std::int64_t, const void*> finite_;
};

/// An Anomaly that watches for its own lifetime: `AnomalyMode watch;`.
class AnomalyMode {
  public:
    explicit AnomalyMode(const AnomalyOptions& options = {})
        : anomaly_(options), observing_(anomaly_) {}

    const Anomaly& operator*() const noexcept { return anomaly_; }
    const Anomaly* operator->() const noexcept { return &anomaly_; }

  private:
    Anomaly anomaly_;
    Observing observing_;
};

}  // namespace glassgrad
