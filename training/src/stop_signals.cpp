#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/stop_signals.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>

#include <unistd.h>

namespace glassgrad {
namespace {

struct Watched {
    int signal;
    bool ends;  ///< by itself a process
    struct sigaction before {};
    bool changed = false;
};

Watched watched[] = {{SIGINT, true}, {SIGTERM, true}, {SIGUSR1, false}};

std::atomic<bool> in_use{false};
// Written by handlers.
std::atomic<int> ending{0};  ///< the first signal that ends the process
std::atomic<bool> asked{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

extern "C" void glassgrad_note_end(int signal) {
    int none = 0;
    if (!ending.compare_exchange_strong(none, signal)) ::_exit(128 + signal);
}

extern "C" void glassgrad_note_wish(int /*signal*/) { asked = true; }

}  // namespace

StopSignals::StopSignals(std::string stop_file) : stop_file_(std::move(stop_file)) {
    if (in_use.exchange(true)) {
        throw ValueError("StopSignals: there is one already, and a process has its signals once");
    }
    ending = 0;
    asked = false;
    for (Watched& each : watched) {
        ::sigaction(each.signal, nullptr, &each.before);
        each.changed = !(each.ends && each.before.sa_handler == SIG_IGN);
        if (!each.changed) continue;
        struct sigaction action {};
        action.sa_handler = each.ends ? glassgrad_note_end : glassgrad_note_wish;
        action.sa_flags = SA_RESTART;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(each.signal, &action, nullptr);
    }
}

StopSignals::~StopSignals() {
    for (const Watched& each : watched) {
        if (each.changed) ::sigaction(each.signal, &each.before, nullptr);
    }
    in_use = false;
}

bool StopSignals::requested() {
    if (!stop_file_.empty() && ::unlink(stop_file_.c_str()) == 0) by_file_ = true;
    return by_file_ || asked || ending != 0;
}

int StopSignals::exit_status() const noexcept {
    const int signal = ending;
    return signal == 0 ? 0 : 128 + signal;
}

}  // namespace glassgrad
