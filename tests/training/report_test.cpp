// What a run tells about itself: progress, logs, curves, TensorBoard's events, the run's folder.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/loss_curve.hpp>
#include <glassgrad/training/progress.hpp>
#include <glassgrad/training/run_folder.hpp>
#include <glassgrad/training/tensorboard.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Folder {
    Folder() {
        static int serial = 0;
        path = (std::filesystem::temp_directory_path() /
                ("glassgrad_report_" + std::to_string(::getpid()) + "_" + std::to_string(serial++)))
                   .string();
        std::filesystem::create_directories(path);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string operator/(const std::string& name) const { return path + "/" + name; }
    std::string path;
};

std::string content(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
}

void put(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}

/// A file in place of standard error.
struct Screen {
    Screen() : descriptor(::open((folder / "screen").c_str(), O_RDWR | O_CREAT, 0600)) {}
    ~Screen() { ::close(descriptor); }
    std::string text() const { return content(folder / "screen"); }
    Folder folder;
    int descriptor;
};

StepReport step(std::int64_t n, double loss = 2.5) {
    return {.step = n,
            .steps = 1000,
            .tokens = 768 * n,
            .loss = loss,
            .val_loss = {},
            .lr = 2.8e-4,
            .grad_norm = 0.71,
            .seconds = 0.0625};
}

Metrics row(std::int64_t n, double loss, std::optional<double> val_loss = {}) {
    return {.step = n,
            .tokens = 768 * n,
            .loss = loss,
            .val_loss = val_loss,
            .lr = 1e-3,
            .grad_norm = 0.5,
            .tokens_per_s = 12288,
            .seconds = 0.0625};
}

}  // namespace

TEST_CASE("a progress line says all that is known, and stays in its width") {
    const Progress progress{.step = 420,
                            .steps = 1000,
                            .loss = 1.8731,
                            .val_loss = 1.951,
                            .lr = 2.8e-4,
                            .grad_norm = 0.712,
                            .tokens_per_s = 12'380,
                            .seconds_left = 71.6,
                            .losses = {4, 3, 2.2, 1.9, 1.87}};
    CHECK(progress_bar_text(progress, {.width = 140}) ==
          "step 420/1000 ━━━━━━━━━━────────────── 42% loss 1.873 val 1.951 lr 2.8e-4 ‖g‖ 0.71 "
          "12.4k tok/s eta 1m12s █▅▂▁▁");
    CHECK(progress_bar_text(progress, {.width = 110, .utf8 = false}) ==
          "step 420/1000 [#####-------] 42% loss 1.873 val 1.951 lr 2.8e-4 norm 0.71 12.4k tok/s "
          "eta 1m12s #=.__");
    CHECK(progress_bar_text(progress, {.width = 98}) ==
          "step 420/1000 ━━━━━─────── 42% loss 1.873 val 1.951 lr 2.8e-4 ‖g‖ 0.71 12.4k tok/s "
          "eta 1m12s");
    CHECK(progress_bar_text(progress, {.width = 80}) ==
          "step 420/1000 loss 1.873 val 1.951 lr 2.8e-4 ‖g‖ 0.71 12.4k tok/s eta 1m12s");
    CHECK(progress_bar_text(progress, {.width = 50}) ==
          "step 420/1000 loss 1.873 val 1.951 lr 2.8e-4 ‖g‖ ");
    CHECK(progress_bar_text(progress, {.width = 0}) == "s");
    CHECK(progress_bar_text(progress, {.width = 16, .color = true}) ==
          "\x1b[2mstep \x1b[0m420/1000 \x1b[2ml\x1b[0m");
    CHECK(progress_line_text(progress) ==
          "step 420/1000 loss 1.873 val 1.951 lr 2.8e-4 norm 0.71 12.4k tok/s eta 1m12s");
    CHECK(progress_line_text({.step = 7,
                              .steps = 0,
                              .loss = NAN,
                              .val_loss = {},
                              .lr = 0,
                              .grad_norm = infinity,
                              .tokens_per_s = 2.5e6,
                              .seconds_left = {},
                              .losses = {}}) == "step 7 loss nan lr 0 norm inf 2.5M tok/s");
    CHECK(sparkline(std::vector<double>{1.0, NAN, 8.0, 1.7e308, -infinity}, {}) == "▁!▁█!");

    CHECK(duration_text(-1) == "0s");
    CHECK(duration_text(59.6) == "1m00s");
    CHECK(duration_text(7500) == "2h05m");
    CHECK(duration_text(100 * 3600) == "4d04h");
    CHECK(duration_text(infinity) == "?");
    CHECK(header_text(RunHeader{}.add("model", "Gpt\n2 layers").add("seed", "1"), {}) ==
          "model  Gpt\n       2 layers\nseed   1\n");
    CHECK(end_text({.reason = RunEnd::Reason::early_stop, .step = 1, .detail = "best 1.5"}) ==
          "stopped early after 1 step: best 1.5");
    CHECK(printable("a\x1b[2J\r\t\u00e9\u0085\xff\xe2\x82", {}) == "a?[2J?\t\u00e9????");
    CHECK(printable("caf\u00e9\n", {.utf8 = false}) == "caf?\n");
}

TEST_CASE("rates are medians without the first steps; a history has at most 16 parts") {
    StepRate rate;
    for (int n = 1; n <= 3; ++n) rate.add(step(n));
    CHECK_FALSE(rate.tokens_per_s());
    for (const double seconds : {0.5, 0.25, 8.0, 0.25}) {
        StepReport report = step(4);
        report.seconds = seconds;
        rate.add(report);
    }
    CHECK(rate.seconds_per_step() == 0.375);
    LossHistory history;
    for (int n = 1; n <= 1000; ++n) {
        history.add(n);
        const auto means = history.means();
        REQUIRE(means.size() <= 16);
        REQUIRE(std::is_sorted(means.begin(), means.end()));
    }
    CHECK(history.means().front() == 32.5);  // of 64 steps
}

TEST_CASE("lines where nobody watches: no carriage return, no colour, each log_every steps") {
    const Screen screen;
    ProgressLine line({.log_every = 2, .descriptor = screen.descriptor});
    line.on_start(RunHeader{}.add("seed", "1"), 420);
    for (int n = 421; n <= 424; ++n) line.on_step(step(n));
    StepReport validated = step(425);
    validated.val_loss = 2.6;
    line.on_step(validated);
    line.on_message("saved");
    line.on_sample(425, "To be\n\x1b[31mor");
    line.on_end({.reason = RunEnd::Reason::interrupted, .step = 425, .detail = {}});
    CHECK(screen.text() ==
          "seed  1\nresumed after step 420\n"
          "step 421/1000 loss 2.500 lr 2.8e-4 norm 0.71\n"
          "step 422/1000 loss 2.500 lr 2.8e-4 norm 0.71\n"
          "step 424/1000 loss 2.500 lr 2.8e-4 norm 0.71 12.3k tok/s eta 36s\n"
          "step 425/1000 loss 2.500 val 2.600 lr 2.8e-4 norm 0.71 12.3k tok/s eta 36s\n"
          "saved\nsample after step 425:\n  To be\n  ?[31mor\ninterrupted after 425 steps\n");
    CHECK(text_of<ValueError>([] { ProgressLine zero({.log_every = 0}); }) ==
          "ProgressLine: log_every is 0, it must be at least 1");
}

TEST_CASE("a bar is redrawn at most ten times a second and leaves whole lines above it") {
    const Screen screen;
    double now = 100;
    {
        ProgressLine line({.descriptor = screen.descriptor,
                           .terminal = Terminal{.is_terminal = true, .no_color = true},
                           .width = 40,
                           .clock = [&] { return now; }});
        line.on_step(step(1));
        now += 0.05;
        line.on_step(step(2));
        now += 0.05001;
        line.on_step(step(3, 12.5));
        line.on_message("saved");
        line.on_step(step(4));
    }
    const std::string drawn = "\rstep 3/1000 loss 12.50 lr 2.8e-4 norm 0";
    CHECK(screen.text() == "\rstep 1/1000 loss 2.500 lr 2.8e-4 norm 0" + drawn + "\r" +
                               std::string(39, ' ') + "\rsaved\n" + drawn + "\n");
}

TEST_CASE("what is shown where: modes, quiet, environment") {
    const auto shown = [](ProgressOptions options, RunEnd::Reason reason) {
        const Screen screen;
        options.descriptor = screen.descriptor;
        ProgressLine line(options);
        line.on_start(RunHeader{}.add("seed", "1"), 0);
        line.on_step(step(1));
        line.on_end({.reason = reason, .step = 1, .detail = "NaN in exp"});
        return screen.text();
    };
    using Mode = ProgressOptions::Mode;
    using Reason = RunEnd::Reason;
    const Terminal plain{.is_terminal = true, .no_color = true};
    const std::string done = "done after 1 step: NaN in exp\n";
    CHECK(shown({.mode = Mode::none}, Reason::done) == "seed  1\n" + done);
    CHECK(shown({.quiet = true}, Reason::done).empty());
    CHECK(shown({.quiet = true}, Reason::diverged) == "diverged after 1 step: NaN in exp\n");
    CHECK(shown({.mode = Mode::lines, .terminal = plain}, Reason::done) ==
          "seed  1\nstep 1/1000 loss 2.500 lr 2.8e-4 norm 0.71\n" + done);
    const Terminal dumb{.is_terminal = true, .dumb = true, .utf8 = true};
    CHECK(shown({.terminal = dumb}, Reason::done).find('\r') == std::string::npos);
    CHECK(shown({.terminal = Terminal{.is_terminal = true}}, Reason::done).find("\x1b[2m") !=
          std::string::npos);

    using Names = std::map<std::string, const char*>;
    const auto terminal = [](const Names& names) {
        return terminal_of(true, [&](const char* name) {
            const auto found = names.find(name);
            return found == names.end() ? nullptr : found->second;
        });
    };
    CHECK(terminal({}).dumb);
    CHECK(terminal({{"TERM", "dumb"}}).dumb);
    CHECK(terminal({{"TERM", "xterm"}, {"LANG", "de_DE.utf8"}}).utf8);
    CHECK_FALSE(terminal({{"TERM", "xterm"}, {"LC_ALL", "C"}, {"LANG", "de_DE.UTF-8"}}).utf8);
    CHECK(terminal({{"LC_ALL", ""}, {"LC_CTYPE", "C.UTF-8"}}).utf8);
    CHECK(terminal({{"NO_COLOR", "1"}}).no_color);
    CHECK_FALSE(terminal({{"NO_COLOR", ""}, {"CLICOLOR_FORCE", "0"}}).no_color);
    CHECK_FALSE(terminal({{"CLICOLOR_FORCE", "0"}}).force_color);
    CHECK(terminal({{"CLICOLOR_FORCE", "1"}}).force_color);
}

TEST_CASE("no SIGPIPE and no closed descriptor ends a run") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    ProgressLine line({.log_every = 1, .descriptor = ends[1]});
    ::close(ends[0]);
    for (int n = 1; n <= 3; ++n) line.on_step(step(n));
    ::close(ends[1]);
    ProgressLine closed({.log_every = 1, .descriptor = ends[1]});
    closed.on_step(step(1));
    closed.on_end({});
    sigset_t pending;
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGPIPE) == 0);
}

TEST_CASE("the log has a line a step, and none twice and no gap after a resumption") {
    const Folder folder;
    const std::string path = folder / "metrics.jsonl";
    {
        MetricsLog log(path);
        log.on_start({}, 0);
        log.on_step(step(1, NAN));
        StepReport second = step(2, 0.1f);
        second.val_loss = infinity;
        log.on_step(second);
        log.on_save(2);
        log.on_step(step(3));
    }
    const std::string whole = content(path);
    CHECK(whole.substr(0, whole.find('\n')) ==
          R"({"step":1,"tokens":768,"loss":"NaN","lr":0.00028,"grad_norm":0.71,)"
          R"("tokens_per_s":12288.0,"seconds":0.0625})");
    std::vector<Metrics> rows = read_metrics(path);
    REQUIRE(rows.size() == 3);
    CHECK(std::isnan(rows[0].loss));
    CHECK(rows[1].loss == 0.1f);
    CHECK(rows[1].val_loss == infinity);
    CHECK(rows[2] == Metrics{.step = 3,
                             .tokens = 2304,
                             .loss = 2.5,
                             .val_loss = {},
                             .lr = 2.8e-4,
                             .grad_norm = 0.71,
                             .tokens_per_s = 12288,
                             .seconds = 0.0625});

    // Killed at any byte, resumed after step 2: as if nothing had been.
    const std::size_t two = whole.find('\n', whole.find('\n') + 1) + 1;
    for (std::size_t cut = two; cut <= whole.size(); cut += 23) {
        put(path, whole.substr(0, cut));
        REQUIRE(read_metrics(path).size() == (cut == whole.size() ? 3 : 2));
        MetricsLog log(path);
        log.on_start({}, 2);
        log.on_step(step(3));
        REQUIRE(content(path) == whole);
    }
    put(path, whole + std::string(5, '\0') + "\n" + whole);
    {
        MetricsLog log(path);
        log.on_step(step(4));  // without a start
    }
    rows = read_metrics(path);
    REQUIRE(rows.size() == 4);
    CHECK(rows[3].tokens_per_s == 12288);

    const auto refusal = [&](std::string_view text) {
        put(path, text);
        std::string what = text_of<FileError>([&] { read_metrics(path); });
        return what.replace(what.find(path), path.size(), "FILE");
    };
    CHECK(refusal(whole + "{}\n") == "read_metrics: FILE: line 4, column 1: 'step' is missing");
    CHECK(refusal(whole + whole) == "read_metrics: FILE: line 4, column 1: step: 1 comes after 3");
    CHECK(refusal("{\"step\":1,\"loss\":\"nan\"}\n") ==
          "read_metrics: FILE: line 1, column 18: loss: expected a number, NaN, Infinity or "
          "-Infinity, found 'nan'");
}

TEST_CASE("a loss curve is well-formed, bounded, and shows what is there") {
    const Folder folder;
    std::vector<Metrics> rows;
    for (int n = 1; n <= 20'000; ++n) {
        rows.push_back(row(n, 1.5 + 3 * std::exp(-n / 3000.0) + 0.1 * std::sin(n)));
        if (n % 1000 == 0) rows.back().val_loss = rows.back().loss + 0.1;
    }
    rows[7].loss = NAN;
    write_loss_curve(folder / "loss.svg", rows, {.title = "a < b & \"c\""});
    const std::string svg = content(folder / "loss.svg");
    CHECK(svg.size() < 100'000);
    const auto count = [&](std::string_view part) {
        int found = 0;
        for (std::size_t at = 0; (at = svg.find(part, at)) != svg.npos; ++at) ++found;
        return found;
    };
    CHECK(count("a &lt; b &amp; &quot;c&quot;") == 2);
    CHECK(count("<circle") == 20);
    CHECK(count("step 8: not finite") == 1);
    CHECK(count(">20000</text>") == 1);
    CHECK(count("nan") + count("inf,") == 0);
    CHECK(loss_curve_svg({}).find("no steps yet") != std::string::npos);
    CHECK(loss_curve_svg(std::vector{row(1, NAN)}).find("no loss is finite") != std::string::npos);
    for (const double loss : {0.0, -3.0, 1e-300, 1e300}) {
        const std::string one = loss_curve_svg(std::vector{row(1, loss), row(2, loss, -loss)});
        CHECK(one.find("nan") == std::string::npos);
        CHECK(one.find("<circle") != std::string::npos);
    }
    CHECK(loss_curve_svg(std::vector{row(1, 1e-300), row(2, 1e300)}).find("nan") == svg.npos);
    CHECK(loss_curve_svg(std::vector{row(1, 1.7e308)}).find("no loss is finite") != svg.npos);

    rows = {row(1, 4), row(2, 3, 3.1), row(3, 2.5), row(4, 2.25, 2.5)};
    CHECK(loss_curve_text(rows, {.width = 30, .height = 9, .utf8 = false}) ==
          "4 +       **\n"
          "  |         **\n"
          "  |           **\n"
          "3 +             o******\n"
          "  |                    ******o\n"
          "  |                          *\n"
          "  +---------------------------\n"
          "   0            2            4\n"
          "* training 2.25   o validation 2.5, best 2.5 at 4\n");
    CHECK(loss_curve_text(rows, {.width = 30, .height = 9}) ==
          "4 ┤      ⠐⠢⡀\n"
          "  │        ⠈⠢⣀\n"
          "  │           ⠑⢄\n"
          "3 ┤             ●⠒⠤⣀\n"
          "  │                 ⠉⠒⠤⣀⣀⡀   ●\n"
          "  │                      ⠈⠉⠑⠒⠢\n"
          "  └───────────────────────────\n"
          "   0            2            4\n"
          "⠒ training 2.25   ● validation 2.5, best 2.5 at 4\n");
    CHECK(loss_curve_text({}) == "no steps yet\n");
}

TEST_CASE("TensorBoard's events, as a decoder reads them that was written on its own") {
    CHECK(crc32c("123456789") == 0xE3069283);
    const Folder folder;
    TensorBoardLog log(folder.path, {.host = "host", .wall_time = 1.5e9});
    log.on_start({}, 300);
    log.on_step(step(301));
    StepReport validated = step(302, NAN);
    validated.val_loss = 0.25;
    log.on_step(validated);
    CHECK(log.path() ==
          folder / ("events.out.tfevents.1500000000.host." + std::to_string(::getpid())));
    const std::string command =
        std::string(GLASSGRAD_PYTHON " " GLASSGRAD_DECODE_EVENTS " ") + log.path();
    std::FILE* decoder = ::popen(command.c_str(), "r");
    REQUIRE(decoder != nullptr);
    std::string text;
    for (int c; (c = std::fgetc(decoder)) != EOF;) text += static_cast<char>(c);
    CHECK(::pclose(decoder) == 0);
    const std::string time = "{\"wall_time\": 1500000000.0, \"step\": ";
    CHECK(text == time + "0, \"file_version\": \"brain.Event:2\"}\n" + time +
                      "301, \"session_status\": 1}\n" + time +
                      "301, \"loss\": 2.5, \"lr\": 0.0002800000074785203, \"grad_norm\": "
                      "0.7099999785423279}\n" +
                      time +
                      "302, \"loss\": NaN, \"val_loss\": 0.25, \"lr\": 0.0002800000074785203, "
                      "\"grad_norm\": 0.7099999785423279, \"tokens_per_s\": 12288.0}\n");
}

TEST_CASE("a run's folder says what ran, each time, and keeps samples that the run still has") {
    const Folder folder;
    const std::string path = folder / "a/b";
    const RunHeader header = RunHeader{}.add("seed", "1").add("threads", "2");
    const auto run = [&](std::int64_t first_step, std::int64_t until) {
        RunFolder out(path, {.command = {"glassgrad", "train", "a \"b\""}});
        out.on_start(header, first_step);
        for (std::int64_t n = first_step + 10; n <= until; n += 10) {
            out.on_sample(n, "sample " + std::to_string(n) + "\n=== step 1, 1 bytes ===\n");
        }
        out.on_save(until);
        return content(out.path("samples.txt"));
    };
    const std::string whole = run(0, 40);
    CHECK(whole.starts_with("=== step 10, 34 bytes ===\nsample 10\n=== step 1, 1 bytes ===\n\n"));
    CHECK(run(20, 40) == whole);
    put(path + "/samples.txt", whole.substr(0, whole.size() - 1));
    CHECK(run(30, 40) == whole);
    put(path + "/samples.txt", "mine\n" + whole);
    CHECK(run(10, 10) == "mine\n" + whole);

    auto json = nlohmann::json::parse(content(path + "/run.json"));
    REQUIRE(json["starts"].size() == 4);
    CHECK(json["format"] == "glassgrad-run");
    const auto& start = json["starts"][1];
    CHECK(start["first_step"] == 20);
    CHECK(start["command"] == nlohmann::json{"glassgrad", "train", "a \"b\""});
    CHECK(start["facts"].dump() == R"({"seed":"1","threads":"2"})");
    CHECK(start["started"].get<std::string>().size() == 20);
    CHECK(start["host"]["cores"] > 0);
    run(0, 10);
    CHECK(nlohmann::json::parse(content(path + "/run.json"))["starts"].size() == 1);
    CHECK(content(path + "/samples.txt").size() == whole.size() / 4);

    put(folder / "file", "x");
    CHECK(text_of<FileError>([&] { RunFolder(folder / "file/x"); }) ==
          "RunFolder: " + folder / "file/x" + ": cannot make this folder: Not a directory");
}
