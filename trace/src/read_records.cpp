// What each record must hold, of which type and from which vocabulary; what must hold between
// records is in check.cpp.

#include "read_records.hpp"

#include "value_json.hpp"
#include "vocabulary.hpp"

#include <glassgrad/tensor/error.hpp>

namespace glassgrad::detail {
namespace {

using Kind = JsonCursor::Kind;
constexpr bool required = JsonCursor::required;
constexpr bool optional = JsonCursor::optional;

template <class E, std::size_t n>
E read_word(JsonCursor& in, const Words<E, n>& words) {
    const std::string text = in.string();
    std::string known;
    for (const auto& [candidate, value] : words) {
        if (candidate == text) return value;
        known += (known.empty() ? "" : ", ") + std::string(candidate);
    }
    in.fail("'" + text + "' is not known (" + known + ")");
}

/// `t16`; -1 for null where that is allowed.
std::int64_t read_id(JsonCursor& in, char letter, bool nullable = false) {
    if (nullable && in.peek() == Kind::null) {
        in.null();
        return no_record;
    }
    const std::string text = in.string();
    std::uint64_t id = 0;
    const bool leading_zero = text.size() > 2 && text[1] == '0';
    const bool fits = text.size() > 1 && text.size() < 12 && text[0] == letter && !leading_zero &&
                      parse_number(std::string_view(text).substr(1), id) == NumberFault::none;
    if (!fits) in.fail("'" + text + "' is no id (" + letter + " and a number)");
    return static_cast<std::int64_t>(id);
}

/// The id of a record must be its place.
void read_own_id(JsonCursor& in, char letter, std::size_t place) {
    const auto id = static_cast<std::size_t>(read_id(in, letter));
    if (id < place) in.fail(letter + std::to_string(id) + " comes twice");
    if (id > place) {
        in.fail(letter + std::to_string(id) + " where " + letter + std::to_string(place) +
                " is next: ids count from 0");
    }
}

std::int64_t read_count(JsonCursor& in) {
    const std::int64_t count = read_integer(in);
    if (count < 0) in.fail(std::to_string(count) + " is negative");
    return count;
}

std::uint64_t read_seed(JsonCursor& in) {
    const std::string text = in.peek() == Kind::string ? in.string() : std::string(in.number());
    std::uint64_t seed = 0;
    if (parse_number(text, seed) != NumberFault::none) {
        in.fail(text + " is no seed (0 to 2^64 - 1)");
    }
    return seed;
}

std::vector<std::string> read_texts(JsonCursor& in) {
    std::vector<std::string> texts;
    in.array([&](std::size_t) { texts.push_back(in.string()); });
    return texts;
}

Shape read_shape(JsonCursor& in, DType dtype) {
    in.peek();
    const std::size_t start = in.start();
    Shape shape;
    int rank = 0;
    in.array([&](std::size_t) {
        const std::int64_t size = read_count(in);
        if (++rank <= max_rank) shape.push_back(size);
    });
    if (rank > max_rank) {
        in.fail(start,
                "rank " + std::to_string(rank) + "; the limit is " + std::to_string(max_rank));
    }
    try {
        checked_numel("shape", shape, dtype);
    } catch (const ShapeError&) {
        in.fail(start, "shape " + to_string(shape) + " has too many elements");
    }
    return shape;
}

/// Texts stand for numbers that JSON has no way to write exactly.
TraceAttributeValue read_attribute(JsonCursor& in) {
    switch (in.peek()) {
        case Kind::boolean: return in.boolean();
        case Kind::null: in.fail("null is no value of an attribute");
        case Kind::object: in.fail("an object is no value of an attribute");
        case Kind::array: {
            std::vector<TraceAttributeValue> items;
            in.array([&](std::size_t) { items.push_back(read_attribute(in)); });
            return items;
        }
        case Kind::number: {
            const std::size_t offset = in.offset();
            const std::string_view text = in.number();
            std::int64_t integer = 0;
            if (parse_number(text, integer) == NumberFault::none && text != "-0") return integer;
            double real = 0;
            if (parse_number(text, real) != NumberFault::none) {
                in.fail(offset, std::string(text) + " is out of range");
            }
            return real;
        }
        case Kind::string: break;
    }
    std::string text = in.string();
    if (text == "NaN" || text == "Infinity" || text == "-Infinity") {
        double real = 0;
        parse_number(text == "NaN" ? "nan" : text == "Infinity" ? "inf" : "-inf", real);
        return real;
    }
    std::int64_t integer = 0;
    const bool is_integer = parse_number(text, integer) == NumberFault::none;
    if (is_integer && (integer > max_exact_integer || integer < -max_exact_integer)) return integer;
    return text;
}

std::string read_label(JsonCursor& in) {
    if (in.peek() == Kind::string) return in.string();
    std::optional<std::string> bytes;
    in.members({{"text", required, [&] { in.string(); }},
                {"bytes", required, [&] {
                     bytes = from_hex(in.string());
                     if (!bytes) in.fail("pairs of digits 0-9a-f are expected");
                 }}});
    return *bytes;
}

TraceStats read_stats(JsonCursor& in) {
    TraceStats stats;
    in.members({
        {"n", required, [&] { stats.n = read_count(in); }},
        {"nan", required, [&] { stats.nan = read_count(in); }},
        {"pinf", required, [&] { stats.pinf = read_count(in); }},
        {"ninf", required, [&] { stats.ninf = read_count(in); }},
        {"zero", required, [&] { stats.zero = read_count(in); }},
        {"min", optional, [&] { stats.min = read_real(in); }},
        {"max", optional, [&] { stats.max = read_real(in); }},
        {"mean", optional, [&] { stats.mean = read_real(in); }},
        {"std", optional, [&] { stats.std = read_real(in); }},
        {"l2", optional, [&] { stats.l2 = read_real(in); }},
    });
    return stats;
}

std::vector<TracePort> read_ports(JsonCursor& in) {
    std::vector<TracePort> ports;
    in.array([&](std::size_t) {
        TracePort port;
        in.members({{"p", required, [&] { port.name = in.string(); }},
                    {"t", required, [&] { port.tensor = read_id(in, 't'); }}});
        ports.push_back(std::move(port));
    });
    return ports;
}

}  // namespace

TraceRun read_run(JsonCursor& in) {
    TraceRun run;
    in.members({
        {"id", required, [&] { run.id = in.string(); }},
        {"mode", required, [&] { run.mode = in.string(); }},
        {"step", required, [&] { run.step = read_integer(in); }},
        {"seed", required, [&] { run.seed = read_seed(in); }},
        {"default_dtype", required, [&] { run.default_dtype = read_word(in, dtype_words); }},
        {"threads", optional, [&] { run.threads = read_count(in); }},
        {"flags", optional, [&] { run.flags = read_texts(in); }},
    });
    return run;
}

TraceCapture read_capture(JsonCursor& in) {
    TraceCapture capture;
    in.members({
        {"values", required, [&] { capture.values = in.string(); }},
        {"max_elements", required, [&] { capture.max_elements = read_count(in); }},
        {"stats", required, [&] { capture.stats = in.boolean(); }},
        {"timing", required, [&] { capture.timing = in.boolean(); }},
    });
    return capture;
}

std::vector<TraceLabels> read_labels(JsonCursor& in) {
    std::vector<TraceLabels> all;
    in.object([&](std::string_view name) {
        TraceLabels labels{std::string(name), {}};
        in.array([&](std::size_t) { labels.items.push_back(read_label(in)); });
        all.push_back(std::move(labels));
    });
    return all;
}

std::vector<TraceAxisLabels> read_axis_labels(JsonCursor& in) {
    std::vector<TraceAxisLabels> all;
    in.object([&](std::string_view name) { all.push_back({std::string(name), in.string()}); });
    return all;
}

std::vector<TraceDimension> read_dimensions(JsonCursor& in) {
    std::vector<TraceDimension> dims;
    in.object([&](std::string_view name) { dims.push_back({std::string(name), read_count(in)}); });
    return dims;
}

std::vector<TraceOpDefinition> read_definitions(JsonCursor& in) {
    std::vector<TraceOpDefinition> all;
    in.object([&](std::string_view name) {
        TraceOpDefinition definition;
        definition.name = name;
        in.members({
            {"v", required, [&] { definition.version = read_integer(in); }},
            {"fwd", required, [&] { definition.forward = in.string(); }},
            {"bwd", optional, [&] { definition.backward = in.string(); }},
            {"holds", optional, [&] { definition.holds = read_texts(in); }},
        });
        all.push_back(std::move(definition));
    });
    return all;
}

TraceScope read_scope(JsonCursor& in, std::size_t place) {
    TraceScope scope;
    in.members({
        {"id", required, [&] { read_own_id(in, 's', place); }},
        {"parent", required, [&] { scope.parent = read_id(in, 's', true); }},
        {"name", required, [&] { scope.name = in.string(); }},
        {"path", required, [&] { scope.path = in.string(); }},
        {"kind", required, [&] { scope.kind = in.string(); }},
        {"layer", optional, [&] { scope.layer = read_integer(in); }},
    });
    return scope;
}

TraceTensor read_tensor(JsonCursor& in, std::size_t place) {
    TraceTensor tensor;
    std::optional<std::size_t> shape_at;
    std::optional<std::size_t> value_at;
    bool has_type = false;
    bool has_shape = false;
    bool has_value = false;
    in.members({
        {"id", required, [&] { read_own_id(in, 't', place); }},
        {"name", required, [&] { tensor.name = in.string(); }},
        {"key", required, [&] { tensor.key = in.string(); }},
        {"role", required, [&] { tensor.role = read_word(in, role_words); }},
        {"dtype", required,
         [&] {
             tensor.dtype = read_word(in, dtype_words);
             has_type = true;
         }},
        {"shape", required,
         [&] {
             in.peek();
             shape_at = in.start();
             if (has_type) {
                 tensor.shape = read_shape(in, tensor.dtype);
                 has_shape = true;
             } else {
                 in.skip();
             }
         }},
        {"axes", optional, [&] { tensor.axes = read_texts(in); }},
        {"op", required, [&] { tensor.op = read_id(in, 'o', true); }},
        {"grad", optional, [&] { tensor.grad = read_id(in, 't', true); }},
        {"stats", optional, [&] { tensor.stats = read_stats(in); }},
        {"noise", optional, [&] { tensor.noise = read_real(in); }},
        {"digest", optional, [&] { tensor.digest = in.string(); }},
        {"value", required,
         [&] {
             in.peek();
             value_at = in.start();
             if (has_shape) {
                 tensor.value = read_value(in, tensor.shape, tensor.dtype);
                 has_value = true;
             } else {
                 in.skip();
             }
         }},
    });
    if (!has_shape) {
        in.reread(*shape_at, "shape", [&] { tensor.shape = read_shape(in, tensor.dtype); });
    }
    if (!has_value) {
        in.reread(*value_at, "value",
                  [&] { tensor.value = read_value(in, tensor.shape, tensor.dtype); });
    }
    return tensor;
}

TraceOp read_op(JsonCursor& in, std::size_t place) {
    TraceOp op;
    in.members({
        {"id", required, [&] { read_own_id(in, 'o', place); }},
        {"seq", required, [&] { op.seq = read_count(in); }},
        {"pass", required, [&] { op.pass = read_word(in, pass_words); }},
        {"op", required, [&] { op.op = in.string(); }},
        {"of", optional, [&] { op.of = read_id(in, 'o'); }},
        {"scope", required, [&] { op.scope = read_id(in, 's'); }},
        {"in", required, [&] { op.in = read_ports(in); }},
        {"out", required, [&] { op.out = read_ports(in); }},
        {"attrs", optional,
         [&] {
             in.object([&](std::string_view name) {
                 op.attrs.push_back({std::string(name), read_attribute(in)});
             });
         }},
        {"saved", optional,
         [&] { in.array([&](std::size_t) { op.saved.push_back(read_id(in, 't')); }); }},
        {"src", optional,
         [&] {
             in.members({{"file", required, [&] { op.file = in.string(); }},
                         {"line", required, [&] { op.line = read_count(in); }}});
         }},
        {"time", optional,
         [&] {
             in.members({{"start_ns", optional, [&] { op.start_ns = read_integer(in); }},
                         {"dur_ns", optional, [&] { op.dur_ns = read_integer(in); }}});
         }},
        {"mem", optional,
         [&] {
             in.members({{"alloc", optional, [&] { op.alloc = read_integer(in); }},
                         {"live", optional, [&] { op.live = read_integer(in); }}});
         }},
        {"flops", optional, [&] { op.flops = read_real(in); }},
    });
    return op;
}

TraceDiagnostic read_diagnostic(JsonCursor& in) {
    TraceDiagnostic one;
    in.members({
        {"code", required, [&] { one.code = in.string(); }},
        {"severity", required, [&] { one.severity = read_word(in, severity_words); }},
        {"op", optional, [&] { one.op = read_id(in, 'o', true); }},
        {"tensor", optional, [&] { one.tensor = read_id(in, 't', true); }},
        {"counts", optional, [&] { one.counts = read_dimensions(in); }},
        {"first", optional,
         [&] { in.array([&](std::size_t) { one.first.push_back(read_count(in)); }); }},
        {"note", optional, [&] { one.note = in.string(); }},
    });
    return one;
}

}  // namespace glassgrad::detail
