#include "analysis/studies/worker.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <stdexcept>

#include "sim/error.hpp"

namespace stepsim {
namespace {

// The first byte of an answer says what follows.
constexpr char answer = 'a', user_error = 'u', bug = 'b';

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
  } catch (const std::exception& error) {
    write_all(pipe, bug + std::string(error.what()));
  }
  ::_exit(0);  // no destructors, no atexit: those belong to the parent
}

struct Child {
  pid_t process;
  int answers;
};

Child start(const std::function<std::string()>& task) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw std::runtime_error("no pipe for a worker");
  std::fflush(nullptr);  // what is buffered here must not be written by the child as well
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process for a worker");
  if (child == 0) {
    ::close(pipe[0]);
    work(pipe[1], task);
  }
  ::close(pipe[1]);
  return {child, pipe[0]};
}

// What the child said, with its mark in front.
std::string wait_for(const Child& child) {
  std::string said = read_all(child.answers);
  ::close(child.answers);
  int status = 0;
  while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  if (said.empty())
    said = bug + fmt::format("a worker ended without an answer (status {})", status);
  return said;
}

std::string answer_of(const std::string& said) {
  std::string rest = said.substr(1);
  if (said.front() == user_error) throw UserError(rest);
  if (said.front() == bug) throw std::runtime_error(rest);
  return rest;
}

}  // namespace

std::string in_worker(const std::function<std::string()>& task) {
  return answer_of(wait_for(start(task)));
}

std::vector<std::string> in_workers(std::span<const std::function<std::string()>> tasks,
                                    std::size_t at_once) {
  std::deque<Child> running;
  std::vector<std::string> said;
  const auto collect = [&] {
    said.push_back(wait_for(running.front()));
    running.pop_front();
  };
  for (const auto& task : tasks) {
    if (running.size() >= at_once) collect();
    running.push_back(start(task));
  }
  while (!running.empty()) collect();
  std::vector<std::string> answers;  // only now: no child may be left behind by an exception
  answers.reserve(said.size());
  for (const std::string& each : said) answers.push_back(answer_of(each));
  return answers;
}

}  // namespace stepsim
