#include "sim/process/worker.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// The first byte of an answer says what follows.
constexpr char answer = 'a', user_error = 'u', bug = 'b', no_memory = 'm', machine = 'k';

// Returns false when nobody is there any more.
bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// A number of this type is sent: that of a task, or of the bytes of an answer.
using Number = std::uint64_t;

std::string_view bytes_of(const Number& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::optional<Number> read_number(int socket) {
  std::array<char, sizeof(Number)> bytes{};
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::recv(socket, &bytes[done], bytes.size() - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<std::size_t>(n);
  }
  return std::bit_cast<Number>(bytes);
}

// Runs the task and returns its answer or error, with a mark in front that says which.
std::string said_of(const wire::NumberedTask& task, std::size_t number) {
  try {
    return answer + task(number);
  } catch (const UserError& error) {
    return user_error + to_wire(error.problems());
  } catch (const std::bad_alloc&) {
    return no_memory + std::string("this machine has too little memory to compute it");
  } catch (const MachineError& error) {
    return machine + std::string(error.what());
  } catch (const std::system_error& error) {
    return machine + std::string(error.what());
  } catch (const std::exception& error) {
    return bug + std::string(error.what());
  }
}

// This is set in a worker: one that it asked for would copy what it has touched, to do no more.
bool is_worker = false;

// Does task after task, as they are told, until nobody tells any more.
[[noreturn]] void work(int socket, const wire::NumberedTask& task) {
  is_worker = true;
  // Memory that one task gives back is kept for the next: to get it from the system anew is half of
  // a short replay.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  while (const auto number = read_number(socket)) {
    const std::string said = said_of(task, *number);
    if (!send_all(socket, bytes_of(said.size())) || !send_all(socket, said)) break;
  }
  ::_exit(0);  // no destructors, no atexit: those belong to the parent
}

struct Child {
  pid_t process;
  int socket;
  std::size_t task = 0;
  bool busy = false;
  bool practised = false;  // it has done another task before
  std::string said{};

  // Returns the answer without its length, once all of it is there.
  std::optional<std::string> whole() const {
    Number size = 0;
    if (said.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, said.data(), sizeof size);
    if (said.size() < sizeof size + size) return std::nullopt;
    return said.substr(sizeof size);
  }
};

Child start(const wire::NumberedTask& task) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "no pipe for a worker");
  std::fflush(nullptr);  // what is buffered here must not be written by the child as well
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) {
    const int why = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw std::system_error(why, std::generic_category(), "no process for a worker");
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read the answer
    if (::getppid() != parent) ::_exit(0);
    ::close(ends[0]);
    work(ends[1], task);
  }
  ::close(ends[1]);
  return {child, ends[0]};
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {}: {}", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

// Says how a child ended that was not told to.
std::string end_of(const Child& child) {
  ::close(child.socket);
  int status = 0;
  while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  // SIGKILL comes from somebody else, or from a system that runs out of memory.
  const bool by_others = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  return (by_others ? machine : bug) +
         fmt::format("a worker ended without an answer ({})", how_it_ended(status));
}

// A crew is the children that run; whatever ends the study ends them.
class Crew {
 public:
  explicit Crew(const wire::NumberedTask& task) : task_(task) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    for (const Child& child : children_) {
      ::kill(child.process, SIGKILL);
      end_of(child);
    }
  }
  std::size_t busy() const {
    return static_cast<std::size_t>(std::ranges::count(children_, true, &Child::busy));
  }
  // Gives the task to a child that has nothing to do, or to a new one.
  void give(std::size_t number) {
    const auto idle = std::ranges::find(children_, false, &Child::busy);
    tell(idle == children_.end() ? children_.emplace_back(start(task_)) : *idle, number);
  }

  struct Said {
    std::size_t task = 0;
    std::string bytes{};
  };
  // Waits for the next answer and returns it.
  Said next(const std::function<void()>& each_second) {
    for (;;) {
      std::vector<pollfd> waiting;
      waiting.reserve(children_.size());
      for (const Child& child : children_)
        waiting.push_back({child.socket, static_cast<short>(child.busy ? POLLIN : 0), 0});
      const int ready = ::poll(waiting.data(), waiting.size(), each_second ? 1000 : -1);
      if (ready < 0 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "workers cannot be waited for");
      if (ready <= 0) {
        if (each_second) each_second();
        continue;
      }
      for (std::size_t i = 0; i < children_.size(); ++i)
        if (waiting[i].revents != 0 && children_[i].busy)
          if (auto said = heard_from(i)) return *said;
    }
  }

 private:
  static void tell(Child& child, std::size_t number) {
    child.task = number;
    child.busy = true;
    child.said.clear();
    send_all(child.socket, bytes_of(number));  // that it has died is heard when it is listened to
  }

  std::optional<Said> heard_from(std::size_t place) {
    Child& child = children_[place];
    std::array<char, 65536> buffer{};
    const ssize_t n = ::recv(child.socket, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) return std::nullopt;
    if (n <= 0) return replace(place);
    child.said.append(buffer.data(), static_cast<std::size_t>(n));
    auto whole = child.whole();
    if (!whole) return std::nullopt;
    if (whole->front() == no_memory && child.practised) {
      ::kill(child.process, SIGKILL);
      return replace(place);
    }
    child.busy = false;
    child.practised = true;
    return Said{child.task, std::move(*whole)};
  }

  // Replaces a child that has ended. Its earlier tasks may be the cause: if it had done any, a new
  // child tries this task once more; else the end is the answer.
  std::optional<Said> replace(std::size_t place) {
    const Child gone = std::move(children_[place]);
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(place));
    std::string end = end_of(gone);
    if (!gone.practised) return Said{gone.task, std::move(end)};
    tell(children_.emplace_back(start(task_)), gone.task);
    return std::nullopt;
  }

  const wire::NumberedTask& task_;
  std::vector<Child> children_;
};

// Returns the bytes of the answer, or throws the error that ended it.
std::string answer_of(const std::string& said) {
  std::string rest = said.substr(1);
  if (said.front() == user_error) throw UserError(from_wire<std::vector<Problem>>(rest));
  if (said.front() == no_memory) throw std::bad_alloc();
  if (said.front() == machine) throw MachineError(rest);
  if (said.front() == bug) throw std::runtime_error(rest);
  return rest;
}

void play(std::size_t count, std::size_t at_once, const wire::NumberedTask& task,
          const std::function<void(std::size_t, const std::string&)>& ended,
          const std::function<void()>& each_second = {}) {
  Crew crew(task);
  for (std::size_t started = 0; started < count || crew.busy() > 0;) {
    if (started < count && crew.busy() < at_once) {
      crew.give(started++);
    } else {
      const Crew::Said said = crew.next(each_second);
      ended(said.task, said.bytes);
    }
  }
}

}  // namespace

std::size_t usual_workers() {
  return std::max(1u, std::thread::hardware_concurrency());
}

double own_memory() {
  double pages = 0;  // of data, the sixth number
  std::ifstream file("/proc/self/statm");
  for (int number = 0; number < 6; ++number) file >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

void limit_worker(double bytes) {
  static bool limited = false;
  if (!is_worker || std::exchange(limited, true)) return;
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(own_memory() + bytes));
  ::setrlimit(RLIMIT_DATA, &limit);
}

namespace wire {

std::string from_worker(const Task& task) {
  return is_worker ? task() : from_fresh_child(task);
}

std::string from_fresh_child(const Task& task) {
  std::string bytes;
  play(
      1, 1, [&](std::size_t) { return task(); },
      [&](std::size_t, const std::string& said) { bytes = answer_of(said); });
  return bytes;
}

void from_workers(std::size_t count, std::size_t at_once, const NumberedTask& task,
                  const Heard& done) {
  play(count, at_once, task,
       [&](std::size_t number, const std::string& said) { done(number, answer_of(said)); });
}

void outcomes_from_workers(
    std::size_t count, std::size_t at_once, const NumberedTask& task,
    const std::function<void(std::size_t, const WorkerOutcome<std::string>&)>& done,
    const std::function<void()>& each_second) {
  const auto ended = [&](std::size_t number, const std::string& said) {
    WorkerOutcome<std::string> outcome;
    try {
      outcome.answer = answer_of(said);
    } catch (const UserError& error) {
      outcome.error = error.what();
    } catch (const std::exception&) {
      outcome.error = said.substr(1);
      outcome.died = true;
      outcome.no_memory = said.front() == no_memory;
    }
    done(number, outcome);
  };
  play(count, at_once, task, ended, each_second);
}

}  // namespace wire
}  // namespace stepsim
