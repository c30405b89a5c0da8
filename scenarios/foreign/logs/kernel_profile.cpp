#include "scenarios/foreign/logs/kernel_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "sim/base/config.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr double micro = 1e-6, nano = 1e-9;
constexpr std::string_view step_mark = "ProfilerStep";

// The words of a line, apart by two blanks or more: a kernel's name has single ones.
std::vector<std::string_view> cells_in(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at < line.size();) {
    if (is_space(line[at])) {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find("  ", at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end;
  }
  return cells;
}

// Reads "12.345ms" of a table of PyTorch.
std::optional<double> time_in(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 3> units{
      {{"us", micro}, {"ms", 1e-3}, {"s", 1}}};
  for (const auto& [unit, seconds] : units)
    if (text.ends_with(unit))
      if (const auto value = number_from<double>(text.substr(0, text.size() - unit.size())))
        return *value * seconds;
  return std::nullopt;
}

std::size_t place_of(const std::vector<std::string_view>& cells, std::string_view suffix) {
  const auto found =
      std::ranges::find_if(cells, [&](std::string_view cell) { return cell.ends_with(suffix); });
  return static_cast<std::size_t>(found - cells.begin());
}

// A kernel is a row that took no time of the host; operators stand beside those that they launch.
std::optional<KernelProfile> averages_of(std::string_view text) {
  KernelProfile profile{.kind = "key_averages() of PyTorch's profiler"};
  std::size_t host = 0, device = 0, calls = 0;
  for (const std::string_view line : lines_in(text)) {
    const std::vector<std::string_view> cells = cells_in(line);
    if (device == 0) {
      host = place_of(cells, "Self CPU");
      device = std::min(place_of(cells, "Self CUDA"), place_of(cells, "Self HIP"));
      calls = place_of(cells, "# of Calls");
      if (std::max({host, device, calls}) >= cells.size()) device = 0;
      continue;
    }
    if (cells.size() <= std::max({host, device, calls})) continue;
    const auto on_host = time_in(cells[host]), on_device = time_in(cells[device]);
    const auto count = number_from<double>(cells[calls]);
    if (!on_host || !on_device || !count) continue;
    if (cells.front().starts_with(step_mark))
      profile.steps = std::max(profile.steps, *count);
    else if (*on_host == 0 && *on_device > 0)
      profile.kernels.push_back({std::string(cells.front()), *on_device});
  }
  return profile.kernels.empty() ? std::nullopt : std::optional(std::move(profile));
}

// A report of nsys in columns: figures, and behind them the name.
std::optional<KernelProfile> columns_of(std::string_view text) {
  if (text.find("Total Time (ns)") == std::string_view::npos) return std::nullopt;
  KernelProfile profile{.kind = "nsys' summary"};
  for (const std::string_view line : lines_in(text)) {
    const std::vector<std::string_view> cells = cells_in(line);
    if (cells.size() < 4 || !number_from<double>(cells[0])) continue;
    std::string digits(cells[1]);
    std::erase(digits, ',');
    if (const auto total = number_from<double>(digits))
      profile.kernels.push_back({std::string(cells.back()), *total * nano});
  }
  return profile.kernels.empty() ? std::nullopt : std::optional(std::move(profile));
}

std::optional<KernelProfile> summary_in_csv(std::string_view text, const std::string& file) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> totals{
      {{"Total Time (ns)", "nsys' summary"}, {"TotalDurationNs", "rocprof's summary"}}};
  for (const auto& [total, kind] : totals) {
    const std::size_t at = text.find(total);
    if (at == std::string_view::npos) continue;
    const std::size_t begin = text.rfind('\n', at) + 1;  // nsys writes lines of its own before
    if (text.substr(begin, text.find('\n', at) - begin).find(',') == std::string_view::npos)
      continue;
    const CsvTable table = parse_csv(text.substr(begin), file);
    KernelProfile profile{.kind = std::string(kind)};
    for (const CsvTable::Row& row : table.rows)
      if (const auto time = number_from<double>(table.cell(row, total)); time && *time >= 0)
        profile.kernels.push_back({std::string(table.cell(row, "Name")), *time * nano});
    if (!profile.kernels.empty()) return profile;
  }
  return std::nullopt;
}

// One event of a trace is the text of an object: the first mention of a key is its own, as
// arguments come last.
std::string_view text_in(std::string_view event, std::string_view key) {
  const std::size_t at = event.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = event.find_first_not_of(" :", at + key.size());
  if (begin == std::string_view::npos) return {};
  if (event[begin] != '"') return event.substr(begin, event.find_first_of(",} \n", begin) - begin);
  const std::size_t end = event.find('"', begin + 1);
  return event.substr(begin + 1, end - begin - 1);
}

// Hands on each object of the list of events, and keeps no more than one of them.
class TraceEvents {
 public:
  explicit TraceEvents(std::istream& file) : file_(file) {}

  // Returns false behind the last one.
  bool next(std::string& event) {
    event.clear();
    int depth = 0;
    bool quoted = false, escaped = false;
    for (int c = get(); c >= 0; c = get()) {
      if (depth > 0 && event.size() < longest) event += static_cast<char>(c);
      if (quoted) {
        quoted = escaped || c != '"';
        escaped = !escaped && c == '\\';
      } else if (c == '"') {
        quoted = true;
      } else if (c == '{') {
        if (depth++ == 0) event = "{";
      } else if (c == '}' && depth > 0 && --depth == 0) {
        return true;
      } else if (c == ']' && depth == 0) {
        return false;
      }
    }
    return false;
  }

  bool go_to(std::string_view word) {
    for (std::size_t met = 0; met < word.size();) {
      const int c = get();
      if (c < 0) return false;
      met = c == word[met] ? met + 1 : (c == word[0] ? 1 : 0);
    }
    return true;
  }

 private:
  static constexpr std::size_t longest = 1u << 16;  // of what is kept of an event

  int get() {
    if (at_ == size_) {
      file_.read(part_.data(), static_cast<std::streamsize>(part_.size()));
      size_ = static_cast<std::size_t>(file_.gcount());
      at_ = 0;
      if (size_ == 0) return -1;
    }
    return static_cast<unsigned char>(part_[at_++]);
  }

  std::istream& file_;
  std::array<char, 1u << 16> part_{};
  std::size_t at_ = 0, size_ = 0;
};

struct Span {
  double begin = 0, end = 0;  // microseconds
};

// Returns the microseconds in which one of them is on.
double covered(std::vector<Span> spans, const Span& within) {
  std::ranges::sort(spans, {}, &Span::begin);
  double sum = 0, until = within.begin;
  for (const Span& span : spans) {
    const double end = std::min(span.end, within.end);
    if (end <= until) continue;
    sum += end - std::max(span.begin, until);
    until = end;
  }
  return sum;
}

}  // namespace

std::optional<KernelProfile> kernel_table_of(std::string_view text, const std::string& name) {
  if (auto profile = summary_in_csv(text, name)) return profile;
  if (auto profile = columns_of(text)) return profile;
  return averages_of(text);
}

bool begins_trace(std::string_view beginning) {
  return beginning.find("\"traceEvents\"") != std::string_view::npos ||
         (beginning.find("\"schemaVersion\"") != std::string_view::npos &&
          beginning.find("\"deviceProperties\"") != std::string_view::npos);
}

KernelProfile read_kernel_trace(std::istream& file, const std::string& name) {
  TraceEvents events(file);
  std::map<std::string, double, std::less<>> kernels;
  std::vector<Span> busy;
  std::map<std::string, Span, std::less<>> steps;
  std::string event;
  if (events.go_to("\"traceEvents\"")) {
    while (events.next(event)) {
      const std::string_view category = text_in(event, "\"cat\""),
                             called = text_in(event, "\"name\"");
      const auto begin = number_from<double>(text_in(event, "\"ts\"")),
                 lasts = number_from<double>(text_in(event, "\"dur\""));
      if (!begin || !lasts || !(*lasts >= 0)) continue;
      const Span span{*begin, *begin + *lasts};
      if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
        kernels[std::string(called)] += *lasts * micro;
        busy.push_back(span);
      } else if (category == "user_annotation" && called.starts_with(step_mark)) {
        steps[std::string(called)] = span;
      }
    }
  }
  if (kernels.empty())
    fail(name, "is a trace without a kernel of a GPU: profile with ProfilerActivity.CUDA");
  KernelProfile profile{.kind = "a trace of PyTorch's profiler"};
  for (const auto& [each, seconds] : kernels) profile.kernels.push_back({each, seconds});
  if (steps.empty()) return profile;
  Span all = steps.begin()->second;
  for (const auto& [each, span] : steps)
    all = {std::min(all.begin, span.begin), std::max(all.end, span.end)};
  profile.steps = static_cast<double>(steps.size());
  profile.step_time = (all.end - all.begin) * micro / profile.steps;
  profile.idle = (all.end - all.begin - covered(std::move(busy), all)) * micro / profile.steps;
  return profile;
}

ProfiledTimes times_of(const KernelProfile& profile, const Catalogue& data) {
  const Document document = read_document(data.file("scenarios/foreign/logs/kernel-names.yaml"));
  struct Named {
    std::string kind;
    std::vector<std::string> names;
  };
  const auto kinds = mapped(document.root().tables("kinds"), [](const Table& table) {
    return Named{table.text("kind"), table.texts("names")};
  });
  document.finish();
  ProfiledTimes times;
  const auto part_of = [&](const std::string& kernel) -> double* {
    const std::string name = in_small_letters(kernel);
    for (const Named& each : kinds)
      if (std::ranges::any_of(each.names, [&](const std::string& part) {
            return name.find(part) != std::string::npos;
          })) {
        if (each.kind == "product") return &times.products;
        if (each.kind == "attention") return &times.attention;
        if (each.kind == "collective") return &times.collectives;
        return each.kind == "copy" ? &times.copies : nullptr;
      }
    return &times.other;
  };
  const double steps = std::max(profile.steps, 1.0);
  for (const ProfiledKernel& kernel : profile.kernels)
    if (double* part = part_of(kernel.name)) *part += kernel.seconds / steps;
  return times;
}

}  // namespace stepsim
