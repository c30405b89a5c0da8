#include "analysis/studies/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/draw.hpp"
#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// Reads every choice once, beside the first choices of the other axes: that finds misspelt keys
// before the first point is computed, and warms up what all workers inherit. Returns the files that
// points read beside the catalogue.
std::set<std::string> check_choices(const SweepQuestion& question) {
  std::set<std::string> files;
  const SweepPlan& plan = question.plan;
  SweepValues first;
  for (const Axis& axis : plan.axes)
    first.insert(first.end(), axis.choices.front().begin(), axis.choices.front().end());
  std::size_t at = 0;
  for (const Axis& axis : plan.axes) {
    for (const auto& choice : axis.choices) {
      SweepValues values = first;
      std::copy(choice.begin(), choice.end(), values.begin() + static_cast<std::ptrdiff_t>(at));
      for (std::string& file :
           require_meaning(question.data, plan.scenario, settings_of(plan, values)))
        files.insert(std::move(file));
    }
    at += axis.keys.size();
  }
  return files;
}

// Everything a result may depend on: the catalogue and its overlays, file by file in order.
std::uint64_t digest_of_catalogue(const Catalogue& data) {
  std::uint64_t sum = checksum("");
  for (const std::string& folder : data.folders()) {
    std::vector<std::string> files;
    for (const char* part : {"topology", "workloads"})
      if (fs::exists(fs::path(folder) / part))
        for (const auto& entry : fs::recursive_directory_iterator(fs::path(folder) / part))
          if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
    std::ranges::sort(files);
    for (const std::string& file : files)
      sum = checksum(read_file(file), checksum(file.substr(folder.size()), sum));
  }
  return sum;
}

std::string digest_of(const SweepQuestion& question, const std::string& scenario,
                      const std::vector<SweepValues>& points, const std::set<std::string>& files) {
  std::uint64_t sum = checksum(scenario, digest_of_catalogue(question.data));
  for (const std::string& file : files) sum = checksum(read_file(file), sum);
  const auto add = [&](std::string_view text) { sum = checksum("\n", checksum(text, sum)); };
  add(stepsim_version);
  if (question.samples > 0) add(fmt::format("{} draws", question.samples));
  if (const SweepPrice& price = question.price; price.of)
    add(fmt::format("{} and {}", price.said, price.budget.value_or(0)));
  for (const auto& [key, value] : question.plan.fixed) add(fmt::format("{}={}", key, value));
  for (const std::string& key : question.plan.keys()) add(key);
  for (const SweepValues& values : points)
    for (const std::string& value : values) add(value);
  return fmt::format("{:016x}", sum);
}

// Journals are private to the program that wrote them: another build may predict other figures.
std::string build_digest() {
  return fmt::format("{:016x}", checksum(read_file("/proc/self/exe")));
}

std::vector<std::size_t> share_of(const Shard& shard, std::size_t points) {
  std::vector<std::size_t> mine;
  for (std::size_t i = shard.number - 1; i < points; i += shard.of) mine.push_back(i);
  return mine;
}

SweepTable frame_of(const SweepQuestion& question, const std::vector<SweepValues>& points,
                    const std::set<std::string>& files) {
  const Document document = content_of(find_scenario(question.data, question.plan.scenario));
  SweepTable table;
  table.scenario = document.canonical();
  table.title = document.root().text_or("name", question.plan.scenario);
  table.digest = digest_of(question, table.scenario, points, files);
  table.source = question.plan.scenario;
  table.fixed = question.plan.fixed;
  table.keys = question.plan.keys();
  table.points = points.size();
  return table;
}

// One replay to a process, so draws are asked of workers of their own.
void add_interval(const SweepQuestion& question, const std::vector<Setting>& settings,
                  Outcome& outcome) {
  std::vector<double> times;
  if (const auto stated = outcome.of("step_time")) times.push_back(*stated);
  for (std::uint32_t sample = 0; sample < question.samples && !times.empty(); ++sample) {
    const Outcome drawn = in_worker([&] {
      return evaluate(question.data, question.plan.scenario, settings,
                      Draw{.seed = 1, .sample = sample, .of = question.samples});
    });
    if (const auto time = drawn.of("step_time")) times.push_back(*time);
  }
  if (times.size() < 2) return;
  std::ranges::sort(times);
  const double stated = *outcome.of("step_time");
  outcome.figures[*find_metric("step_time_low")] = std::min(stated, quantile(times, 0.1));
  outcome.figures[*find_metric("step_time_high")] = std::max(stated, quantile(times, 0.9));
}

// Nobody may have a price of a point's GPUs: then it has none.
void add_price(const SweepQuestion& question, const std::vector<Setting>& settings,
               Outcome& outcome) {
  if (!question.price.of || !outcome.feasible) return;
  const Scenario scenario = load_scenario(question.data, question.plan.scenario, settings);
  const std::optional<double> price = question.price.of(scenario.cluster);
  if (!price) return;
  const auto put = [&](std::string_view name, double value) {
    outcome.figures[*find_metric(name)] = value;
  };
  put("price", *price);
  if (const auto time = outcome.of("gpu_time")) put("cost", *price * *time / 3600);
  const auto time = outcome.of("gpu_time_per_million_tokens"), kept = outcome.of("goodput");
  if (!time) return;
  const double million = *price * *time / 3600 / kept.value_or(1);
  put("cost_per_million_tokens", million);
  if (question.price.budget) put("budget_tokens", 1e6 * *question.price.budget / million);
}

Outcome answer_to(const SweepQuestion& question, const std::vector<Setting>& settings) {
  const auto stated = [&] { return evaluate(question.data, question.plan.scenario, settings); };
  Outcome outcome = question.samples == 0 ? stated() : in_worker(stated);
  if (question.samples > 0) add_interval(question, settings, outcome);
  add_price(question, settings, outcome);
  return outcome;
}

// This is thrown where workers are waited for, and ends them.
struct SweepStopped {};

}  // namespace

SweepRun::SweepRun(SweepQuestion question, std::vector<SweepValues> points,
                   const std::set<std::string>& files)
    : question_(std::move(question)),
      points_(std::move(points)),
      frame_(frame_of(question_, points_, files)) {
  if (question_.journal.empty()) return;
  journal_ = std::make_unique<SweepJournal>(
      question_.journal, fmt::format("{} {}/{} {}", frame_.digest, question_.shard.number,
                                     question_.shard.of, build_digest()));
  known_ = journal_->finished();
}

void SweepRun::answer(std::span<const std::size_t> points, double memory) {
  std::vector<std::size_t> open;
  for (const std::size_t point : points)
    if (!known_.contains(point)) open.push_back(point);
  std::size_t answered = points.size() - open.size();
  const auto workers = static_cast<double>(std::min(question_.workers, open.size()));
  const auto report = [&] {
    if (question_.progress) question_.progress(answered, points.size());
  };
  const auto task = [&](std::size_t i) {
    if (memory > 0) limit_worker(memory / workers);
    return answer_to(question_, settings_of(question_.plan, points_[open[i]]));
  };
  const auto stop_if_told = [&] {
    if (question_.stop && question_.stop()) throw SweepStopped();
  };
  const auto done = [&](std::size_t i, const WorkerOutcome<Outcome>& said) {
    if (!said.answer && !said.died) throw UserError(said.error);
    if (!said.no_memory || memory == 0) {
      const Outcome outcome = said.answer ? *said.answer : impossible(said.error);
      if (journal_ && said.answer) journal_->add(open[i], outcome);
      frame_.unanswered += said.answer ? 0 : 1;
      known_.emplace(open[i], outcome);
      if (question_.heard) question_.heard(open[i], outcome);
    }
    ++answered;
    report();
    stop_if_told();
  };
  report();
  const auto now_and_then = [&] {
    if (journal_) journal_->sync_if_due();
    stop_if_told();
  };
  try {
    outcomes_in_workers(open.size(), question_.workers, task, done, now_and_then);
  } catch (const SweepStopped&) {  // the workers have ended
  }
}

const Outcome& SweepRun::outcome(std::size_t point) const {
  return known_.at(point);
}

SweepTable SweepRun::table(std::span<const std::size_t> points) const {
  SweepTable table = frame_;
  for (const std::size_t point : points)
    table.rows.push_back({point, points_[point], outcome(point)});
  return table;
}

SweepTable run_sweep(const SweepQuestion& question) {
  std::vector<SweepValues> points = expand(question.plan);
  const std::vector<std::size_t> mine = share_of(question.shard, points.size());
  SweepRun run(question, std::move(points), check_choices(question));
  run.answer(mine);
  return run.table(mine);
}

}  // namespace stepsim
