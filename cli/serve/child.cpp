#include "cli/serve/child.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "cli/tools.hpp"

namespace stepsim {

void begin_question(pid_t server) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != server) ::_exit(0);
  take_no_input();
}

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(file, bytes.data(), bytes.size());
    if (size < 0) throw std::system_error(errno, std::generic_category(), "no room for the answer");
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

bool was_killed(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

std::string end_text(int status) {
  if (was_killed(status))
    return "the process of this question was killed: this machine is short of memory";
  return fmt::format("this is a bug of ours: the process of this question ended with {} {}",
                     WIFSIGNALED(status) ? "signal" : "exit code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

}  // namespace stepsim
