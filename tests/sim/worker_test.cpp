// Workers end when whoever asked them does.
#include "sim/process/worker.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {

TEST_CASE("progress counts every answer", "[analysis]") {
  std::vector<std::function<std::string()>> tasks(5, [] { return std::string("x"); });
  std::vector<std::size_t> seen;
  in_workers(tasks, 2, [&](std::size_t done, std::size_t of) {
    seen.push_back(done);
    CHECK(of == 5);
  });
  CHECK(seen == std::vector<std::size_t>{1, 2, 3, 4, 5});
}

TEST_CASE("problems keep their places on the way out of a worker", "[analysis]") {
  const std::vector<Problem> problems{{"a.yaml", 3, "job.x", "is wrong", Fault::rule},
                                      {"b.yaml", 0, "", "cannot be read", Fault::form}};
  try {
    in_worker([&]() -> double { throw UserError(problems); });
    FAIL("nothing was thrown");
  } catch (const UserError& error) {
    REQUIRE(error.problems().size() == 2);
    CHECK(error.problems()[0].line == 3);
    CHECK(error.problems()[0].key == "job.x");
    CHECK(error.problems()[0].fault == Fault::rule);
    CHECK(std::string(error.what()) == "a.yaml:3: job.x: is wrong\nb.yaml: cannot be read");
  }
}

TEST_CASE("a worker does by itself what it would ask one for", "[analysis]") {
  const auto [outer, inner] =
      in_worker([] { return std::pair(::getpid(), in_worker([] { return ::getpid(); })); });
  CHECK(outer == inner);
  CHECK(outer != ::getpid());
  CHECK_THROWS_AS(in_worker([] { return in_worker([]() -> int { throw std::bad_alloc(); }); }),
                  std::bad_alloc);
}

TEST_CASE("the end of one worker is its own outcome", "[analysis]") {
  const Tasks<int> tasks{[] { return 7; },
                         [] { return ::raise(SIGKILL); },
                         []() -> int { throw UserError("the question is wrong"); },
                         []() -> int { throw std::bad_alloc(); },
                         []() -> int { throw std::runtime_error("a bug"); },
                         []() -> int { ::_exit(3); }};
  const auto outcomes = outcomes_in_workers(tasks, 2);
  REQUIRE(outcomes.size() == tasks.size());
  CHECK(outcomes[0].answer == 7);
  CHECK(outcomes[1].error == "a worker ended without an answer (signal 9: Killed)");
  CHECK(outcomes[2].error == "the question is wrong");
  CHECK(outcomes[3].error == "this machine has too little memory to compute it");
  CHECK(outcomes[4].error == "a bug");
  CHECK(outcomes[5].error == "a worker ended without an answer (exit code 3)");
  for (std::size_t i = 1; i < outcomes.size(); ++i) {
    CHECK_FALSE(outcomes[i].answer);
    CHECK(outcomes[i].died == (i != 2));
  }
  CHECK_THROWS_AS(in_worker(tasks[2]), UserError);
  CHECK_THROWS_AS(in_worker(tasks[3]), std::bad_alloc);
  CHECK_THROWS_WITH(in_worker(tasks[1]), "a worker ended without an answer (signal 9: Killed)");
  CHECK_THROWS_AS(in_worker(tasks[1]), MachineError);  // and no bug
  CHECK_THROWS_AS(in_worker([]() -> int { throw MachineError("a drive fails"); }), MachineError);
}

TEST_CASE("while no answer comes something else is done", "[analysis]") {
  int calls = 0;
  const auto slow = [](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    return 1;
  };
  outcomes_in_workers(
      1, 1, slow, [](std::size_t, const WorkerOutcome<int>&) {}, [&] { ++calls; });
  CHECK(calls == 1);
}

TEST_CASE("a worker does not outlive a killed parent", "[analysis]") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    in_worker([&] {
      const pid_t self = ::getpid();
      const ssize_t told = ::write(pipe[1], &self, sizeof self);
      std::this_thread::sleep_for(std::chrono::seconds(told > 0 ? 60 : 0));
      return std::string();
    });
    ::_exit(0);
  }
  pid_t worker = 0;
  REQUIRE(::read(pipe[0], &worker, sizeof worker) == sizeof worker);
  CHECK(::kill(worker, 0) == 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  ::close(pipe[1]);
  // The worker holds the pipe's other end until it ends.
  char byte = 0;
  CHECK(::read(pipe[0], &byte, 1) == 0);
  ::close(pipe[0]);
}

// The address sanitizer ends a process that finds no memory, where others throw.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STEPSIM_ADDRESSES_ARE_WATCHED
#endif
#endif
#ifndef STEPSIM_ADDRESSES_ARE_WATCHED

TEST_CASE("a worker takes no more memory than it may", "[analysis]") {
  const auto take = [](std::size_t bytes) {
    return in_worker([bytes] {
      limit_worker(100e6);
      limit_worker(1e12);  // only the first counts
      return std::string(bytes, 'x').size();
    });
  };
  CHECK(take(50'000'000) == 50'000'000);
  CHECK_THROWS_AS(take(200'000'000), std::bad_alloc);
  std::vector<bool> without;
  outcomes_in_workers(
      2, 1,
      [](std::size_t i) {
        limit_worker(100e6);
        return std::string(i == 0 ? 200'000'000 : 1'000, 'x').size();
      },
      [&](std::size_t, const WorkerOutcome<std::size_t>& said) {
        without.push_back(said.no_memory);
        CHECK(said.answer.has_value() != said.no_memory);
      });
  CHECK(without == std::vector<bool>{true, false});
}

#endif

}  // namespace stepsim
