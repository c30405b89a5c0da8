// This is the only user of Boost.Beast and Boost.Asio.
#include "cli/serve/server.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <list>
#include <system_error>
#include <vector>

#include "cli/openapi.hpp"
#include "cli/serve/child.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace fs = std::filesystem;
using Tcp = asio::ip::tcp;
using ServeClock = std::chrono::steady_clock;

// Callers that have not shown the token have places of their own, and the oldest of them gives way.
constexpr std::size_t most_strangers = 64, most_known = 64, most_short_ones = 16;
constexpr std::chrono::seconds most_of_a_stranger{3};  // in all, however it talks
constexpr std::chrono::seconds most_asking{10}, most_computing{600}, most_saying{30},
    most_parting{3};
constexpr std::uint32_t most_header_bytes = 16u << 10;
constexpr std::uint64_t most_body_bytes = 1u << 20;

// A question gives way to others by one more for each of these that it has computed. When it gives
// way by `long_one` it is one that takes long.
constexpr std::chrono::milliseconds per_way{100};
constexpr int long_one = 5;
constexpr std::chrono::milliseconds between_looks{20};

[[noreturn]] void fail_with_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Signals are read from a descriptor instead of breaking in.
class Signals {
 public:
  Signals() {
    std::signal(SIGCHLD, SIG_DFL);  // where they are ignored, children cannot be waited for
    std::signal(SIGPIPE, SIG_IGN);  // a caller may go away at any time
    sigset_t all;
    sigemptyset(&all);
    for (const int number : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&all, number);
    ::sigprocmask(SIG_BLOCK, &all, &before_);
    file_ = ::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (file_ < 0) fail_with_errno("no descriptor for signals");
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    end_is_asked();  // a second one is for the same end
    give_back();
  }

  int file() const { return file_; }
  // Gives signals back, in a child, as they were before.
  void give_back() const {
    ::close(file_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  // Returns whether one of the signals that came asks for the end.
  bool end_is_asked() const {
    bool asked = false;
    signalfd_siginfo each{};
    while (::read(file_, &each, sizeof(each)) == sizeof(each)) asked |= each.ssi_signo != SIGCHLD;
    return asked;
  }

 private:
  int file_ = -1;
  sigset_t before_{};
};

// This folder holds files that requests bring along; it goes with the server.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "stepsim-serve-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail_with_errno("no folder for files of requests");
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { remove(path_); }

  // A config.json in the folder gets the folder's name, so every request's is called "dropped".
  fs::path of(pid_t process) const { return path_ / std::to_string(process) / "dropped"; }
  void drop(pid_t process) const { remove(path_ / std::to_string(process)); }

 private:
  static void remove(const fs::path& path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }

  fs::path path_;
};

asio::ip::address address_of(const std::string& text) {
  boost::system::error_code failed;
  auto address = asio::ip::make_address(text, failed);
  if (failed || address.is_unspecified())
    throw UserError(
        fmt::format("--address: expected one address of this machine, such as "
                    "127.0.0.1, found \"{}\"",
                    text));
  return address;
}

Tcp::acceptor listen_at(asio::io_context& context, const Listening& where) {
  const Tcp::endpoint place(address_of(where.address), where.port);
  Tcp::acceptor acceptor(context);
  boost::system::error_code failed;
  acceptor.open(place.protocol(), failed);
  if (!failed) acceptor.set_option(Tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(place, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed) acceptor.non_blocking(true, failed);
  if (failed)
    throw UserError(fmt::format("--port: nobody can listen at {} port {}: {}; 0 takes a free port",
                                where.address, where.port, failed.message()));
  return acceptor;
}

// ---- what is heard and said ----

using QuestionParser = http::request_parser<http::string_body>;

Request request_of(const http::request<http::string_body>& message) {
  const auto text = [](const auto& word) { return std::string(word.data(), word.size()); };
  return {text(message.method_string()),
          text(message.target()),
          text(message[http::field::host]),
          text(message[http::field::origin]),
          text(message[http::field::content_type]),
          message.body(),
          text(message[http::field::authorization])};
}

// Returns "/step?token=1" of "POST /step?token=1 HTTP/1.1".
std::string_view target_in(std::string_view line) {
  const std::size_t begin = std::min(line.find(' '), line.size() - 1) + 1;
  return line.substr(begin, line.find(' ', begin) - begin);
}

Response answer_to(const beast::error_code& failed) {
  if (failed == http::error::body_limit) return refusal(413, "that is too much");
  if (failed == http::error::header_limit) return refusal(431, "these headers are too long");
  return refusal(400, "that is no request");
}

std::string wire_text(const Response& response) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: "
      "no-referrer\r\n"
      "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src "
      "'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'\r\n\r\n{}",
      response.status, std::string_view(reason.data(), reason.size()), response.type,
      response.body.size(), response.body);
}

Response answer_to_end(int status) {
  return refusal(was_killed(status) ? 503 : 500, end_text(status));
}

// Returns the status that a written answer begins with.
int status_of(int answer) {
  constexpr std::size_t begin = std::string_view("HTTP/1.1 ").size();
  std::array<char, 3> digits{};
  int status = 0;
  if (::pread(answer, digits.data(), digits.size(), begin) > 0)
    std::from_chars(digits.data(), digits.data() + digits.size(), status);
  return status;
}

// Returns what a field of the head says; its name in small letters, with a colon.
std::string_view field_in(std::string_view head, std::string_view name) {
  for (std::string_view line : lines_in(head)) {
    if (in_small_letters(line.substr(0, name.size())) != name) continue;
    line.remove_prefix(name.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    return line.substr(0, line.find('\r'));
  }
  return "";
}

// Says what was asked, without what stands behind a question mark: that may be a token.
std::string asked_in(std::string_view line) {
  constexpr std::size_t most = 200;
  return on_one_line(
      line.substr(0, std::min(line.find_first_of("?\r"), line.rfind(" HTTP/"))).substr(0, most));
}

// ---- who calls ----

class Descriptor {
 public:
  explicit Descriptor(int file = -1) : file_(file) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  operator int() const { return file_; }
  void reset(int file = -1) {
    if (file_ >= 0) ::close(file_);
    file_ = file;
  }

 private:
  int file_;
};

// A stranger has not shown the token yet; who parts has been answered, or refused, and what it
// still says is thrown away: closing on what nobody read would take the answer away again.
enum class Stage : std::uint8_t { stranger, asking, waiting, computing, saying, parting, gone };

struct Caller {
  explicit Caller(int file) : socket(file) {
    parser.header_limit(most_header_bytes);
    parser.body_limit(most_body_bytes);
    parser.eager(true);
  }

  Descriptor socket;
  Stage stage = Stage::stranger;
  ServeClock::time_point until = ServeClock::now() + most_of_a_stranger;
  bool known = false;          // it has shown the token
  std::string who{}, asked{};  // whose token, and for what
  ServeClock::time_point begin = ServeClock::now();
  bool takes_long = false;
  std::string heard{};  // and not taken apart yet
  QuestionParser parser{};
  pid_t process = 0;    // that computes the answer
  Descriptor answer{};  // what that has written

  void enter(Stage next, ServeClock::duration most) {
    stage = next;
    until = ServeClock::now() + most;
  }
  short awaited() const {
    const bool quiet = stage == Stage::waiting || stage == Stage::computing;
    return stage == Stage::saying ? POLLOUT : quiet ? POLLRDHUP : POLLIN;
  }
  // Returns false when there will be no more.
  bool hear() {
    std::array<char, 16384> bytes{};
    const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (stage != Stage::parting) heard.append(bytes.data(), static_cast<std::size_t>(size));
    return size > 0;
  }
  // Sends a response that is short enough for the room that a socket has.
  void say(const Response& response) {
    const std::string text = wire_text(response);
    ::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    part();
  }
  void say_on() {
    const ssize_t size = ::sendfile(socket, answer, nullptr, 1u << 20);
    if (size == 0) part();
    if (size < 0 && errno != EAGAIN && errno != EINTR) stage = Stage::gone;
  }
  void part() {
    ::shutdown(socket, SHUT_WR);
    answer.reset();
    heard = {};
    stage = Stage::parting;
    if (known) enter(Stage::parting, most_parting);
  }
};

// ---- the server ----

class Server {
 public:
  Server(const Serving& serving, const Listening& where)
      : serving_(serving),
        limits_(where.limits),
        log_(where.log),
        acceptor_(listen_at(context_, where)) {
    serving_.port = port();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    for (const Caller& caller : callers_) end_process(caller);
    while (reap(0)) {
    }
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void run() {
    for (;;) {
      const std::vector<pollfd> polled = wait();
      if (polled[0].revents != 0 && signals_.end_is_asked()) return;
      while (reap(WNOHANG)) {
      }
      auto each = polled.begin() + 2;
      for (Caller& caller : callers_)
        if ((each++)->revents != 0) attend(caller);
      if (polled[1].revents != 0) take_one();
      if (ServeClock::now() >= next_look_) look_after();
      for (Caller& caller : callers_)
        if (caller.stage == Stage::waiting && has_place(caller)) compute(caller);
      callers_.remove_if([](const Caller& caller) { return caller.stage == Stage::gone; });
    }
  }

 private:
  template <class Condition>
  std::size_t count(const Condition& holds) const {
    return static_cast<std::size_t>(std::ranges::count_if(callers_, holds));
  }

  std::vector<pollfd> wait() {
    std::vector<pollfd> polled{{signals_.file(), POLLIN, 0},
                               {acceptor_.native_handle(), POLLIN, 0}};
    for (const Caller& caller : callers_) polled.push_back({caller.socket, caller.awaited(), 0});
    const int most = callers_.empty() ? -1 : static_cast<int>(between_looks.count());
    if (::poll(polled.data(), polled.size(), most) < 0 && errno != EINTR)
      fail_with_errno("nobody can be waited for");
    return polled;
  }

  void take_one() {
    const int socket =
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;  // it went away again
    const auto strange = [](const Caller& caller) { return !caller.known; };
    if (count(strange) >= most_strangers) callers_.erase(std::ranges::find_if(callers_, strange));
    attend(callers_.emplace_back(socket));
  }

  // Attends to a caller from which something came, or to which something can be sent.
  void attend(Caller& caller) {
    const bool talks = caller.stage != Stage::waiting && caller.stage != Stage::computing;
    if (caller.stage == Stage::saying) return caller.say_on();
    if (!talks || !caller.hear()) return leave(caller);
    if (caller.stage == Stage::stranger) introduce(caller);
    if (caller.stage == Stage::asking) take_in(caller);
  }

  // Ends the process of a caller that has gone: nobody computes for it.
  static void leave(Caller& caller) {
    end_process(caller);
    caller.stage = Stage::gone;
  }
  static void end_process(const Caller& caller) {
    if (caller.process > 0) ::kill(caller.process, SIGKILL);
  }

  void introduce(Caller& caller) {
    const std::size_t end = caller.heard.find('\n');
    const bool long_enough = caller.heard.size() >= most_header_bytes;
    if (end == std::string::npos && !long_enough) return;
    const std::string_view head = caller.heard;
    const std::string_view target = target_in(head.substr(0, end));
    if (head.starts_with("GET ") && path_in(serving_, target) == health_path)
      return caller.say({200, "application/json", "{\"status\": \"ok\"}\n"});
    const NamedToken* token = token_in(serving_, target, field_in(head, "authorization:"));
    if (token == nullptr && !long_enough && head.find("\n\r\n") == std::string_view::npos) return;
    if (token == nullptr) return caller.say(refusal(403, no_token));
    caller.who = on_one_line(token->name);
    caller.asked = asked_in(head.substr(0, end));
    if (count(&Caller::known) >= most_known)
      return say(caller, refusal(503, "too many questions are being answered: ask again later"));
    caller.known = true;
    caller.enter(Stage::asking, most_asking);
  }

  // Says it, and keeps a line of that.
  void say(Caller& caller, const Response& response) const {
    log(caller, response.status);
    caller.say(response);
  }
  void log(const Caller& caller, int status) const {
    if (log_ < 0) return;
    const auto taken =
        std::chrono::duration_cast<std::chrono::milliseconds>(ServeClock::now() - caller.begin);
    const std::string line =
        fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {} {} {} {} ms\n", fmt::gmtime(std::time(nullptr)),
                    caller.who.empty() ? "-" : caller.who, caller.asked, status, taken.count());
    if (::write(log_, line.data(), line.size()) < 0) return;  // its drive is full: answers go on
  }

  void take_in(Caller& caller) {
    if (caller.heard.empty()) return;
    beast::error_code failed;
    caller.heard.erase(0, caller.parser.put(asio::buffer(caller.heard), failed));
    if (failed && failed != http::error::need_more) return say(caller, answer_to(failed));
    if (caller.parser.is_done()) caller.enter(Stage::waiting, limits_.waiting);
  }

  // Returns whether the question can be computed now. Those that take long leave places to those
  // that do not.
  bool has_place(const Caller& asking) const {
    return count([&](const Caller& caller) {
             return caller.stage == Stage::computing && caller.takes_long == asking.takes_long;
           }) < (asking.takes_long ? limits_.long_ones : most_short_ones);
  }

  void compute(Caller& caller) {
    caller.answer.reset(::memfd_create("answer", MFD_CLOEXEC));
    const pid_t server = ::getpid(), child = caller.answer < 0 ? -1 : ::fork();
    if (child < 0) return say(caller, refusal(503, "this machine has no room for a process"));
    if (child == 0) work(server, caller);
    caller.process = child;
    caller.enter(Stage::computing, most_computing);
  }

  bool reap(int options) {
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, options);
    if (child <= 0) return false;
    scratch_.drop(child);
    const auto caller = std::ranges::find(callers_, child, &Caller::process);
    if (caller == callers_.end()) return true;
    caller->process = 0;
    if (caller->stage != Stage::computing) return true;
    if (status != 0) {
      say(*caller, answer_to_end(status));
    } else {
      ::lseek(caller->answer, 0, SEEK_SET);
      log(*caller, status_of(caller->answer));
      caller->enter(Stage::saying, most_saying);
    }
    return true;
  }

  void look_after() {
    for (Caller& caller : callers_) {
      if (caller.stage == Stage::computing) weigh(caller);
      if (ServeClock::now() >= caller.until) give_up(caller);
    }
    next_look_ = ServeClock::now() + between_looks;
  }

  // Finds by the time that a question has computed whether it takes long. If all places for such
  // questions are taken, it begins anew when one is free.
  void weigh(Caller& caller) {
    const auto ways = processor_time(caller.process) / per_way;
    give_way(caller.process, caller.takes_long
                                 ? long_one
                                 : static_cast<int>(std::min<std::int64_t>(ways, long_one)));
    if (caller.takes_long || ways < long_one) return;
    caller.takes_long = true;
    if (count([](const Caller& other) {
          return other.stage == Stage::computing && other.takes_long;
        }) <= limits_.long_ones)
      return;
    end_process(caller);
    caller.process = 0;
    caller.enter(Stage::waiting, limits_.waiting);
  }

  void give_up(Caller& caller) {
    if (caller.stage == Stage::asking)
      return say(caller, refusal(408, "the rest of the request did not come"));
    if (caller.stage == Stage::waiting)
      return say(
          caller,
          refusal(503,
                  fmt::format("others were first, and this question was not begun within {} s: ask "
                              "again later, or let `stepsim run` answer",
                              std::chrono::ceil<std::chrono::seconds>(limits_.waiting).count())));
    if (caller.stage != Stage::computing) return leave(caller);
    end_process(caller);
    say(caller, refusal(503, "this takes longer than ten minutes: `stepsim run` waits longer"));
  }

  // Computes in the question's own process, which has no use for anybody's socket.
  [[noreturn]] void work(pid_t server, const Caller& caller) {
    begin_question(server);
    signals_.give_back();
    ::close(acceptor_.native_handle());
    for (const Caller& each : callers_) {
      ::close(each.socket);
      if (&each != &caller) ::close(each.answer);
    }
    try {
      if (caller.takes_long) give_way(::getpid(), long_one);
      limit_memory(limits_.memory);
      const fs::path folder = scratch_.of(::getpid());
      fs::create_directories(folder);
      fs::current_path(folder);
      if (serving_.fence.shut_in) shut_in(serving_.fence.readable, folder.string());
      write_all(caller.answer, wire_text(respond(serving_, request_of(caller.parser.get()))));
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);  // no destructors: those belong to the server
  }

  Serving serving_;
  ServeLimits limits_;
  int log_;
  Signals signals_;
  Scratch scratch_;
  asio::io_context context_;
  Tcp::acceptor acceptor_;
  std::list<Caller> callers_;  // in the order in which they came
  ServeClock::time_point next_look_{};
};

}  // namespace

void serve(const Serving& serving, const Listening& where,
           const std::function<void(std::uint16_t port)>& ready) {
  Server server(serving, where);
  ready(server.port());
  server.run();
}

bool is_of_this_machine_alone(const std::string& address) {
  return address_of(address).is_loopback();
}

}  // namespace stepsim
