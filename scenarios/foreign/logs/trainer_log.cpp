#include "scenarios/foreign/logs/trainer_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <vector>

#include "scenarios/foreign/logs/event_file.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/draw.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"

namespace stepsim {
namespace {

// This few steps are still slowed by warming up: caches, autotuning, the first allocations.
constexpr double few_steps = 10;

std::optional<double> number_at(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\'' || text[at] == '"')) ++at;
  std::string digits;  // of "6,123" too
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool part = is_digit(c) || c == '.' || c == 'e' || c == '+' || c == '-';
    const bool comma =
        c == ',' && at + 1 < text.size() && !digits.empty() && is_digit(text[at + 1]);
    if (!part && !comma) break;
    if (part) digits += c;
  }
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// Returns the number behind a word, from `from` on.
std::optional<double> behind(std::string_view text, std::string_view word, std::size_t from = 0) {
  const std::size_t at = text.find(word, from);
  return at == std::string_view::npos ? std::nullopt : number_at(text, at + word.size());
}
// Returns the number behind the word's last mention.
std::optional<double> last_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.rfind(word);
  return at == std::string_view::npos ? std::nullopt : number_at(text, at + word.size());
}

// Reads "4:33:02", "12:05", "1 day, 2:03:04" without its days, as seconds.
std::optional<double> clock_of(std::string_view text) {
  double seconds = 0, part = 0;
  int parts = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [end, failed] = std::from_chars(text.data() + at, text.data() + text.size(), part);
    if (failed != std::errc() || !std::isfinite(part)) return std::nullopt;
    seconds = 60 * seconds + part;
    ++parts;
    at = static_cast<std::size_t>(end - text.data());
    if (at < text.size() && text[at] != ':') return std::nullopt;
    ++at;
  }
  return parts >= 2 ? std::optional(seconds) : std::nullopt;
}

// Reads "143/1188 [4:33:02<33:12:11, 114.30s/it", which ends before the bracket.
std::optional<TrainerLog> bar_at(std::string_view text, std::size_t bracket) {
  std::size_t begin = bracket;
  while (begin > 0 && text[begin - 1] == ' ') --begin;
  const std::size_t end = begin;
  while (begin > 0 && (is_digit(text[begin - 1]) || text[begin - 1] == '/')) --begin;
  const std::string_view count = text.substr(begin, end - begin);
  const std::size_t slash = count.find('/');
  if (slash == 0 || slash == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(bracket + 1, 80);
  const std::size_t less = rest.find('<'), comma = rest.find(',');
  if (less == std::string_view::npos || comma == std::string_view::npos || less > comma)
    return std::nullopt;
  const auto done = number_at(count, 0), total = number_at(count, slash + 1),
             elapsed = clock_of(rest.substr(0, less));
  if (!done || !total || !elapsed) return std::nullopt;
  TrainerLog log{.kind = "a progress bar", .done = *done, .total = total};
  if (*done > 0 && *elapsed > 0) log.seconds_per_step = *elapsed / *done;
  const auto rate = number_at(rest, comma + 1);
  const std::string_view unit = rest.substr(comma, rest.find(']') - comma);
  if (rate && *rate > 0 && unit.find("s/it") != std::string_view::npos) log.recent = rate;
  if (rate && *rate > 0 && unit.find("it/s") != std::string_view::npos) log.recent = 1 / *rate;
  return log;
}

// Returns the last bar of the longest: evaluations have bars of their own, which are shorter.
std::optional<TrainerLog> progress_of(std::string_view text) {
  std::optional<TrainerLog> found;
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    auto log = bar_at(text, at);
    if (log && (!found || *log->total >= *found->total)) found = std::move(log);
  }
  return found;
}

// Reads what a trainer of Transformers says at its end, and its state file all the time.
std::optional<TrainerLog> transformers_of(std::string_view text) {
  const auto steps = last_behind(text, "\"global_step\":"),
             runtime = last_behind(text, "train_runtime\":"),
             quoted = last_behind(text, "'train_runtime':");
  if (!steps && !runtime && !quoted) return std::nullopt;
  TrainerLog log{.kind = steps ? "trainer_state.json" : "a trainer's last line"};
  log.done = steps.value_or(0);
  log.total = last_behind(text, "\"max_steps\":");
  const auto each = last_behind(text, "train_steps_per_second\":"),
             each_quoted = last_behind(text, "'train_steps_per_second':");
  const auto rate = each ? each : each_quoted;
  const auto time = runtime ? runtime : quoted;
  if (time && steps && *steps > 0)
    log.seconds_per_step = *time / *steps;
  else if (rate && *rate > 0)
    log.seconds_per_step = 1 / *rate;
  if (time && rate && log.done == 0) log.done = std::round(*time * *rate);
  if (time && !log.total) log.total = log.done;
  return log;
}

struct LinePattern {
  std::string_view kind, mark, step, figure;
  double scale = 1;  // of the figure: to seconds
  bool is_rate = false;
};
constexpr std::array patterns{
    LinePattern{"Megatron's log", "elapsed time per iteration (ms):", "iteration",
                "elapsed time per iteration (ms):", 1e-3, false},
    LinePattern{"NeMo's log", "train_step_timing in s", "global_step", "train_step_timing in s", 1,
                false},
    LinePattern{"verl's log", "timing_s/step:", "step:", "timing_s/step:", 1, false},
    LinePattern{"torchtune's log", "tokens_per_second_per_gpu:", "Step ",
                "tokens_per_second_per_gpu:", 1, true},
    LinePattern{"TorchTitan's log", "tps:", "step:", "tps:", 1, true},
};

// Some programs write KEY=VALUE where others write KEY: VALUE.
std::size_t behind_sign(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == '=' || text[at] == ':' || text[at] == ' ')) ++at;
  return at;
}
std::optional<double> after_sign(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  return at == std::string_view::npos ? std::nullopt
                                      : number_at(line, behind_sign(line, at + word.size()));
}

// Memory of a line and what it counts: TorchTitan prints the allocator's segments, torchtune what
// tensors hold.
void take_memory(std::string_view line, TrainerLog& log) {
  const auto take = [&](std::optional<double> gibibytes, MemoryKind kind) {
    if (!gibibytes || !(*gibibytes > 0)) return;
    log.memory = std::max(log.memory.value_or(0), *gibibytes * 0x1p30);
    log.memory_kind = kind;
  };
  const std::size_t at = line.find(" memory:");
  if (at != std::string_view::npos && line.find("GiB", at) != std::string_view::npos)
    take(number_at(line, at + 8), MemoryKind::reserved);
  take(behind(line, "peak_memory_alloc:"), MemoryKind::allocated);
  take(behind(line, "perf/max_memory_allocated_gb:"), MemoryKind::allocated);
}

// Reads lines that hold a figure each. The first ones are left out of the mean, as far as there are
// more.
std::optional<TrainerLog> log_in(std::string_view text, const LinePattern& pattern) {
  TrainerLog log{.kind = std::string(pattern.kind)};
  std::vector<double> figures;
  for (const std::string_view line : lines_in(text)) {
    const auto step = after_sign(line, pattern.step);
    const auto figure = after_sign(line, pattern.figure);
    if (!step || !figure || !(*figure > 0) || !std::isfinite(*figure)) continue;
    log.done = std::max(log.done, *step);
    figures.push_back(*figure * pattern.scale);
    take_memory(line, log);
    const std::size_t slash = line.find('/', line.find(pattern.step));
    if (!pattern.is_rate && slash != std::string_view::npos) log.total = number_at(line, slash + 1);
  }
  if (figures.empty()) return std::nullopt;
  if (figures.size() > 4) figures.erase(figures.begin(), figures.begin() + 2);
  const double last = figures.back();
  std::ranges::sort(figures);
  const double middle = quantile(figures, 0.5);
  if (pattern.is_rate)
    log.tokens_per_second_per_gpu = middle;
  else
    log.seconds_per_step = middle;
  if (!pattern.is_rate) log.recent = last;
  if (figures.size() > 1) log.spread = Range{quantile(figures, 0.1), quantile(figures, 0.9)};
  return log;
}

// Reads the lines that LLaMA-Factory writes into trainer_log.jsonl.
std::optional<TrainerLog> llama_factory_of(std::string_view text) {
  const auto done = last_behind(text, "\"current_steps\":"),
             total = last_behind(text, "\"total_steps\":");
  const std::size_t at = text.rfind("\"elapsed_time\": \"");
  if (!done || !(*done > 0) || at == std::string_view::npos) return std::nullopt;
  const std::string_view clock = text.substr(at + 17, 32);
  const auto elapsed = clock_of(clock.substr(0, clock.find('"')));
  if (!elapsed || !(*elapsed > 0)) return std::nullopt;
  TrainerLog log{.kind = "LLaMA-Factory's log", .done = *done, .total = total};
  log.seconds_per_step = *elapsed / *done;
  return log;
}

// One moment of a run that W&B keeps.
struct Moment {
  double step = 0, runtime = 0;
};

// Between the first fifth of the moments and the last one a run is in full swing.
std::optional<TrainerLog> history_of(std::vector<Moment> moments,
                                     std::string_view kind = "W&B's history") {
  std::erase_if(moments, [](const Moment& each) {
    return !std::isfinite(each.step) || !std::isfinite(each.runtime) || each.runtime < 0;
  });
  std::ranges::sort(moments, {}, &Moment::step);
  if (moments.size() < 2) return std::nullopt;
  const Moment& first = moments[moments.size() / 5];
  const Moment& last = moments.back();
  TrainerLog log{.kind = std::string(kind), .done = last.step};
  if (!(last.step > first.step) || !(last.runtime > first.runtime)) return std::nullopt;
  log.seconds_per_step = (last.runtime - first.runtime) / (last.step - first.step);
  return log;
}

// Optimizer steps go before W&B's own counter, which counts what was logged.
constexpr std::array<std::string_view, 4> step_names{"train/global_step", "trainer/global_step",
                                                     "global_step", "_step"};

std::optional<TrainerLog> history_in_csv(std::string_view text) {
  const std::string_view head = text.substr(0, text.find('\n'));
  if (head.find("_runtime") == std::string_view::npos || head.find('{') != std::string_view::npos)
    return std::nullopt;
  const CsvTable table = parse_csv(text, "the history");
  for (const std::string_view name : step_names) {
    if (!table.column(name)) continue;
    std::vector<Moment> moments;
    for (const CsvTable::Row& row : table.rows) {
      const auto step = number_at(table.cell(row, name), 0),
                 runtime = number_at(table.cell(row, "_runtime"), 0);
      if (step && runtime) moments.push_back({*step, *runtime});
    }
    if (auto log = history_of(std::move(moments))) return log;
  }
  return std::nullopt;
}

// In JSON each moment is an object without others in it, of a list or of a line.
std::optional<TrainerLog> history_in_json(std::string_view text) {
  if (text.find("\"_runtime\":") == std::string_view::npos) return std::nullopt;
  for (const std::string_view name : step_names) {
    const std::string key = fmt::format("\"{}\":", name);
    std::vector<Moment> moments;
    for (const std::string_view object : split(text, '}')) {
      const auto step = behind(object, key), runtime = behind(object, "\"_runtime\":");
      if (step && runtime) moments.push_back({*step, *runtime});
    }
    if (auto log = history_of(std::move(moments))) return log;
  }
  return std::nullopt;
}

std::optional<TrainerLog> history_in_events(std::string_view bytes) {
  if (!is_event_file(bytes)) return std::nullopt;
  const std::vector<ReportedStep> steps = reported_steps(bytes);
  return history_of(mapped(steps,
                           [&](const ReportedStep& each) {
                             return Moment{each.step, each.time - steps.front().time};
                           }),
                    "TensorBoard's events");
}

TrainerLog log_of(KernelProfile profile) {
  TrainerLog log{.kind = profile.kind, .done = profile.steps};
  log.seconds_per_step = profile.step_time;
  log.profile = std::move(profile);
  return log;
}

// Returns the mean of what nvidia-smi's query calls utilization.gpu, "97 %", over cards and lines.
std::optional<double> busy_of(std::string_view text) {
  if (text.find("utilization.gpu") == std::string_view::npos) return std::nullopt;
  double sum = 0, count = 0;
  for (std::size_t at = text.find(" %"); at != std::string_view::npos;
       at = text.find(" %", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    const auto percent = number_at(text.substr(0, at), begin);
    if (!percent || begin == at || *percent > 100) continue;
    sum += *percent / 100;
    count += 1;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

// The most that nvidia-smi shows of any card: "23456MiB / 81559MiB", or a query's "23456 MiB".
std::optional<TrainerLog> device_memory_of(std::string_view text) {
  const bool query = text.find("memory.used") != std::string_view::npos;
  if (!query && text.find("NVIDIA-SMI") == std::string_view::npos) return std::nullopt;
  TrainerLog log{.kind = "nvidia-smi", .memory_kind = MemoryKind::device};
  const std::string_view unit = query ? " MiB" : "MiB /";
  for (std::size_t at = text.find(unit); at != std::string_view::npos;
       at = text.find(unit, at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    if (const auto used = number_at(text.substr(0, at), begin); used && *used > 0)
      log.memory = std::max(log.memory.value_or(0), *used * 0x1p20);
  }
  log.busy = busy_of(text);
  return log.memory ? std::optional(log) : std::nullopt;
}

}  // namespace

TrainerLog read_trainer_log(std::string_view text, const std::string& name) {
  for (const LinePattern& pattern : patterns)
    if (text.find(pattern.mark) != std::string_view::npos)
      if (auto log = log_in(text, pattern)) return *log;
  for (const auto& read : {llama_factory_of, history_in_csv, history_in_json, history_in_events})
    if (auto log = read(text)) return *log;
  if (auto profile = kernel_table_of(text, name)) return log_of(*std::move(profile));
  auto last = transformers_of(text);
  if (last && last->seconds_per_step) return *last;
  if (auto bar = progress_of(text)) return *bar;
  if (last) return *last;
  if (auto memory = device_memory_of(text)) return *memory;
  throw UserError(
      {{name, 0, "",
        "holds no progress of a training: expected a line of a progress bar such as "
        "\"143/1188 [4:33:02<33:12:11, 114.30s/it]\", trainer_state.json, "
        "'train_runtime', lines of Megatron (elapsed time per iteration (ms)), TorchTitan "
        "(step: ... tps: ...), torchtune, NeMo, verl or LLaMA-Factory, a history of W&B, "
        "events of TensorBoard, memory as nvidia-smi shows it, or kernels of a profile "
        "(PyTorch's trace or key_averages(), nsys' cuda_gpu_kern_sum, rocprof's statistics)"}});
}

std::string read_log_text(const std::string& path) {
  constexpr std::size_t largest = 256u << 20;
  std::ifstream file(path == "-" ? "/dev/stdin" : path, std::ios::binary);
  std::string text;
  for (std::array<char, 1u << 16> part{}; file;
       text.append(part.data(), static_cast<std::size_t>(file.gcount()))) {
    if (text.size() > largest) fail(path, "is larger than 256 MiB: give the end of it");
    file.read(part.data(), part.size());
  }
  if (!file.is_open() || file.bad()) fail(path, "cannot be read");
  return text;
}

std::optional<TrainerLog> load_trace(const std::string& path) {
  if (path == "-") return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string beginning(1u << 16, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  if (beginning.starts_with("\x1f\x8b")) fail(path, "is compressed: unpack it with gunzip first");
  if (!begins_trace(beginning)) return std::nullopt;
  file.clear();
  file.seekg(0);
  return log_of(read_kernel_trace(file, path));
}

TrainerLog load_trainer_log(const std::string& path) {
  if (auto trace = load_trace(path)) return *std::move(trace);
  return read_trainer_log(read_log_text(path), path);
}

std::string_view to_text(RunPhase phase) {
  constexpr std::array<std::string_view, 4> names{"not begun", "its first steps", "full swing",
                                                  "finished"};
  return names[static_cast<std::size_t>(phase)];
}

RunPhase phase_of(const TrainerLog& log) {
  if (log.done <= 0) return RunPhase::not_begun;
  if (log.total && log.done >= *log.total) return RunPhase::finished;
  return log.done < few_steps ? RunPhase::first_steps : RunPhase::full_swing;
}

}  // namespace stepsim
