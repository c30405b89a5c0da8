#include "analysis/studies/predict/worker.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "sim/base/error.hpp"
#include "sim/base/machine_error.hpp"

namespace stepsim {
namespace {

// The first byte of an answer says what follows.
constexpr char answer = 'a', user_error = 'u', bug = 'b', no_memory = 'm', machine = 'k';

void write_all(int pipe, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(pipe, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

std::string read_all(int pipe) {
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::read(pipe, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

[[noreturn]] void work(int pipe, const wire::Task& task) {
  try {
    write_all(pipe, answer + task());
  } catch (const UserError& error) {
    write_all(pipe, user_error + to_wire(error.problems()));
  } catch (const std::bad_alloc&) {
    write_all(pipe, no_memory + std::string("this machine has too little memory to compute it"));
  } catch (const MachineError& error) {
    write_all(pipe, machine + std::string(error.what()));
  } catch (const std::system_error& error) {
    write_all(pipe, machine + std::string(error.what()));
  } catch (const std::exception& error) {
    write_all(pipe, bug + std::string(error.what()));
  }
  ::_exit(0);  // no destructors, no atexit: those belong to the parent
}

struct Child {
  pid_t process;
  int answers;
  std::size_t task = 0;
  std::string said{};
};

Child start(const wire::Task& task) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "no pipe for a worker");
  std::fflush(nullptr);  // what is buffered here must not be written by the child as well
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) {
    const int why = errno;
    ::close(pipe[0]);
    ::close(pipe[1]);
    throw std::system_error(why, std::generic_category(), "no process for a worker");
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read the answer
    if (::getppid() != parent) ::_exit(0);
    ::close(pipe[0]);
    work(pipe[1], task);
  }
  ::close(pipe[1]);
  return {child, pipe[0]};
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {}: {}", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

// Everything the child said, with its mark in front. What was cut off by its death is no answer.
void wait_for(Child& child) {
  child.said += read_all(child.answers);
  ::close(child.answers);
  int status = 0;
  while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  // By somebody, or by a system that runs out of memory.
  const bool by_others = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (child.said.empty() || status != 0)
    child.said = (by_others ? machine : bug) +
                 fmt::format("a worker ended without an answer ({})", how_it_ended(status));
}

// Children that run; whatever ends the study ends them.
class Crew {
 public:
  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    for (Child& child : running_) {
      ::kill(child.process, SIGKILL);
      wait_for(child);
    }
  }
  std::size_t size() const { return running_.size(); }
  void add(const wire::Task& task, std::size_t number) {
    running_.push_back(start(task));
    running_.back().task = number;
  }
  // The next one that has said all it had to say.
  Child next(const std::function<void()>& each_second) {
    for (;;) {
      std::vector<pollfd> waiting;
      waiting.reserve(running_.size());
      for (const Child& child : running_) waiting.push_back({child.answers, POLLIN, 0});
      const int ready = ::poll(waiting.data(), waiting.size(), each_second ? 1000 : -1);
      if (ready < 0 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "workers cannot be waited for");
      if (ready <= 0) {
        if (each_second) each_second();
        continue;
      }
      for (std::size_t i = 0; i < running_.size(); ++i)
        if (waiting[i].revents != 0 && has_ended(running_[i])) return take(i);
    }
  }

 private:
  static bool has_ended(Child& child) {
    std::array<char, 65536> buffer{};
    const ssize_t n = ::read(child.answers, buffer.data(), buffer.size());
    if (n > 0) child.said.append(buffer.data(), static_cast<std::size_t>(n));
    return n == 0 || (n < 0 && errno != EINTR);
  }
  Child take(std::size_t place) {
    Child child = std::move(running_[place]);
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
    wait_for(child);
    return child;
  }

  std::vector<Child> running_;
};

// The bytes of its answer, or the error that ended it.
std::string answer_of(const std::string& said) {
  std::string rest = said.substr(1);
  if (said.front() == user_error) throw UserError(from_wire<std::vector<Problem>>(rest));
  if (said.front() == no_memory) throw std::bad_alloc();
  if (said.front() == machine) throw MachineError(rest);
  if (said.front() == bug) throw std::runtime_error(rest);
  return rest;
}

// Each task in a child of its own, at most `at_once` of them at a time.
void play(std::size_t count, std::size_t at_once, const wire::NumberedTask& task,
          const std::function<void(const Child&)>& ended,
          const std::function<void()>& each_second = {}) {
  Crew crew;
  std::size_t started = 0;
  while (started < count || crew.size() > 0) {
    if (started < count && crew.size() < at_once) {
      crew.add([&task, started] { return task(started); }, started);
      ++started;
    } else {
      ended(crew.next(each_second));
    }
  }
}

}  // namespace

std::size_t usual_workers() {
  return std::max(1u, std::thread::hardware_concurrency());
}

namespace wire {

std::string from_worker(const Task& task) {
  Child child = start(task);
  wait_for(child);
  return answer_of(child.said);
}

void from_workers(std::size_t count, std::size_t at_once, const NumberedTask& task,
                  const Heard& done) {
  play(count, at_once, task, [&](const Child& child) { done(child.task, answer_of(child.said)); });
}

void outcomes_from_workers(
    std::size_t count, std::size_t at_once, const NumberedTask& task,
    const std::function<void(std::size_t, const WorkerOutcome<std::string>&)>& done,
    const std::function<void()>& each_second) {
  const auto ended = [&](const Child& child) {
    WorkerOutcome<std::string> outcome;
    try {
      outcome.answer = answer_of(child.said);
    } catch (const UserError& error) {
      outcome.error = error.what();
    } catch (const std::exception&) {
      outcome.error = child.said.substr(1);
      outcome.died = true;
    }
    done(child.task, outcome);
  };
  play(count, at_once, task, ended, each_second);
}

}  // namespace wire
}  // namespace stepsim
