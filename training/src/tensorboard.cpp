#include <glassgrad/training/tensorboard.hpp>

#include "append_file.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>

#include <unistd.h>

namespace glassgrad {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t x = i;
        for (int bit = 0; bit < 8; ++bit) x = (x >> 1) ^ ((x & 1) != 0 ? 0x82F63B78U : 0);
        table[i] = x;
    }
    return table;
}();

template <class T>
void append_little(std::string& out, T x) {
    for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((x >> (8 * i)) & 0xFF);
}

/// The fields of a protobuf message (https://protobuf.dev/programming-guides/encoding).
struct Message {
    std::string bytes;

    void varint(std::uint64_t x) {
        for (; x >= 0x80; x >>= 7) bytes += static_cast<char>((x & 0x7F) | 0x80);
        bytes += static_cast<char>(x);
    }
    Message& integer(unsigned field, std::int64_t x) {
        varint(field << 3);
        varint(static_cast<std::uint64_t>(x));
        return *this;
    }
    Message& real(unsigned field, double x) {
        varint((field << 3) | 1);
        append_little(bytes, std::bit_cast<std::uint64_t>(x));
        return *this;
    }
    Message& real32(unsigned field, float x) {
        varint((field << 3) | 5);
        append_little(bytes, std::bit_cast<std::uint32_t>(x));
        return *this;
    }
    Message& text(unsigned field, std::string_view x) {
        varint((field << 3) | 2);
        varint(x.size());
        bytes += x;
        return *this;
    }
};

/// Rotated and shifted, so that checksums of data that holds checksums stay good.
std::uint32_t masked(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U; }

std::string framed(std::string_view record) {
    std::string out;
    append_little(out, std::uint64_t{record.size()});
    append_little(out, masked(out));
    out += record;
    append_little(out, masked(record));
    return out;
}

// Event: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
// Summary: value 1, of tag 1 and simple_value 2. SessionLog: status 1, START is 1.
Message event(double wall_time, std::int64_t step) {
    return Message{}.real(1, wall_time).integer(2, step);
}

std::string scalar(std::string_view tag, double x) {
    return Message{}.text(1, tag).real32(2, static_cast<float>(x)).bytes;
}

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
    return name.data();
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
    std::uint32_t x = ~0U;
    for (const char c : bytes) x = (x >> 8) ^ crc_table[(x ^ static_cast<unsigned char>(c)) & 0xFF];
    return ~x;
}

TensorBoardLog::TensorBoardLog(std::string folder, const TensorBoardOptions& options)
    : folder_(std::move(folder)), options_(options) {}

TensorBoardLog::~TensorBoardLog() = default;

double TensorBoardLog::now() const {
    if (options_.wall_time != 0) return options_.wall_time;
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

void TensorBoardLog::begin(std::int64_t first_step) {
    const double time = now();
    path_ = fmt::format("{}/events.out.tfevents.{}.{}.{}", folder_, static_cast<std::int64_t>(time),
                        options_.host.empty() ? host_name() : options_.host, ::getpid());
    file_ = std::make_unique<detail::AppendFile>("TensorBoardLog", path_);
    tokens_.reset();
    if (first_step == 0) tokens_ = 0;
    file_->write(framed(event(time, 0).text(3, "brain.Event:2").bytes));
    const std::string start = Message{}.integer(1, 1).bytes;
    file_->write(framed(event(time, first_step + 1).text(7, start).bytes));
}

void TensorBoardLog::on_start(const RunHeader&, std::int64_t first_step) { begin(first_step); }

void TensorBoardLog::on_step(const StepReport& report) {
    if (!file_) begin(report.step - 1);
    Message summary;
    summary.text(1, scalar("loss", report.loss));
    if (report.val_loss) summary.text(1, scalar("val_loss", *report.val_loss));
    summary.text(1, scalar("lr", report.lr));
    summary.text(1, scalar("grad_norm", report.grad_norm));
    if (tokens_ && report.seconds > 0) {
        const auto tokens = static_cast<double>(report.tokens - *tokens_);
        summary.text(1, scalar("tokens_per_s", tokens / report.seconds));
    }
    tokens_ = report.tokens;
    file_->write(framed(event(now(), report.step).text(5, summary.bytes).bytes));
}

void TensorBoardLog::on_save(std::int64_t) {
    if (file_) file_->sync();
}

}  // namespace glassgrad
