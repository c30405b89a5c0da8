// The only user of Boost.Beast and Boost.Asio.
#include "cli/serve/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#undef si_value  // a macro of <csignal>, and a name of ours

#include "cli/serve/shut_in.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace fs = std::filesystem;
using Tcp = asio::ip::tcp;

constexpr std::size_t most_at_once = 32;
constexpr std::uint32_t most_header_bytes = 16u << 10;
constexpr std::uint64_t most_body_bytes = 1u << 20;
constexpr std::chrono::seconds most_talking{10};
constexpr unsigned most_computing_seconds = 600;

[[noreturn]] void fail_with_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Signals are read from a descriptor instead of breaking in.
class Signals {
 public:
  Signals() {
    std::signal(SIGCHLD, SIG_DFL);  // where they are ignored, children cannot be waited for
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
  // As they were before, in a child.
  void give_back() const {
    ::close(file_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  // Whether one of those that came asks for the end.
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

// For files that requests bring along; gone with the server.
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

  // What the folder is called, a config.json in it is called, too.
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

// ---- one request, in a child ----

// While it is set, the process ends when the other side goes away, or says more than it should.
void end_when_heard_from(int socket, bool set) {
  ::fcntl(socket, F_SETOWN, ::getpid());
  const int flags = ::fcntl(socket, F_GETFL);
  ::fcntl(socket, F_SETFL, set ? flags | O_ASYNC : flags & ~O_ASYNC);
}

Request request_of(const http::request<http::string_body>& message) {
  const auto text = [](const auto& word) { return std::string(word.data(), word.size()); };
  return {text(message.method_string()),
          text(message.target()),
          text(message[http::field::host]),
          text(message[http::field::origin]),
          text(message[http::field::content_type]),
          message.body()};
}

// Of what is no request; nothing where nobody waits for an answer.
std::optional<Response> answer_to(const beast::error_code& failed) {
  if (failed == http::error::body_limit) return refusal(413, "that is too much");
  if (failed == http::error::header_limit) return refusal(431, "these headers are too long");
  if (failed.category() == make_error_code(http::error::bad_method).category() &&
      failed != http::error::end_of_stream && failed != http::error::partial_message)
    return refusal(400, "that is no request");
  return std::nullopt;
}

http::response<http::string_body> message_of(Response&& response) {
  http::response<http::string_body> message(static_cast<http::status>(response.status), 11);
  message.set(http::field::content_type, response.type);
  message.set(http::field::cache_control, "no-store");
  message.set("X-Content-Type-Options", "nosniff");
  message.set("Referrer-Policy", "no-referrer");
  message.set("Content-Security-Policy",
              "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src "
              "data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
              "'none'");
  message.body() = std::move(response.body);
  message.keep_alive(false);
  message.prepare_payload();
  return message;
}

// Each of these waits for `most_talking` at most.
class Conversation {
 public:
  Conversation(const Tcp::endpoint& place, int socket)
      : stream_(Tcp::socket(context_, place.protocol(), socket)) {}

  int file() { return stream_.socket().native_handle(); }

  beast::error_code hear(http::request_parser<http::string_body>& parser) {
    return within([&](const auto& done) { http::async_read(stream_, buffer_, parser, done); });
  }
  beast::error_code say(const http::response<http::string_body>& message) {
    return within([&](const auto& done) { http::async_write(stream_, message, done); });
  }
  // Closing on what nobody read would take the answer away again.
  void finish() {
    beast::error_code failed;
    stream_.socket().shutdown(Tcp::socket::shutdown_send, failed);
    std::array<char, 4096> rest{};
    for (int reads = 0; reads < 1024 && !failed; ++reads)
      failed = within([&](const auto& done) { stream_.async_read_some(asio::buffer(rest), done); });
  }

 private:
  template <class Begin>
  beast::error_code within(const Begin& begin) {
    beast::error_code result;
    stream_.expires_after(most_talking);
    begin([&](const beast::error_code& failed, std::size_t) { result = failed; });
    context_.restart();
    context_.run();
    return result;
  }

  asio::io_context context_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
};

void talk(const Serving& serving, Conversation& conversation) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(most_header_bytes);
  parser.body_limit(most_body_bytes);
  std::optional<Response> response;
  if (const beast::error_code failed = conversation.hear(parser)) {
    response = answer_to(failed);
  } else {
    end_when_heard_from(conversation.file(), true);
    ::alarm(most_computing_seconds);
    response = respond(serving, request_of(parser.get()));
    ::alarm(0);
    end_when_heard_from(conversation.file(), false);
  }
  if (response && !conversation.say(message_of(*std::move(response)))) conversation.finish();
}

void serve_one(const Serving& serving, const fs::path& folder, const Tcp::endpoint& place,
               int socket) {
  fs::create_directories(folder);
  fs::current_path(folder);
  if (serving.shut_in) shut_in(serving.readable, folder.string());
  Conversation conversation(place, socket);
  talk(serving, conversation);
}

// ---- the server ----

class Server {
 public:
  Server(const Serving& serving, const Listening& where)
      : serving_(serving), acceptor_(listen_at(context_, where)) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    while (reap(0)) {
    }
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void run() {
    for (;;) {
      const bool full = children_.size() >= most_at_once;
      std::array<pollfd, 2> waiting{pollfd{signals_.file(), POLLIN, 0},
                                    pollfd{full ? -1 : acceptor_.native_handle(), POLLIN, 0}};
      if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
        fail_with_errno("nobody can be waited for");
      if (waiting[0].revents != 0 && signals_.end_is_asked()) return;
      while (reap(WNOHANG)) {
      }
      if (waiting[1].revents != 0) take_one();
    }
  }

 private:
  bool reap(int options) {
    const pid_t child = ::waitpid(-1, nullptr, options);
    if (child <= 0) return false;
    children_.erase(child);
    scratch_.drop(child);
    return true;
  }

  void take_one() {
    beast::error_code failed;
    Tcp::socket taken(context_);
    acceptor_.accept(taken, failed);
    if (failed) return;  // it went away again
    const pid_t server = ::getpid(), child = ::fork();
    if (child > 0) children_.insert(child);
    if (child == 0) work(server, taken.release());
  }

  [[noreturn]] void work(pid_t server, int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != server) ::_exit(0);
    signals_.give_back();
    try {
      serve_one(serving_, scratch_.of(::getpid()), acceptor_.local_endpoint(), socket);
    } catch (const std::exception&) {  // whoever called hears nothing
      ::_exit(1);
    }
    ::_exit(0);  // no destructors: those belong to the server
  }

  const Serving& serving_;
  Signals signals_;
  Scratch scratch_;
  asio::io_context context_;
  Tcp::acceptor acceptor_;
  std::set<pid_t> children_;
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
