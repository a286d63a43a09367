#pragma once
// Recorder: watches what this thread computes, forward and backward, and makes a trace of it.

#include <glassgrad/tensor/dtype.hpp>
#include <glassgrad/trace/document.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad {

struct RecorderOptions {
    std::string id = "run";
    std::string mode = "eval";
    std::int64_t step = 0;
    std::uint64_t seed = 0;  ///< what the run was seeded with, for whoever repeats it
    DType default_dtype = f32;
    /// Tensors with more elements keep statistics and a digest, but no values.
    std::int64_t max_elements = 262144;
    bool stats = true;
};

/// Records from its construction on, on the thread that made it, until `stop` or its end. It keeps
/// handles, not copies, of what it saw, and with them the graph. A value that is named after it
/// was computed has that name in the trace.
///
///     Recorder recorder({.id = "worked-example", .seed = 7});
///     recorder.label("token", {"the", "cat", "sat", "there"}, {"query", "key"});
///     recorder.label_axes("weights", {"query", "key"});
///     backward(mean(attention(x)));
///     write_trace("run.trace.json", recorder.document());
class Recorder {
  public:
    explicit Recorder(RecorderOptions options = {});
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    /// Goes on after a `stop`; nothing if it is recording.
    void start();
    void stop() noexcept;
    bool recording() const noexcept;

    /// What the places along axes are called: `items` for axes named `name`, and for `axes`.
    void label(std::string_view name, std::vector<std::string> items,
               std::vector<std::string> axes = {});
    /// Names the axes of every tensor of that name or key, and of its gradient. Where the rank is
    /// another, or no tensor has the name, the trace says so among its diagnostics.
    void label_axes(std::string_view tensor, std::vector<std::string> axes);
    /// A size with a name, for the header: `T` 4.
    void dim(std::string_view name, std::int64_t size);

    /// The trace up to here. A backward pass that has not ended leaves an incomplete one.
    TraceDocument document() const;

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace glassgrad
