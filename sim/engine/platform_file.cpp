#include "sim/engine/platform_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <system_error>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/number_list.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/base/xml_elements.hpp"
#include "sim/engine/simgrid/platform_reader.hpp"
#include "sim/process/simgrid_module.hpp"

namespace stepsim {
namespace {

// This lists the elements of a platform file, each with its attributes, as SimGrid's DTD 4.1 has
// them.
constexpr std::array<std::string_view, 31> platform_elements{
    "platform version",
    "config id",
    "zone id routing",
    "AS id routing",
    "host id speed core speed_file availability_file state_file coordinates pstate",
    "disk id read_bw write_bw",
    "host_link id up down",
    "cluster id prefix suffix radical speed core bw lat sharing_policy topology topo_parameters "
    "bb_bw "
    "bb_lat bb_sharing_policy router_id limiter_link loopback_bw loopback_lat",
    "cabinet id prefix suffix radical speed bw lat",
    "peer id speed bw_in bw_out lat coordinates speed_file availability_file state_file",
    "router id coordinates",
    "backbone id bandwidth latency",
    "link id bandwidth bandwidth_file latency latency_file state_file sharing_policy",
    "link_ctn id direction",
    "route src dst symmetrical",
    "zoneRoute src dst gw_src gw_dst symmetrical",
    "ASroute src dst gw_src gw_dst symmetrical",
    "bypassRoute src dst",
    "bypassZoneRoute src dst gw_src gw_dst",
    "bypassASroute src dst gw_src gw_dst",
    "prop id value",
    "model_prop id value",
    "trace id file periodicity",
    "trace_connect kind trace element",
    "storage_type id model size content",
    "storage id typeId content attach",
    "mount storageId name",
    "actor host function start_time kill_time on_failure",
    "process host function start_time kill_time on_failure",
    "argument value",
    "random id min max mean std_deviation seed radical generator"};

std::vector<std::string> words_in(std::string_view line) {
  const auto words = split(line, ' ');
  return {words.begin(), words.end()};
}

// Says why an attribute is refused that has no meaning in a machine that does not change, or makes
// SimGrid open other files; "" where it is taken.
std::string why_refused(const XmlElement& element, std::string_view attribute) {
  if (element.name.starts_with("trace") || attribute.ends_with("_file"))
    return "profiles over time are not modelled; delete it";
  const std::string_view setting = element.attribute("id");
  if (element.name == "prop" && element.inside == "config" && attribute == "id" &&
      !setting.starts_with("network/"))
    return fmt::format("setting \"{}\" is not taken; expected those of network/ alone", setting);
  return "";
}

std::size_t hosts_of(const XmlElement& element) {
  if (element.name == "host" || element.name == "peer") return 1;
  if (element.name != "cluster" && element.name != "cabinet") return 0;
  return parse_numbers("radical", "numbers", element.attribute("radical")).size();
}

void check_elements(const std::vector<XmlElement>& elements, const std::string& file) {
  std::vector<std::string> names;
  names.reserve(platform_elements.size());
  for (const std::string_view each : platform_elements) names.push_back(words_in(each).front());
  std::vector<Problem> problems;
  std::size_t hosts = 0;
  for (const XmlElement& element : elements) {
    const auto reject = [&](std::string message) {
      problems.push_back({file, element.line, element.name, std::move(message)});
    };
    const auto place = std::ranges::find(names, element.name);
    if (place == names.end()) {
      reject("no element of a platform" + did_you_mean(element.name, names));
      continue;
    }
    std::vector<std::string> known =
        words_in(platform_elements[static_cast<std::size_t>(place - names.begin())]);
    known.erase(known.begin());
    for (const auto& [key, value] : element.attributes)
      if (std::ranges::find(known, key) == known.end())
        reject(fmt::format("no attribute \"{}\"{}; expected {}", key, did_you_mean(key, known),
                           one_of(known)));
      else if (std::string why = why_refused(element, key); !why.empty())
        reject(fmt::format("{}: {}", key, why));
    const std::size_t before = hosts;
    try {
      hosts += hosts_of(element);
    } catch (const UserError& error) {
      reject(error.what());
    }
    if (hosts > most_platform_hosts && before <= most_platform_hosts)
      reject(fmt::format("expected at most {} hosts, found more", most_platform_hosts));
  }
  if (problems.empty() && elements.front().name != "platform")
    problems.push_back({file, elements.front().line, elements.front().name, "expected platform"});
  if (!problems.empty()) throw UserError(problems);
}

int line_of_host(const std::vector<XmlElement>& elements, std::string_view name) {
  for (const XmlElement& element : elements) {
    if (element.name == "host" || element.name == "peer") {
      if (element.attribute("id") == name) return element.line;
    } else if (element.name == "cluster" || element.name == "cabinet") {
      const auto prefix = element.attribute("prefix"), suffix = element.attribute("suffix");
      if (name.size() > prefix.size() + suffix.size() && name.starts_with(prefix) &&
          name.ends_with(suffix) && is_digit(name[prefix.size()]))
        return element.line;
    }
  }
  return 0;
}

[[noreturn]] void read_in_child(const std::string& path, int to) {
  const auto say = [&](const char* text) {
    const std::string line = fmt::format("wrong {}\n", text);
    _exit(::write(to, line.data(), line.size()) > 0 ? 1 : 2);
  };
  const rlimit long_enough{60, 60};  // seconds; thousands of switches take one
  setrlimit(RLIMIT_CPU, &long_enough);
  try {
    const auto read = reinterpret_cast<decltype(&stepsim_read_platform)>(
        simgrid_function("stepsim_read_platform"));
    read(path.c_str(), to);
  } catch (const MachineError& error) {
    say(error.what());
  }
  _exit(2);
}

[[noreturn]] void system_failed(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Returns the text with a zone around the clusters that have none, and all else on the line where
// it was: SimGrid 4.0 and 4.1 look for the parent of a torus, a fat tree or a dragonfly, and end
// where there is none.
std::string with_zone(std::string text, const std::vector<XmlElement>& elements) {
  const auto first = std::ranges::find_if(elements, [](const XmlElement& element) {
    return element.name == "cluster" && element.inside == "platform";
  });
  if (first == elements.end()) return text;
  text.insert(text.rfind("</platform"), "</zone>");
  text.insert(first->at, "<zone id=\"around\" routing=\"Full\">");
  return text;
}

// This is a file in memory, which is gone with the value. A child sees it by the same path.
class FileInMemory {
 public:
  explicit FileInMemory(std::string_view text) : file_(memfd_create("platform", 0)) {
    if (file_ < 0) system_failed("memfd_create");
    while (!text.empty()) {
      const ssize_t size = ::write(file_, text.data(), text.size());
      if (size < 0) system_failed("write");
      text.remove_prefix(static_cast<std::size_t>(size));
    }
  }
  FileInMemory(const FileInMemory&) = delete;
  FileInMemory& operator=(const FileInMemory&) = delete;
  ~FileInMemory() { close(file_); }

  std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

 private:
  int file_;
};

// Returns what a child says of a file, which it calls by the name that a person knows.
std::string said_by_child(const std::string& path, const std::string& name) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) system_failed("pipe");
  const pid_t child = fork();
  if (child < 0) system_failed("fork");
  if (child == 0) {
    close(ends[0]);
    read_in_child(path, ends[1]);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 1 << 16> part{};
  for (ssize_t size = 0; (size = read(ends[0], part.data(), part.size())) != 0;) {
    if (size < 0 && errno != EINTR) break;
    if (size > 0) said.append(part.data(), static_cast<std::size_t>(size));
  }
  close(ends[0]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  for (std::size_t at = 0; (at = said.find(path, at)) != std::string::npos; at += name.size())
    said.replace(at, path.size(), name);
  return said;
}

class Numbers {
 public:
  explicit Numbers(std::string_view text) : rest_(text) {}
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  double next() {
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (rest_.starts_with(' ')) rest_.remove_prefix(1);
    return value;
  }
  std::uint32_t whole() { return static_cast<std::uint32_t>(next()); }

 private:
  std::string_view rest_;
};

// Takes the place out of "Parse error at FILE:LINE: why" where SimGrid names one; other messages
// are the reason alone.
[[noreturn]] void refuse(const std::string& file, std::string_view message) {
  const std::string begin = fmt::format("Parse error at {}:", file);
  int line = 0;
  if (message.starts_with(begin)) {
    Numbers place(message.substr(begin.size()));
    line = static_cast<int>(place.whole());
    message = place.rest();
    message.remove_prefix(std::min(message.find_first_not_of(": "), message.size()));
  }
  throw UserError({{file, line, "", fmt::format("SimGrid: {}", message)}});
}

// Names two hosts that nothing joins. Some zones end the process where any of their hosts is not
// joined, whatever way was asked for.
[[noreturn]] void refuse_way(const PlatformFile& read, std::size_t from, std::size_t to,
                             std::string_view what = "no way") {
  const PlatformFile::Host &a = read.hosts[from], &b = read.hosts[to];
  throw UserError({{read.file, a.line, "host",
                    fmt::format("{} from \"{}\" to \"{}\" of line {}: expected routes that join "
                                "all hosts",
                                what, a.name, b.name, b.line)}});
}

// Compares two names so that numbers in them count as numbers.
bool goes_before(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view text) {
    std::size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    return digits;
  };
  while (!a.empty() && !b.empty()) {
    const std::size_t in_a = number(a), in_b = number(b);
    if (in_a > 0 && in_b > 0 && in_a != in_b && a.front() != '0' && b.front() != '0')
      return in_a < in_b;
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

void sort_hosts(PlatformFile& read) {
  const std::size_t count = read.hosts.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return goes_before(read.hosts[a].name, read.hosts[b].name);
  });
  PlatformFile sorted{.file = read.file, .lines = std::move(read.lines)};
  for (const std::size_t from : order) {
    sorted.hosts.push_back(std::move(read.hosts[from]));
    for (const std::size_t to : order)
      sorted.ways.push_back(std::move(read.ways[from * count + to]));
  }
  read = std::move(sorted);
}

// SaidPlatform reads what the child wrote, in the format of platform_reader.hpp.
class SaidPlatform {
 public:
  SaidPlatform(const std::string& file, const std::vector<XmlElement>& elements)
      : elements_(elements) {
    read_.file = file;
  }

  PlatformFile read(const std::string& said) && {
    const bool whole = said.find("\nstopped ") == std::string::npos;  // else a way may be cut off
    for (const std::string_view text : lines_in(said)) {
      const std::string_view word = text.substr(0, text.find(' '));
      const std::string_view rest = text.substr(std::min(word.size() + 1, text.size()));
      if (word == "way" ? whole && take_way(Numbers(rest)) : take(word, rest)) continue;
      if (const std::size_t at = text.find(critical); at != std::string_view::npos)
        log_ = text.substr(at + critical.size());
    }
    if (!ended_)
      refuse(read_.file,
             log_.empty() ? "it gives up and does not say why; is the platform too large?" : log_);
    if (read_.hosts.empty()) fail(read_.file, "expected hosts, found none");
    read_.ways.resize(read_.hosts.size() * read_.hosts.size());
    return std::move(read_);
  }

 private:
  static constexpr std::string_view critical = "CRITICAL] ";

  bool take(std::string_view word, std::string_view rest) {
    Numbers numbers(rest);
    if (word == "host") {
      read_.hosts.push_back({std::string(rest), line_of_host(elements_, rest)});
    } else if (word == "prop" && !read_.hosts.empty()) {
      const std::size_t blank = std::min(rest.find(' '), rest.size());
      read_.hosts.back().properties.emplace_back(rest.substr(0, blank),
                                                 rest.substr(std::min(blank + 1, rest.size())));
    } else if (word == "line") {
      const double bandwidth = numbers.next();
      const bool shared = numbers.whole() == 0;
      read_.lines.push_back({std::string(numbers.rest()), {bandwidth}, shared});
    } else if (word == "wrong") {
      refuse(read_.file, rest);
    } else if (word == "stopped" && !rest.starts_with('-')) {
      const std::size_t from = numbers.whole();
      refuse_way(read_, from, numbers.whole(), "SimGrid gives up on the way");
    } else if (word == "end") {
      ended_ = true;
    } else {
      return false;
    }
    return true;
  }

  bool take_way(Numbers numbers) {
    read_.ways.resize(read_.hosts.size() * read_.hosts.size());
    const std::size_t from = numbers.whole(), to = numbers.whole();
    PlatformFile::Way& way = read_.ways.at(from * read_.hosts.size() + to);
    way.latency = {numbers.next()};
    while (!numbers.empty()) way.lines.push_back(numbers.whole());
    if (way.lines.empty()) refuse_way(read_, from, to);
    return true;
  }

  const std::vector<XmlElement>& elements_;
  PlatformFile read_;
  std::string_view log_;
  bool ended_ = false;
};

}  // namespace

PlatformFile read_platform_file(const std::string& path) {
  const std::string text = read_text(path);
  const std::vector<XmlElement> elements = xml_elements(text, path);
  check_elements(elements, path);
  const FileInMemory file(with_zone(text, elements));
  const std::string said = said_by_child(file.path(), path);
  PlatformFile read = SaidPlatform(path, elements).read(said);
  sort_hosts(read);
  return read;
}

}  // namespace stepsim
