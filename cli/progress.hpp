// This says how far long work is: one line on standard error, and only where a person looks at it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "sim/process/worker.hpp"

namespace stepsim {

// Redraws its line whenever a hundredth more is done, or a second has passed, with the time that is
// left; wipes it at the end. Silent when standard error is no terminal.
Progress progress_bar(std::string_view what);
// Writes lines "DONE OF WHAT" to this file from now on, as often, instead of drawing anything.
void tell_progress_to(int file);

// A line on standard error says how far a search is, where a person looks at it; what is found
// stays above it, and is written elsewhere, too.
class StatusLine {
 public:
  StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine();  // wipes it

  bool is_seen() const { return seen_; }
  void news(std::string_view text);
  void redraw(const std::function<std::string()>& text);  // once a second at most

 private:
  bool seen_;
  std::chrono::steady_clock::time_point drawn_{};
};

// Prints an answer that is there before longer work begins.
void print_at_once(std::string_view text);

}  // namespace stepsim
