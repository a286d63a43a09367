#include <glassgrad/training/metrics.hpp>

#include "append_file.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/tensor/error.hpp>

#include <cmath>
#include <limits>

namespace glassgrad {
namespace {

using detail::JsonCursor;
using detail::JsonFailure;

void write_real(detail::JsonWriter& out, std::string_view name, double value) {
    out.name(name);
    if (std::isfinite(value)) return out.number(value);
    out.text(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

double read_real(JsonCursor& in) {
    if (in.peek() != JsonCursor::Kind::string) return in.real();
    const std::string text = in.string();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (text == "Infinity") return infinity;
    if (text == "-Infinity") return -infinity;
    in.fail("expected a number, NaN, Infinity or -Infinity, found " + detail::quoted(text));
}

/// Throws JsonFailure.
Metrics parse_line(std::string_view line) {
    detail::check_utf8(line);
    JsonCursor in(line);
    Metrics row;
    constexpr bool required = JsonCursor::required;
    in.members({{"step", required, [&] { row.step = in.integer(); }},
                {"tokens", required, [&] { row.tokens = in.integer(); }},
                {"loss", required, [&] { row.loss = read_real(in); }},
                {"val_loss", JsonCursor::optional, [&] { row.val_loss = read_real(in); }},
                {"lr", required, [&] { row.lr = read_real(in); }},
                {"grad_norm", required, [&] { row.grad_norm = read_real(in); }},
                {"tokens_per_s", required, [&] { row.tokens_per_s = read_real(in); }},
                {"seconds", required, [&] { row.seconds = read_real(in); }}});
    in.finish();
    return row;
}

/// Calls `visit(line, offset)` for each line that has its end.
template <class Visit>
void for_lines(std::string_view text, const Visit& visit) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
        visit(text.substr(begin, end - begin), begin);
    }
}

std::string_view text_of(const detail::MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

std::string to_json(const Metrics& metrics) {
    detail::JsonWriter out;
    out.begin_object();
    out.name("step").number(metrics.step);
    out.name("tokens").number(metrics.tokens);
    write_real(out, "loss", metrics.loss);
    if (metrics.val_loss) write_real(out, "val_loss", *metrics.val_loss);
    write_real(out, "lr", metrics.lr);
    write_real(out, "grad_norm", metrics.grad_norm);
    write_real(out, "tokens_per_s", metrics.tokens_per_s);
    write_real(out, "seconds", metrics.seconds);
    out.end_object();
    return out.take();
}

std::vector<Metrics> read_metrics(const std::string& path) {
    const detail::MappedFile file("read_metrics", path);
    const std::string_view text = text_of(file);
    std::vector<Metrics> rows;
    for_lines(text, [&](std::string_view line, std::size_t offset) {
        try {
            const Metrics row = parse_line(line);
            if (!rows.empty() && row.step <= rows.back().step) {
                throw JsonFailure{
                    0, "step",
                    std::to_string(row.step) + " comes after " + std::to_string(rows.back().step)};
            }
            rows.push_back(row);
        } catch (JsonFailure& failure) {
            failure.offset += offset;
            throw FileError("read_metrics: " + path + ": " + detail::describe(failure, text));
        }
    });
    return rows;
}

MetricsLog::MetricsLog(std::string path) : path_(std::move(path)) {}

MetricsLog::~MetricsLog() = default;

void MetricsLog::begin(std::int64_t first_step) {
    file_.reset();
    tokens_.reset();
    if (first_step == 0) tokens_ = 0;
    if (detail::file_exists("MetricsLog", path_)) {
        const detail::MappedFile file("MetricsLog", path_);
        std::string kept;
        std::int64_t last = 0;
        for_lines(text_of(file), [&](std::string_view line, std::size_t) {
            try {
                const Metrics row = parse_line(line);
                if (row.step <= last || row.step > first_step) return;
                last = row.step;
                tokens_ = row.tokens;
                kept.append(line).push_back('\n');
            } catch (const JsonFailure&) {  // what a power cut left
            }
        });
        if (kept != text_of(file)) detail::replace_file("MetricsLog", path_, kept);
    }
    file_ = std::make_unique<detail::AppendFile>("MetricsLog", path_);
}

void MetricsLog::on_start(const RunHeader&, std::int64_t first_step) { begin(first_step); }

void MetricsLog::on_step(const StepReport& report) {
    if (!file_) begin(report.step - 1);
    // Where the lines before are lost, as many as in the steps on average.
    const double tokens =
        tokens_ ? static_cast<double>(report.tokens - *tokens_)
                : static_cast<double>(report.tokens) / static_cast<double>(report.step);
    tokens_ = report.tokens;
    file_->write(to_json({.step = report.step,
                          .tokens = report.tokens,
                          .loss = report.loss,
                          .val_loss = report.val_loss,
                          .lr = report.lr,
                          .grad_norm = report.grad_norm,
                          .tokens_per_s = report.seconds > 0 ? tokens / report.seconds : 0,
                          .seconds = report.seconds}) +
                 "\n");
}

void MetricsLog::on_save(std::int64_t) {
    if (file_) file_->sync();
}

}  // namespace glassgrad
