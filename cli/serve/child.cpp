#include "cli/serve/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>
#include <vector>

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

namespace {

// Returns the process and its workers, which start no others.
std::vector<pid_t> with_workers(pid_t process) {
  std::vector<pid_t> all{process};
  std::ifstream workers(fmt::format("/proc/{0}/task/{0}/children", process));
  for (pid_t worker = 0; workers >> worker;) all.push_back(worker);
  return all;
}

}  // namespace

std::chrono::nanoseconds processor_time(pid_t process) {
  std::chrono::nanoseconds sum{0};
  for (const pid_t each : with_workers(process)) {
    clockid_t clock{};
    timespec time{};
    if (::clock_getcpuclockid(each, &clock) == 0 && ::clock_gettime(clock, &time) == 0)
      sum += std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  return sum;
}

void give_way(pid_t process, int by) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  for (const pid_t each : with_workers(process))
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(each), own + by);
}

void limit_memory(std::uint64_t bytes) {
#ifndef __SANITIZE_ADDRESS__  // its own tables take terabytes
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0)
    throw std::system_error(errno, std::generic_category(), "memory cannot be limited");
#else
  static_cast<void>(bytes);
#endif
}

namespace {

// These rights are of the first version of Landlock, which every later one has, too.
constexpr std::uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
                        writing = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                                  LANDLOCK_ACCESS_FS_REMOVE_FILE,
                        all_of_these = reading | writing | LANDLOCK_ACCESS_FS_EXECUTE |
                                       LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                       LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                       LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                       LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

// glibc has no functions for these calls.
template <class... Words>
int call(long number, Words... words) {
  const long result = ::syscall(number, words...);
  if (result < 0) throw std::system_error(errno, std::generic_category(), "Landlock");
  return static_cast<int>(result);
}

void allow(int rules, const std::string& folder, std::uint64_t access) {
  const int place = ::open(folder.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return;  // what is not there cannot be read
  const landlock_path_beneath_attr rule{.allowed_access = access, .parent_fd = place};
  call(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  ::close(place);
}

}  // namespace

bool can_shut_in() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

void shut_in(std::span<const std::string> readable, const std::string& writable) {
  landlock_ruleset_attr asked{};
  asked.handled_access_fs = all_of_these;
  const int rules = call(SYS_landlock_create_ruleset, &asked, sizeof(asked), 0);
  for (const std::string& folder : readable) allow(rules, folder, reading);
  allow(rules, writable, reading | writing);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw std::system_error(errno, std::generic_category(), "no new privileges");
  call(SYS_landlock_restrict_self, rules, 0);
  ::close(rules);
}

}  // namespace stepsim
