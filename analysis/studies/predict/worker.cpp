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

namespace stepsim {
namespace {

// The first byte of an answer says what follows.
constexpr char answer = 'a', user_error = 'u', bug = 'b', no_memory = 'm';

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

[[noreturn]] void work(int pipe, const std::function<std::string()>& task) {
  try {
    write_all(pipe, answer + task());
  } catch (const UserError& error) {
    write_all(pipe, user_error + std::string(error.what()));
  } catch (const std::bad_alloc&) {
    write_all(pipe, no_memory + std::string("this machine has too little memory to compute it"));
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

Child start(const std::function<std::string()>& task) {
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
  if (child.said.empty() || status != 0)
    child.said = bug + fmt::format("a worker ended without an answer ({})", how_it_ended(status));
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
  void add(const std::function<std::string()>& task, std::size_t number) {
    running_.push_back(start(task));
    running_.back().task = number;
  }
  // The next one that has said all it had to say.
  Child next() {
    for (;;) {
      std::vector<pollfd> waiting;
      waiting.reserve(running_.size());
      for (const Child& child : running_) waiting.push_back({child.answers, POLLIN, 0});
      if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
        throw std::runtime_error("workers cannot be waited for");
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

WorkerOutcome outcome_of(const std::string& said) {
  const char mark = said.front();
  const Ending ending = mark == answer       ? Ending::answered
                        : mark == user_error ? Ending::refused
                                             : Ending::died;
  return {ending, said.substr(1)};
}

std::string answer_of(const std::string& said) {
  std::string rest = said.substr(1);
  if (said.front() == user_error) throw UserError(rest);
  if (said.front() == no_memory) throw std::bad_alloc();
  if (said.front() == bug) throw std::runtime_error(rest);
  return rest;
}

// `done` hears what each worker said, mark and all, as soon as it has ended.
void run_all(std::size_t count, std::size_t at_once,
             const std::function<std::string(std::size_t)>& task,
             const std::function<void(std::size_t, const std::string&)>& done) {
  Crew crew;
  std::size_t started = 0;
  while (started < count || crew.size() > 0) {
    if (started < count && crew.size() < at_once) {
      crew.add([&task, started] { return task(started); }, started);
      ++started;
      continue;
    }
    const Child child = crew.next();
    done(child.task, child.said);
  }
}

}  // namespace

std::string in_worker(const std::function<std::string()>& task) {
  Child child = start(task);
  wait_for(child);
  return answer_of(child.said);
}

void in_workers(std::size_t count, std::size_t at_once,
                const std::function<std::string(std::size_t)>& task,
                const std::function<void(std::size_t, std::string)>& done) {
  run_all(count, at_once, task,
          [&](std::size_t i, const std::string& said) { done(i, answer_of(said)); });
}

void outcomes_in_workers(std::size_t count, std::size_t at_once,
                         const std::function<std::string(std::size_t)>& task,
                         const std::function<void(std::size_t, const WorkerOutcome&)>& done) {
  run_all(count, at_once, task,
          [&](std::size_t i, const std::string& said) { done(i, outcome_of(said)); });
}

std::vector<std::string> in_workers(std::span<const std::function<std::string()>> tasks,
                                    std::size_t at_once, const Progress& progress) {
  std::vector<std::string> answers(tasks.size());
  std::size_t finished = 0;
  in_workers(
      tasks.size(), at_once, [&](std::size_t i) { return tasks[i](); },
      [&](std::size_t i, std::string text) {
        answers[i] = std::move(text);
        if (progress) progress(++finished, tasks.size());
      });
  return answers;
}

std::size_t usual_workers() {
  return std::max(1u, std::thread::hardware_concurrency());
}

std::vector<WorkerOutcome> outcomes_in_workers(std::span<const std::function<std::string()>> tasks,
                                               std::size_t at_once) {
  std::vector<WorkerOutcome> outcomes(tasks.size());
  outcomes_in_workers(
      tasks.size(), at_once, [&](std::size_t i) { return tasks[i](); },
      [&](std::size_t i, const WorkerOutcome& outcome) { outcomes[i] = outcome; });
  return outcomes;
}

}  // namespace stepsim
