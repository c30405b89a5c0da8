#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "cli/screen.hpp"
#include "sim/base/units.hpp"

namespace stepsim {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* wipe_line = "\r\033[K";

// Since the first that was done here: some may have been done before.
struct Begin {
  Clock::time_point time;
  std::size_t done = 0;
  std::size_t last = 0;  // what was done when it was drawn; less: another round begins
  Clock::time_point drawn{};
};

std::string time_left(const Begin& begin, std::size_t done, std::size_t of) {
  if (done <= begin.done) return "";
  const std::chrono::duration<double> passed = Clock::now() - begin.time;
  const double each = passed.count() / static_cast<double>(done - begin.done);
  return fmt::format(", {} left", to_text(Seconds{each * static_cast<double>(of - done)}));
}

// Belongs to a program that listens instead of a person who looks.
int progress_listener = -1;

void tell_listener(std::string_view what, std::size_t done, std::size_t of) {
  const std::string line = fmt::format("{} {} {}\n", done, of, what);
  if (::write(progress_listener, line.data(), line.size()) < 0)
    progress_listener = -1;  // it has gone
}

}  // namespace

void tell_progress_to(int file) {
  progress_listener = file;
}

Progress progress_bar(std::string_view what) {
  if (progress_listener < 0 && ::isatty(STDERR_FILENO) == 0) return {};
  return [name = std::string(what), begin = std::optional<Begin>()](std::size_t done,
                                                                    std::size_t of) mutable {
    constexpr std::size_t width = 30;
    if (!begin || done < begin->last) begin = Begin{Clock::now(), done};
    begin->last = done;
    const Clock::time_point now = Clock::now();
    const bool seldom = now - begin->drawn < std::chrono::seconds(1);
    if (of == 0 || (done < of && seldom && done * 100 / of == (done - 1) * 100 / of)) return;
    begin->drawn = now;
    if (progress_listener >= 0) return tell_listener(name, done, of);
    const std::size_t full = done * width / of;
    const std::string line =
        done == of
            ? wipe_line
            : fmt::format("\r{} [{}{}] {} of {}{}\033[K", name, std::string(full, '#'),
                          std::string(width - full, '.'), done, of, time_left(*begin, done, of));
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  };
}

StatusLine::StatusLine() : seen_(::isatty(STDERR_FILENO) != 0) {}

StatusLine::~StatusLine() {
  if (!seen_) return;
  std::fputs(wipe_line, stderr);
  std::fflush(stderr);
}

void StatusLine::news(std::string_view text) {
  if (seen_) std::fputs(wipe_line, stderr);
  say(stderr, "{}\n", text);
  drawn_ = {};
}

void StatusLine::redraw(const std::function<std::string()>& text) {
  const auto now = Clock::now();
  if (!seen_ || now - drawn_ < std::chrono::seconds(1)) return;
  drawn_ = now;
  std::fputs((wipe_line + text()).c_str(), stderr);
  std::fflush(stderr);
}

void print_at_once(std::string_view text) {
  say("{}", text);
  std::fflush(stdout);
}

}  // namespace stepsim
