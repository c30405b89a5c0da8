#include "scenarios/rows/nccl_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

// The name of the program that printed it, or of the file it was saved in, and what it measures.
struct KnownCollective {
  std::string_view word, collective;
};
constexpr std::array known_collectives{KnownCollective{"all_reduce", "all_reduce"},
                                       KnownCollective{"allreduce", "all_reduce"},
                                       KnownCollective{"all_gather", "all_gather"},
                                       KnownCollective{"allgather", "all_gather"},
                                       KnownCollective{"reduce_scatter", "reduce_scatter"},
                                       KnownCollective{"reducescatter", "reduce_scatter"},
                                       KnownCollective{"alltoall", "all_to_all"},
                                       KnownCollective{"all_to_all", "all_to_all"},
                                       KnownCollective{"broadcast", "broadcast"},
                                       KnownCollective{"sendrecv", "send_recv"},
                                       KnownCollective{"send_recv", "send_recv"}};

std::string collective_in(std::string_view text) {
  const std::string words = in_small_letters(text);
  for (const KnownCollective& each : known_collectives)
    if (words.find(each.word) != std::string::npos) return std::string(each.collective);
  return "";
}

std::vector<std::string_view> words_in(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < line.size();) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

struct Reading {
  std::string collective, gpu;
  std::set<std::string> hosts;
  std::uint32_t ranks = 0;
  std::size_t time_column = 0;  // of the words in a line; 0: its heading has not come yet
  std::vector<MeasuredCollective> rows;
  std::vector<Problem> problems;
};

// Reads "#  Rank  0 Group  0 Pid 123 on  host1 device  0 [0x07] NVIDIA H100 80GB HBM3".
void read_rank(const std::vector<std::string_view>& words, std::string_view line,
               Reading& reading) {
  ++reading.ranks;
  const auto on = std::find(words.begin(), words.end(), "on");
  if (on != words.end() && on + 1 != words.end()) reading.hosts.emplace(on[1]);
  if (const std::size_t bus = line.find(']'); bus != std::string_view::npos)
    reading.gpu = std::string(line.substr(std::min(line.size(), bus + 2)));
}

void read_comment(std::string_view line, Reading& reading) {
  const std::vector<std::string_view> words = words_in(line.substr(1));
  if (words.empty()) return;
  if (words[0] == "Rank") return read_rank(words, line, reading);
  if (words[0] == "size") {
    const auto time = std::find(words.begin(), words.end(), "time");
    reading.time_column = static_cast<std::size_t>(time - words.begin());
  }
  const bool names = line.find("_perf") != std::string_view::npos ||
                     line.find("Collective test") != std::string_view::npos;
  if (names && reading.collective.empty()) reading.collective = collective_in(line);
}

void read_sizes(std::string_view line, int number, const std::string& file, Reading& reading) {
  const std::vector<std::string_view> words = words_in(line);
  if (words.empty() || reading.time_column == 0) return;
  const std::optional<double> bytes = number_from<double>(words[0]);
  if (!bytes) return;  // what a library or a launcher printed between
  if (words.size() <= reading.time_column) {
    reading.problems.push_back({file, number, "", "the line ends before its time"});
    return;
  }
  const std::optional<double> time = number_from<double>(words[reading.time_column]);
  if (!time || !(*time > 0) || !(*bytes >= 0)) {
    reading.problems.push_back(
        {file, number, "time",
         fmt::format("expected microseconds, found \"{}\"", words[reading.time_column])});
    return;
  }
  if (*bytes <= 0) return;  // a warm-up of nothing
  MeasuredCollective row;
  row.id = fmt::format("line {}", number);
  row.line = number;
  row.bytes = *bytes;
  row.time = *time * 1e-6;
  reading.rows.push_back(std::move(row));
}

}  // namespace

bool is_nccl_output(std::string_view text) {
  const std::string_view head = text.substr(0, 1 << 16);
  // A table may say in a note what it was taken from.
  const std::string_view first = head.substr(0, head.find('\n'));
  if (!first.starts_with('#') && std::ranges::count(first, ',') > 8) return false;
  return head.find("# nThread") != std::string_view::npos ||
         head.find("nccl-tests version") != std::string_view::npos ||
         (head.find("algbw") != std::string_view::npos &&
          head.find("busbw") != std::string_view::npos &&
          head.find("out-of-place") != std::string_view::npos);
}

std::vector<MeasuredCollective> read_nccl_output(std::string_view text, const std::string& file) {
  Reading reading;
  int number = 0;
  for (const std::string_view line : lines_in(text)) {
    ++number;
    if (!line.empty() && line[0] == '#')
      read_comment(line, reading);
    else
      read_sizes(line, number, file, reading);
  }
  const std::string name = std::filesystem::path(file).filename().string();
  if (reading.collective.empty()) reading.collective = collective_in(name);
  if (reading.collective.empty())
    reading.problems.push_back(
        {file, 0, "",
         "does not say which collective it measured; put its name into the file's, such as "
         "all_reduce.txt"});
  if (reading.rows.empty() && reading.problems.empty())
    reading.problems.push_back({file, 0, "", "no line holds a size and a time"});
  if (reading.ranks == 0 && reading.problems.empty())
    reading.problems.push_back(
        {file, 0, "", "does not list its ranks: keep the lines that begin with \"#\""});
  if (!reading.problems.empty()) throw UserError(reading.problems);
  for (MeasuredCollective& row : reading.rows) {
    row.source = name;
    row.collective = reading.collective;
    row.hardware = reading.gpu;
    row.gpus = reading.ranks;
    row.nodes = static_cast<std::uint32_t>(std::max<std::size_t>(1, reading.hosts.size()));
  }
  return std::move(reading.rows);
}

std::vector<MeasuredCollective> read_collectives(const std::string& file,
                                                 const std::string& machine) {
  const std::string text = read_text(file);
  if (!is_nccl_output(text)) return measured_collectives(parse_csv(text, file));
  std::vector<MeasuredCollective> rows = read_nccl_output(text, file);
  for (MeasuredCollective& row : rows) row.machine = machine;
  return rows;
}

}  // namespace stepsim
