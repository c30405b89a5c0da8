// These tests say what the server of `serve` does with callers and questions, over its sockets.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>

#include "cli/serve/child.hpp"
#include "cli/serve/server.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;

namespace {

constexpr std::string_view served_token = "0123456789abcdef";

class ServedPage {
 public:
  explicit ServedPage(const ServeLimits& limits) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const Serving serving{.fence = {.data = source_data(), .shut_in = false},
                            .hosts = {"127.0.0.1"},
                            .tokens = {{"", std::string(served_token)}}};
      serve(serving, {"127.0.0.1", 0, limits}, [&](std::uint16_t port) {
        if (::write(ends[1], &port, sizeof(port)) != sizeof(port)) ::_exit(1);
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    const bool heard = ::read(ends[0], &port_, sizeof(port_)) == sizeof(port_);
    ::close(ends[0]);
    if (!heard) throw std::runtime_error("nobody serves");
  }
  ServedPage(const ServedPage&) = delete;
  ServedPage& operator=(const ServedPage&) = delete;
  ~ServedPage() {
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }

  // Asks the question and returns the socket that the answer comes from.
  int ask(const std::string& settings) const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port_);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0)
      throw std::runtime_error("nobody listens");
    const std::string body =
        fmt::format(R"({{"a": {{"source": "qwen3-30b-sft-zero3", "set": [{}]}}}})", settings);
    const std::string text = fmt::format(
        "POST /step?token={} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\n\r\n{}",
        served_token, port_, body.size(), body);
    if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0)
      throw std::runtime_error("nobody hears");
    return socket;
  }
  static std::string answer(int socket) {
    std::string heard;
    std::array<char, 65536> bytes{};
    for (ssize_t size = 0; (size = ::recv(socket, bytes.data(), bytes.size(), 0)) > 0;)
      heard.append(bytes.data(), static_cast<std::size_t>(size));
    ::close(socket);
    return heard;
  }

 private:
  pid_t process_ = 0;
  std::uint16_t port_ = 0;
};

bool holds_words(const std::string& answer, std::string_view words) {
  return answer.find(words) != std::string::npos;
}

// Three slow GPUs tell ranks apart, and a step of so many micro-batches takes seconds.
constexpr const char* long_question =
    R"({"key": "job.gradient_accumulation", "value": "48"}, {"key": "cluster.slow_gpus", )"
    R"("value": "[{rank: 0, speed: 0.5}, {rank: 1, speed: 0.6}, {rank: 2, speed: 0.7}]"})";
constexpr const char* eight_times = R"({"key": "job.gradient_accumulation", "value": "8"})";
constexpr const char* small_model = R"({"key": "model", "value": "llama-3.2-1b"})";

}  // namespace

TEST_CASE("a question that takes long waits for its turn, and is told when that is too long",
          "[cli]") {
  const ServedPage page({.long_ones = 1, .waiting = std::chrono::milliseconds(300)});
  const int first = page.ask(long_question), second = page.ask(long_question);
  // Neither of them keeps a short one waiting.
  CHECK(holds_words(ServedPage::answer(page.ask(small_model)), "HTTP/1.1 200 OK\r\n"));
  const std::array answers{ServedPage::answer(first), ServedPage::answer(second)};
  const bool other = holds_words(answers[0], "HTTP/1.1 503 ");
  CHECK(holds_words(answers[other ? 1 : 0], "HTTP/1.1 200 OK\r\n"));
  CHECK(holds_words(answers[other ? 0 : 1],
                    "others were first, and this question was not begun within 1 s: ask again "
                    "later, or let `stepsim run` answer"));
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a question gets no more memory than it may have", "[cli]") {
  const ServedPage page({.memory = 300u << 20});
  CHECK(holds_words(ServedPage::answer(page.ask(small_model)), "HTTP/1.1 200 OK\r\n"));
  const std::string answer = ServedPage::answer(page.ask(eight_times));
  CHECK(holds_words(answer, "HTTP/1.1 500 "));
  CHECK(holds_words(answer,
                    "more memory is needed than this machine has, or than a question may "
                    "take: `stepsim run` takes what there is"));
}
#endif

TEST_CASE("the processor time of a process counts while it runs, with that of its workers",
          "[cli]") {
  const pid_t worker = ::fork();
  if (worker == 0)
    for (volatile int spin = 0; spin < 2;) spin = 1 - spin;
  while (processor_time(worker) < std::chrono::milliseconds(20)) {
  }
  const auto alone = processor_time(worker);
  CHECK(processor_time(::getpid()) > alone);
  give_way(worker, 7);
  CHECK(::getpriority(PRIO_PROCESS, static_cast<id_t>(worker)) ==
        std::min(::getpriority(PRIO_PROCESS, 0) + 7, 19));
  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);
  CHECK(processor_time(worker).count() == 0);
}
