#pragma once
// A trace in memory: plain structs, one for each kind of record of docs/trace-format.md. The id of
// a record is its place in its list: `tensors[16]` is t16. Nothing here knows JSON.

#include <glassgrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace glassgrad {

/// Stands for "no record" where an id is optional.
inline constexpr std::int64_t no_record = -1;

/// A number, flag, text or list that an op was called with.
struct TraceAttributeValue {
    enum class Kind : std::uint8_t { integer, real, flag, text, list };

    TraceAttributeValue() = default;
    TraceAttributeValue(std::int64_t value) : integer(value) {}
    TraceAttributeValue(double value) : kind(Kind::real), real(value) {}
    TraceAttributeValue(bool value) : kind(Kind::flag), integer(value) {}
    TraceAttributeValue(std::string value) : kind(Kind::text), text(std::move(value)) {}
    TraceAttributeValue(std::vector<TraceAttributeValue> values)
        : kind(Kind::list), items(std::move(values)) {}

    Kind kind = Kind::integer;
    std::int64_t integer = 0;  ///< also 0 or 1 for a flag
    double real = 0;
    std::string text;
    std::vector<TraceAttributeValue> items;
};

struct TraceAttribute {
    std::string name = {};
    TraceAttributeValue value;
};

/// What an op means, so that a reader needs no table of its own.
struct TraceOpDefinition {
    std::string name = {};
    std::int64_t version = 1;
    std::string forward = {};             ///< formula of the result
    std::string backward = {};            ///< formula of the gradients; empty when there are none
    std::vector<std::string> holds = {};  ///< what is true of every result
};

/// Names along an axis, such as the tokens of the run. Items are bytes; a writer repairs those
/// that are no UTF-8 and keeps the bytes beside them.
struct TraceLabels {
    std::string name = {};
    std::vector<std::string> items = {};
};

/// Which labels the places along axes of a name have: `query` those of `token`.
struct TraceAxisLabels {
    std::string name = {};
    std::string labels = {};
};

struct TraceDimension {
    std::string name = {};
    std::int64_t size = 0;
};

struct TraceRun {
    std::string id = "run";
    std::string mode = "eval";  ///< "train" or "eval"
    std::int64_t step = 0;
    std::uint64_t seed = 0;
    DType default_dtype = f32;
    std::optional<std::int64_t> threads = {};
    std::vector<std::string> flags = {};  ///< what changes numbers: "fast-math", "fma"
};

/// What was recorded and what was left out.
struct TraceCapture {
    std::string values = "full";  ///< "full", "small" (up to max_elements), "none"
    std::int64_t max_elements = 262144;
    bool stats = true;
    bool timing = false;
};

struct TraceHeader {
    std::string version = "1.0";  ///< as read; what is written is always the library's own
    std::string producer = "glassgrad";
    std::string producer_version = {};
    TraceRun run;
    TraceCapture capture;
    std::vector<TraceLabels> labels = {};
    std::vector<TraceAxisLabels> axis_labels = {};  ///< for axes not named as their labels
    std::vector<TraceDimension> dims = {};
    std::vector<TraceOpDefinition> opdefs = {};
};

struct TraceScope {
    std::int64_t parent = no_record;
    std::string name = {};
    std::string path = {};  ///< dotted, as in the state_dict: `blocks.1.attention`
    std::string kind = "module";
    std::optional<std::int64_t> layer = {};
};

enum class TraceRole : std::uint8_t { input, param, constant, activation, loss, grad, buffer };

/// Counts, and moments over the finite elements, added up in f64 in row-major order.
struct TraceStats {
    std::int64_t n = 0;
    std::int64_t nan = 0;
    std::int64_t pinf = 0;
    std::int64_t ninf = 0;
    std::int64_t zero = 0;  ///< of either sign
    double min = 0;         ///< this and the following mean nothing when finite() is 0
    double max = 0;
    double mean = 0;
    double std = 0;  ///< divisor n
    double l2 = 0;

    std::int64_t finite() const noexcept { return n - nan - pinf - ninf; }
};

/// The elements of a tensor, or why they are not there.
struct TraceValue {
    enum class Kind : std::uint8_t { none, full, fill, sample, ref };

    TraceValue() = default;
    /// All elements. A writer decides between list, fill and base64.
    TraceValue(Tensor values) : kind(Kind::full), data(std::move(values)) {}

    Kind kind = Kind::none;
    /// full: the tensor itself; fill: one element, rank 0; sample: the elements at `index`, rank 1.
    Tensor data;
    std::vector<std::int64_t> index = {};  ///< sample: row-major positions
    std::string why = {};                  ///< none and sample: the reason
    std::string uri = {};  ///< ref: a file beside the trace, a key in it, its digest
    std::string key = {};
    std::string sha256 = {};
};

/// `TraceTensor::grad` when no backward pass was recorded, or for gradients themselves.
inline constexpr std::int64_t grad_not_recorded = -2;
/// `TraceTensor::grad` when the backward pass did not reach the tensor: no path, not zero.
inline constexpr std::int64_t grad_no_path = -1;

struct TraceTensor {
    std::string name = {};
    /// Joins runs: `module path/name[#occurrence][:grad]`. Unique within a trace.
    std::string key = {};
    TraceRole role = TraceRole::activation;
    DType dtype = f32;
    Shape shape;
    std::int64_t op = no_record;  ///< the op that made it
    TraceValue value;
    std::optional<TraceStats> stats = {};
    std::vector<std::string> axes = {};  ///< a name for each axis, or empty
    std::int64_t grad = grad_not_recorded;
    std::string digest = {};           ///< `xxh64:` and 16 digits, of the little-endian bytes
    std::optional<double> noise = {};  ///< largest distance to an f64 run on the same inputs
};

struct TracePort {
    std::string name = {};  ///< `x`, `gy`
    std::int64_t tensor = no_record;
};

enum class TracePass : std::uint8_t { forward, backward, optimizer };

struct TraceOp {
    std::int64_t seq = 0;  ///< order of execution
    TracePass pass = TracePass::forward;
    std::string op = {};
    std::int64_t scope = 0;
    std::vector<TracePort> in = {};
    std::vector<TracePort> out = {};
    /// Backward: the forward op it differentiates. `accumulate` and `hook` belong to no op.
    std::int64_t of = no_record;
    std::vector<TraceAttribute> attrs = {};
    std::vector<std::int64_t> saved = {};  ///< tensors that the backward pass reads
    std::string file = {};                 ///< source, relative to the project
    std::int64_t line = 0;
    std::optional<std::int64_t> start_ns = {};
    std::optional<std::int64_t> dur_ns = {};
    std::optional<std::int64_t> alloc = {};  ///< bytes
    std::optional<std::int64_t> live = {};
    std::optional<double> flops = {};
};

enum class TraceSeverity : std::uint8_t { info, warning, error };

/// Something noticed while recording.
struct TraceDiagnostic {
    std::string code = {};
    TraceSeverity severity = TraceSeverity::info;
    std::int64_t op = no_record;
    std::int64_t tensor = no_record;
    std::vector<TraceDimension> counts = {};
    std::vector<std::int64_t> first = {};  ///< index of the first element concerned
    std::string note = {};
};

struct TraceEnd {
    bool complete = true;
    std::string reason = {};  ///< why not complete
};

struct TraceDocument {
    TraceHeader header;
    std::vector<TraceScope> scopes = {};
    std::vector<TraceTensor> tensors = {};
    std::vector<TraceOp> ops = {};
    std::vector<TraceDiagnostic> diagnostics = {};
    TraceEnd end;
};

/// All elements of a recorded tensor; a fill is spread out. Throws ValueError when the trace holds
/// none or only a sample of them.
Tensor elements(const TraceTensor& tensor);

/// Throws ValueError on any element type but f32 and f64.
TraceStats tensor_stats(const Tensor& x);

/// `xxh64:` and the hash of the elements' little-endian bytes.
std::string tensor_digest(const Tensor& x);

}  // namespace glassgrad
