// A trace from JSON: a document or lines, the version, the positions of refusals.

#include "check.hpp"
#include "read_records.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/trace/json.hpp>

#include <algorithm>

namespace glassgrad {
namespace detail {
namespace {

/// Records of one kind, and where each began.
template <class Record>
class Records {
  public:
    explicit Records(std::vector<Record>& all) noexcept : all_(all) {}

    std::size_t size() const noexcept { return all_.size(); }
    std::size_t offset(std::size_t index) const {
        return index < offsets_.size() ? offsets_[index] : 0;
    }
    void add(JsonCursor& in, std::size_t line_begin, Record record, std::size_t start) {
        if (all_.size() == max_records) {
            in.fail("more than " + std::to_string(max_records) + " records");
        }
        all_.push_back(std::move(record));
        offsets_.push_back(line_begin + start);
    }

  private:
    std::vector<Record>& all_;
    std::vector<std::size_t> offsets_;
};

class Reader {
  public:
    explicit Reader(std::string_view text) noexcept : text_(text) {}

    TraceDocument read() {
        check_json_start(text_);
        const bool lines = is_lines();
        // A line that was cut may end inside a character.
        const std::size_t whole = lines ? text_.find_last_of('\n') + 1 : text_.size();
        check_utf8(text_.substr(0, whole));
        if (lines) {
            read_lines();
        } else {
            JsonCursor in(text_);
            read_top(in, JsonCursor::required);
            in.finish();
        }
        check();
        return std::move(trace_);
    }

  private:
    [[noreturn]] static void fail(std::size_t offset, std::string problem) {
        throw JsonFailure{offset, {}, std::move(problem)};
    }

    /// Records of the line form begin with their kind.
    bool is_lines() const noexcept {
        const auto past_blanks = [&](std::size_t i) {
            return std::min(text_.find_first_not_of(" \t\r\n", i), text_.size());
        };
        const std::size_t brace = past_blanks(0);
        if (brace == text_.size() || text_[brace] != '{') return false;
        return text_.substr(past_blanks(brace + 1)).starts_with("\"rec\"");
    }

    /// The document, or the header line, which has the same members but for the records.
    void read_top(JsonCursor& in, bool records) {
        constexpr bool required = JsonCursor::required;
        constexpr bool optional = JsonCursor::optional;
        TraceHeader& header = trace_.header;
        in.members({
            {"format", required,
             [&] {
                 if (const std::string text = in.string(); text != "glassgrad-trace") {
                     in.fail("'" + text + "' is not glassgrad-trace");
                 }
             }},
            {"version", required, [&] { read_version(in); }},
            {"producer", required,
             [&] {
                 in.members(
                     {{"name", required, [&] { header.producer = in.string(); }},
                      {"version", required, [&] { header.producer_version = in.string(); }}});
             }},
            {"run", required, [&] { header.run = read_run(in); }},
            {"capture", required, [&] { header.capture = read_capture(in); }},
            {"labels", optional, [&] { header.labels = read_labels(in); }},
            {"axis_labels", optional, [&] { header.axis_labels = read_axis_labels(in); }},
            {"dims", optional, [&] { header.dims = read_dimensions(in); }},
            {"opdefs", optional, [&] { header.opdefs = read_definitions(in); }},
            {"scopes", records, [&] { in.array([&](std::size_t) { add_scope(in); }); }},
            {"tensors", records, [&] { in.array([&](std::size_t) { add_tensor(in); }); }},
            {"ops", records, [&] { in.array([&](std::size_t) { add_op(in); }); }},
            {"diagnostics", records, [&] { in.array([&](std::size_t) { add_diagnostic(in); }); }},
            {"end", records, [&] { read_end(in); }},
        });
    }

    void read_version(JsonCursor& in) {
        const std::string version = in.string();
        const std::size_t point = version.find('.');
        const auto is_number = [](std::string_view digits) {
            return !digits.empty() && digits.size() < 10 &&
                   digits.find_first_not_of("0123456789") == std::string_view::npos;
        };
        const std::string_view major = std::string_view(version).substr(0, point);
        if (point == std::string::npos || !is_number(major) ||
            !is_number(std::string_view(version).substr(point + 1))) {
            in.fail("'" + version + "' is no version such as 1.0");
        }
        if (major != "1") {
            in.fail("format version " + version +
                    " is not known; this library reads 1.0 and later 1.x");
        }
        trace_.header.version = version;
    }

    void read_lines() {
        bool ended = false;
        std::string stopped = "no end record";
        std::size_t line = 1;
        for (std::size_t begin = 0; begin < text_.size(); ++line) {
            const std::size_t stop = std::min(text_.find('\n', begin), text_.size());
            const std::string_view content = text_.substr(begin, stop - begin);
            if (stop == text_.size() && is_cut(content)) {
                stopped = "truncated in line " + std::to_string(line);
                break;
            }
            if (content.find_first_not_of(" \t\r") != std::string_view::npos) {
                if (ended) fail(begin, "a record after the end record");
                try {
                    ended = read_line(content, begin, line == 1);
                } catch (JsonFailure& failure) {
                    failure.offset += begin;
                    throw;
                }
            }
            begin = stop + 1;
        }
        if (!ended) forgive_end(stopped);
    }

    /// True for what is left when writing stopped inside a line. A line that is wrong before its
    /// end is malformed, not cut.
    static bool is_cut(std::string_view line) {
        try {
            JsonCursor in(line);
            in.skip();
            return false;
        } catch (const JsonFailure& failure) {
            return failure.offset == line.size();
        }
    }

    /// True for the end record.
    bool read_line(std::string_view line, std::size_t begin, bool is_first) {
        line_begin_ = begin;
        std::string kind;
        JsonCursor scan(line);
        scan.object([&](std::string_view name) {
            if (name == "rec") {
                kind = scan.string();
            } else {
                scan.skip();
            }
        });
        scan.finish();
        if (kind.empty()) fail(0, "'rec' is missing");
        if (is_first && kind != "header") fail(0, "the first record is no header");
        if (!is_first && kind == "header") fail(0, "a second header");
        JsonCursor in(line);
        if (kind == "header") read_top(in, JsonCursor::optional);
        if (kind == "scope") add_scope(in);
        if (kind == "tensor") add_tensor(in);
        if (kind == "op") add_op(in);
        if (kind == "diag") add_diagnostic(in);
        if (kind == "end") read_end(in);
        return kind == "end";
    }

    /// Without its end a trace refers to records that were never written.
    void forgive_end(const std::string& reason) {
        trace_.end = {.complete = false, .reason = reason};
        const auto ops = static_cast<std::int64_t>(trace_.ops.size());
        const auto tensors = static_cast<std::int64_t>(trace_.tensors.size());
        for (TraceTensor& tensor : trace_.tensors) {
            if (tensor.op >= ops) tensor.op = no_record;
            if (tensor.grad >= tensors) tensor.grad = grad_not_recorded;
        }
    }

    void add_scope(JsonCursor& in) {
        const std::size_t start = begin(in);
        scopes_.add(in, line_begin_, read_scope(in, scopes_.size()), start);
    }
    void add_tensor(JsonCursor& in) {
        const std::size_t start = begin(in);
        tensors_.add(in, line_begin_, read_tensor(in, tensors_.size()), start);
    }
    void add_op(JsonCursor& in) {
        const std::size_t start = begin(in);
        ops_.add(in, line_begin_, read_op(in, ops_.size()), start);
    }
    void add_diagnostic(JsonCursor& in) {
        const std::size_t start = begin(in);
        diagnostics_.add(in, line_begin_, read_diagnostic(in), start);
    }
    void read_end(JsonCursor& in) {
        end_offset_ = line_begin_ + begin(in);
        in.members({
            {"complete", JsonCursor::required, [&] { trace_.end.complete = in.boolean(); }},
            {"ops", JsonCursor::required, [&] { end_ops_ = std::string(in.number()); }},
            {"tensors", JsonCursor::required, [&] { end_tensors_ = std::string(in.number()); }},
            {"reason", JsonCursor::optional, [&] { trace_.end.reason = in.string(); }},
        });
    }
    static std::size_t begin(JsonCursor& in) {
        in.peek();
        return in.start();
    }

    std::size_t offset_of(const TraceFault& fault) const {
        if (fault.list == "scopes") return scopes_.offset(fault.index);
        if (fault.list == "tensors") return tensors_.offset(fault.index);
        if (fault.list == "ops") return ops_.offset(fault.index);
        return diagnostics_.offset(fault.index);
    }

    void check() const {
        if (const auto fault = find_fault(trace_)) {
            throw JsonFailure{offset_of(*fault), place(*fault), fault->problem};
        }
        check_count("ops", end_ops_, ops_.size());
        check_count("tensors", end_tensors_, tensors_.size());
    }

    void check_count(std::string_view list, const std::string& said, std::size_t found) const {
        if (said.empty() || said == std::to_string(found)) return;
        throw JsonFailure{end_offset_, "end." + std::string(list),
                          said + ", but there are " + std::to_string(found)};
    }

    std::string_view text_;
    TraceDocument trace_;
    Records<TraceScope> scopes_{trace_.scopes};
    Records<TraceTensor> tensors_{trace_.tensors};
    Records<TraceOp> ops_{trace_.ops};
    Records<TraceDiagnostic> diagnostics_{trace_.diagnostics};
    std::size_t line_begin_ = 0;
    std::size_t end_offset_ = 0;
    std::string end_ops_;
    std::string end_tensors_;
};

TraceDocument parse(std::string_view text, const std::string& source) {
    try {
        return Reader(text).read();
    } catch (const JsonFailure& failure) {
        throw FileError(source + describe(failure, text));
    }
}

}  // namespace
}  // namespace detail

TraceDocument parse_trace(std::string_view json) { return detail::parse(json, "parse_trace: "); }

TraceDocument read_trace(const std::string& path) {
    const detail::InputFile file("read_trace", path);
    std::string text(file.size(), '\0');
    file.read(0, reinterpret_cast<std::byte*>(text.data()), text.size());
    return detail::parse(text, "read_trace: " + path + ": ");
}

void write_trace(const std::string& path, const TraceDocument& trace) {
    const std::string text = path.ends_with(".jsonl") ? to_json_lines(trace) : to_json(trace);
    detail::OutputFile file("write_trace", path);
    file.write(text.data(), text.size());
    file.commit();
}

}  // namespace glassgrad
