#include "cli/serve/allotment.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

namespace stepsim {
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

}  // namespace stepsim
