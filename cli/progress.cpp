#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace stepsim {

Progress progress_bar(std::string_view what) {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [name = std::string(what)](std::size_t done, std::size_t of) {
    constexpr std::size_t width = 30;
    if (of == 0 || (done < of && done * 100 / of == (done - 1) * 100 / of)) return;
    const std::size_t full = done * width / of;
    const std::string line =
        done == of ? "\r\033[K"
                   : fmt::format("\r{} [{}{}] {} of {}\033[K", name, std::string(full, '#'),
                                 std::string(width - full, '.'), done, of);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  };
}

}  // namespace stepsim
