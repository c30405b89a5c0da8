#include "cli/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <system_error>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::size_t usual_width = 110, least_width = 60;

bool to_terminal() {
  return ::isatty(STDOUT_FILENO) != 0;
}

std::size_t columns_said() {
  const char* const said = std::getenv("COLUMNS");
  if (said == nullptr) return 0;
  return number_from<std::size_t>(said).value_or(0);
}

std::size_t columns_of_terminal() {
  if (!to_terminal()) return 0;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool wants_colour() {
  const char* const no = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return to_terminal() && (no == nullptr || *no == 0) && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

// Returns the mark that stands before a colour's code within a text. No file can hold it, as it is
// new in each process.
const std::string& colour_mark() {
  static const std::string mark = [] {
    std::random_device source;
    return fmt::format("colour {:08x}{:08x}{:08x} ", source(), source(), source());
  }();
  return mark;
}

std::string shown(std::string_view text) {
  std::string result;
  while (wants_colour()) {
    const std::size_t at = text.find(colour_mark());
    if (at == std::string_view::npos) break;
    result += printable(text.substr(0, at));
    text.remove_prefix(at + colour_mark().size());
    const std::size_t end = text.find('m') + 1;
    (result += "\033[") += text.substr(0, end);
    text.remove_prefix(end);
  }
  return result + printable(text);
}

}  // namespace

void write_shown(std::FILE* to, std::string_view text) {
  const std::string bytes = shown(text);
  if (std::fwrite(bytes.data(), 1, bytes.size(), to) == bytes.size() && std::fflush(to) == 0)
    return;
  if (errno != EPIPE) throw std::system_error(errno, std::generic_category());
  std::clearerr(to);
}

std::size_t line_width() {
  const std::size_t terminal = columns_of_terminal();
  const std::size_t columns = terminal > 0 ? terminal : columns_said();
  return columns == 0 ? usual_width : std::max(columns, least_width);
}

std::string coloured(std::string_view text, Colour colour) {
  if (!wants_colour()) return std::string(text);
  constexpr std::array<std::string_view, 3> codes{"32", "31", "1"};
  return fmt::format("{0}{1}m{2}{0}0m", colour_mark(), codes[static_cast<std::size_t>(colour)],
                     text);
}

std::string shell_word(const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](char c) {
    return is_letter_or_digit(c) || std::string_view("._-/=+:@%,").find(c) != std::string::npos;
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text)
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  return quoted + '\'';
}

}  // namespace stepsim
