// `mcp` answers a coding agent over standard input and output. A question is computed in a process
// of its own, one after the other, so that answers come in the order of the questions; all else is
// answered meanwhile.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <filesystem>
#include <system_error>

#include "cli/command.hpp"
#include "cli/front_options.hpp"
#include "cli/mcp/protocol.hpp"
#include "cli/progress.hpp"
#include "cli/screen.hpp"
#include "cli/serve/child.hpp"
#include "cli/serve/server.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;
using McpClock = std::chrono::steady_clock;

constexpr std::size_t longest_line = 1u << 20;
constexpr std::chrono::minutes longest_question{10};

int opened(int file) {
  if (file < 0) throw std::system_error(errno, std::generic_category(), "no file for a question");
  return file;
}

// The question that is computed now.
struct Computed {
  McpCall call{};
  pid_t process = 0;  // 0: there is none
  int answer = -1, events = -1;
  std::string told{};  // and not taken apart yet
  double progress = 0;
  McpClock::time_point until{};
  bool cancelled = false, late = false;
};

class McpServer {
 public:
  explicit McpServer(const Fence& fence) : fence_(fence), docs_(installed_data() + "/docs") {}
  McpServer(const McpServer&) = delete;
  McpServer& operator=(const McpServer&) = delete;
  ~McpServer() {
    if (now_.process > 0) ::kill(now_.process, SIGKILL);
  }

  // Returns when all is answered after the end of the input, or when nobody reads any more.
  void run() {
    while (heard_by_somebody_) {
      if (now_.process == 0 && !waiting_.empty()) begin();
      if (at_end_ && now_.process == 0) return;
      std::array<pollfd, 3> polled{pollfd{STDOUT_FILENO, 0, 0},
                                   pollfd{at_end_ ? -1 : STDIN_FILENO, POLLIN, 0},
                                   pollfd{now_.process == 0 ? -1 : now_.events, POLLIN, 0}};
      if (::poll(polled.data(), polled.size(), time_left()) < 0 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "nobody can be waited for");
      if ((polled[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return;
      if (polled[1].revents != 0) listen();
      if (polled[2].revents != 0) follow();
      if (now_.process != 0 && McpClock::now() >= now_.until) {
        now_.late = true;
        ::kill(now_.process, SIGKILL);
      }
    }
  }

 private:
  int time_left() const {
    if (now_.process == 0) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(now_.until - McpClock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  void send(std::string_view line) {
    try {
      write_all(STDOUT_FILENO, line);
    } catch (const std::system_error&) {
      heard_by_somebody_ = false;
    }
  }

  void listen() {
    std::array<char, 65536> bytes{};
    const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    at_end_ = size <= 0;
    line_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (at_end_ && !line_.empty()) line_ += '\n';
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(std::string_view(line_).substr(begin, end - begin));
    line_.erase(0, begin);
    if (line_.size() <= longest_line) return;
    too_long_ = true;  // what is still to come of it is thrown away
    line_.clear();
  }

  void take(std::string_view line) {
    const bool too_long = std::exchange(too_long_, false) || line.size() > longest_line;
    if (too_long)
      return send(unreadable_line(fmt::format("a line has more than {} bytes", longest_line)));
    McpHeard heard = hear(fence_, docs_, line);
    if (!heard.reply.empty()) send(heard.reply);
    if (heard.call) waiting_.push_back(std::move(*heard.call));
    if (!heard.cancelled.empty()) cancel(heard.cancelled);
  }

  void cancel(const std::string& id) {
    std::erase_if(waiting_, [&](const McpCall& call) { return call.id == id; });
    if (now_.process == 0 || now_.call.id != id) return;
    now_.cancelled = true;
    ::kill(now_.process, SIGKILL);
  }

  void begin() {
    now_ = {.call = std::move(waiting_.front()), .until = McpClock::now() + longest_question};
    waiting_.pop_front();
    std::array<int, 2> ends{-1, -1};
    opened(::pipe2(ends.data(), O_CLOEXEC));
    now_.events = ends[0];
    now_.answer = opened(::memfd_create("answer", MFD_CLOEXEC));
    const pid_t server = ::getpid();
    now_.process = opened(::fork());
    if (now_.process == 0) work(server, ends[1]);
    ::close(ends[1]);
  }

  // Computes in the question's own process.
  [[noreturn]] void work(pid_t server, int events) const {
    begin_question(server);
    try {
      if (!now_.call.progress_token.empty()) tell_progress_to(events);
      limit_memory(ServeLimits{}.memory);
      if (fence_.shut_in) shut_in(fence_.readable, "");
      write_all(now_.answer,
                answer_line(now_.call, answer_of(*now_.call.tool, fence_.data, now_.call.words)));
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);  // no destructors: those belong to the server
  }

  // Hears how far the question is; the pipe ends with its process and all workers of that.
  void follow() {
    std::array<char, 4096> bytes{};
    const ssize_t size = ::read(now_.events, bytes.data(), bytes.size());
    if (size < 0) return;
    if (size == 0) return finish();
    now_.told.append(bytes.data(), static_cast<std::size_t>(size));
    for (std::size_t end = 0; (end = now_.told.find('\n')) != std::string::npos;
         now_.told.erase(0, end + 1))
      send(progress_line(now_.call, std::string_view(now_.told).substr(0, end), now_.progress));
  }

  void finish() {
    int status = 0;
    ::waitpid(now_.process, &status, 0);
    if (now_.late)
      send(failed_line(now_.call, "this takes longer than ten minutes: `stepsim` waits longer"));
    else if (status != 0 && !now_.cancelled)
      send(failed_line(now_.call, end_text(status)));
    else if (!now_.cancelled)
      send(written(now_.answer));
    ::close(now_.answer);
    ::close(now_.events);
    now_ = {};
  }

  static std::string written(int file) {
    std::string text(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
    if (::pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      throw std::system_error(errno, std::generic_category(), "an answer cannot be read");
    return text;
  }

  const Fence& fence_;
  std::string docs_;
  std::string line_{};  // and not whole yet
  bool too_long_ = false, at_end_ = false, heard_by_somebody_ = true;
  std::deque<McpCall> waiting_{};
  Computed now_{};
};

}  // namespace

int mcp_command(const CommandLine& line) {
  const auto options = parse("mcp", line.words);
  if (!options) return exit_code::yes;
  std::vector<std::string> folders = all_of(*options, "folder");
  if (folders.empty()) folders.emplace_back(".");
  const Fence fence = fence_around(line.data, folders);
  fs::current_path(fence.folders.front());
  if (!fence.shut_in)
    say(stderr,
        "stepsim: note: this kernel has no Landlock: names are held to the folders, links and "
        "files that a file names are not\n");
  if (::isatty(STDIN_FILENO) != 0)
    say(stderr, "stepsim: note: a client speaks JSON-RPC here, a line each; Ctrl-D ends it\n");
  McpServer(fence).run();
  return exit_code::yes;
}

}  // namespace stepsim
