#include "cli/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/engine_options.hpp"
#include "cli/screen.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

double figure(const FoundPlan& found, std::string_view metric) {
  return found.outcome.of(metric).value_or(0);
}

JobTime job_time(const FoundPlan& found) {
  return {Seconds{figure(found, "step_time")}, Seconds{figure(found, "wall_time")},
          figure(found, "gpus"), figure(found, "tokens_per_second")};
}

// Says what the step waits for most, and second: "compute 91 %, tensor_parallel 4 %".
std::string binds(const Outcome& outcome) {
  constexpr std::string_view group = "time.";
  std::vector<std::pair<double, std::string>> times;
  for (const NamedMetric& metric : all_metrics())
    if (metric.name.starts_with(group))
      if (const auto time = outcome.of(metric.name); time && *time > 0)
        times.emplace_back(*time, metric.name.substr(group.size()));
  const double step = outcome.of("step_time").value_or(0);
  if (times.empty() || step <= 0) return outcome.bottleneck;
  std::ranges::stable_sort(times, std::greater{}, &std::pair<double, std::string>::first);
  times.resize(std::min<std::size_t>(times.size(), 2));
  return fmt::format("{}", fmt::join(mapped(times,
                                            [&](const auto& each) {
                                              return fmt::format("{} {}", each.second,
                                                                 percent(each.first / step, 0));
                                            }),
                                     ", "));
}

// These words say "faster" and "fastest" by the goal.
constexpr std::array<std::string_view, 4> better_words{"faster", "cheaper", "smaller",
                                                       "more frugal"};
constexpr std::array<std::string_view, 4> best_words{"fastest", "cheapest", "smallest",
                                                     "most frugal"};

std::string_view goal_word(const std::array<std::string_view, 4>& words, PlanGoal goal) {
  return words[static_cast<std::size_t>(goal)];
}

std::string job_text(const PlanSpace& space) {
  const Scenario& asked = space.asked;
  if (asked.grpo) return asked.name;
  return fmt::format("{}, {} rows of {} tokens a step", asked.model.name, space.batch,
                     asked.job.sequence);
}

std::string machine_of(const PlanSpace& space, const JobPlan& plan) {
  const Cluster& cluster = space.kinds[plan.kind].scenario.cluster;
  return fmt::format("{} x {}", cluster.nodes, cluster.node.name);
}

std::string sentence(const PlanSpace& space, const PlanSearch& search, const PlanAnswer& answer) {
  const FoundPlan& first = answer.best.front();
  const JobPlan& plan = space.plans[first.plan];
  std::string text =
      fmt::format("{} on {}: the {} of {} plans is {}: {} a step", job_text(space),
                  machine_of(space, plan), goal_word(best_words, search.goal), answer.plans,
                  plan_text(space, plan), to_text(Seconds{figure(first, "step_time")}));
  if (answer.draws > 0)
    text += fmt::format(" (likely {} to {})", to_text(Seconds{first.step_time.low}),
                        to_text(Seconds{first.step_time.high}));
  if (const auto energy = first.outcome.of("energy"); energy && search.goal == PlanGoal::energy)
    text += fmt::format(", {}", to_text(Joules{*energy}));
  text += fmt::format(", {} of {} on a GPU", to_text(Bytes{figure(first, "peak_memory")}),
                      to_text(Bytes{figure(first, "memory_capacity")}));
  if (answer.draws > 0 && answer.best.size() > 1)
    text += fmt::format("; it stays first in {} of {} draws of the constants",
                        std::lround(first.first * answer.draws), answer.draws);
  return text + ".";
}

std::string place_of(const Turning& turning, std::string_view name) {
  if (turning.at)
    return fmt::format(", where {} is {} {}", name, turning.by->at_high < 1 ? "above" : "below",
                       to_text(*turning.at, turning.by->constant.dimension));
  return "";
}

std::string second_text(const PlanSpace& space, const PlanSearch& search,
                        const PlanAnswer& answer) {
  if (!answer.second) return "";
  const Turning& turning = *answer.second;
  const FoundPlan &first = answer.best[0], &second = answer.best[1];
  const double more =
      goal_of(second.outcome, search.goal) / goal_of(first.outcome, search.goal) - 1;
  std::string text =
      fmt::format("The second, {}, {} {} more", plan_text(space, space.plans[second.plan]),
                  search.goal == PlanGoal::memory ? "needs" : "takes", percent(more));
  if (!turning.cause.empty())
    text += fmt::format(", most of it in {} ({} more)", turning.cause, to_text(turning.lost));
  text += fmt::format(". It is the {} of the two in {} of {} draws",
                      goal_word(better_words, search.goal), turning.won, turning.draws);
  if (turning.by) text += place_of(turning, turning.by->constant.name);
  return text + ".";
}

// Returns the place of the job's own split among the best, from 1.
std::optional<std::size_t> own_place(const PlanAnswer& answer) {
  const auto place = std::ranges::find(answer.best, answer.own->plan, &FoundPlan::plan);
  if (place == answer.best.end()) return std::nullopt;
  return static_cast<std::size_t>(place - answer.best.begin()) + 1;
}

std::string own_text(const PlanSpace& space, const PlanSearch& search, const PlanAnswer& answer) {
  if (!answer.own || own_place(answer) == 1u)
    return answer.own ? "The first is the job's own." : "";
  const OwnPlan& own = *answer.own;
  const std::string plan = plan_text(space, space.plans[own.plan]);
  if (!own.outcome.feasible)
    return fmt::format("The job's own, {}, cannot run: {}.", plan, own.outcome.reason);
  const auto place = own_place(answer);
  const double more =
      goal_of(own.outcome, search.goal) / goal_of(answer.best.front().outcome, search.goal) - 1;
  std::string text =
      fmt::format("The job's own, {}, {} {} {}", place ? fmt::format("plan {}", *place) : plan,
                  search.goal == PlanGoal::memory ? "needs" : "takes", percent(std::abs(more)),
                  more < 0 ? "less, and leaves less memory than is asked for" : "more");
  if (more > 0 && !own.cause.empty())
    text += fmt::format(", most of it in {} ({} more)", own.cause, to_text(own.lost));
  return text + ".";
}

std::string counts_text(const PlanAnswer& answer) {
  const std::string free =
      answer.free > 0 ? fmt::format(" with {} of the memory free", percent(answer.free, 0)) : "";
  std::string text = fmt::format("{} plans come out even", answer.plans);
  if (answer.too_large > 0) text += fmt::format("; {} cannot fit{}", answer.too_large, free);
  if (answer.too_slow > 0)
    text += fmt::format("; {} cannot be among these, whatever overlaps", answer.too_slow);
  text += fmt::format("; {} were replayed", answer.replayed);
  if (answer.failed > 0) text += fmt::format(", of which {} do not fit", answer.failed);
  if (answer.tight > 0)
    text +=
        fmt::format("{}{} leave less", answer.failed > 0 ? " and " : ", of which ", answer.tight);
  return text + ".";
}

// Says what a search that was cut short has left open, and how much better that could be.
std::string open_text(const PlanSearch& search, const PlanAnswer& answer) {
  const OpenPlans& open = answer.open;
  std::string draws =
      !answer.best.empty() && answer.draws < search.samples
          ? fmt::format("For {} of {} draws of the constants there was time and memory.",
                        answer.draws, search.samples)
          : "";
  if (open.plans == 0) return draws;
  const std::size_t unread = open.plans - open.too_dear;
  std::string text;
  if (unread > 0)
    text = fmt::format(
        "{}: {} plans are left open",
        open.interrupted ? "Stopped" : fmt::format("Time is up after {:.0f} s", search.within),
        unread);
  if (open.too_dear > 0)
    text += fmt::format(
        "{}{} are left open because a replay of theirs takes more memory than --memory {} allows",
        text.empty() ? "" : "; ", open.too_dear, to_text(Bytes{search.memory}));
  if (!answer.best.empty()) {
    const double first = goal_of(answer.best.front().outcome, search.goal);
    text += open.least < first ? fmt::format(". None of them comes more than {} below the first",
                                             percent(1 - open.least / first))
                               : std::string(". None of them beats the first");
  }
  if (unread > 0)
    text += ". --within 0 searches to the end, -o FOLDER keeps what is known for the next time";
  return text + (draws.empty() ? "." : ". " + draws);
}

std::string wrapped(const std::string& text) {
  return wrap(text, line_width(), 0) + "\n";
}

std::string table_of_best(const PlanSpace& space, const PlanSearch& search,
                          const PlanAnswer& answer) {
  TextTable table{{" ", "plan", " step"}};
  if (answer.draws > 0) table.columns.emplace_back(" 8 of 10 draws");
  append(table.columns, {" tok/s/GPU", " memory"});
  const bool energy = search.goal == PlanGoal::energy;
  if (energy) table.columns.emplace_back(" energy");
  if (answer.draws > 0) append(table.columns, {" fits in", " first in"});
  table.columns.emplace_back("binds");
  std::size_t number = 0;
  for (const FoundPlan& found : answer.best) {
    std::vector<std::string> cells{std::to_string(++number),
                                   plan_text(space, space.plans[found.plan]),
                                   to_text(Seconds{figure(found, "step_time")})};
    if (answer.draws > 0)
      cells.push_back(fmt::format("{} to {}", to_text(Seconds{found.step_time.low}),
                                  to_text(Seconds{found.step_time.high})));
    cells.push_back(fmt::format("{:.0f}", figure(found, "tokens_per_second_per_gpu")));
    cells.push_back(to_text(Bytes{figure(found, "peak_memory")}));
    if (energy) cells.push_back(to_text(Joules{figure(found, "energy")}));
    if (answer.draws > 0) append(cells, {percent(found.fits, 0), percent(found.first, 0)});
    cells.push_back(binds(found.outcome));
    table.rows.push_back(std::move(cells));
  }
  return render(table, line_width());
}

// Names the replayed plans that need a tenth less memory than every faster one.
std::string smaller_text(const PlanSpace& space, const PlanAnswer& answer) {
  constexpr double worth_it = 0.9;
  constexpr std::size_t most = 3;
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : answer.table.rows)
    if (row.outcome.feasible) rows.push_back(&row);
  const auto time = [](const SweepRow* row) { return row->outcome.of("step_time").value_or(0); };
  std::ranges::stable_sort(rows, {}, time);
  double least = figure(answer.best.front(), "peak_memory");
  std::string text;
  std::size_t shown = 0;
  for (const SweepRow* row : rows) {
    const double bytes = row->outcome.of("peak_memory").value_or(0);
    if (time(row) < figure(answer.best.front(), "step_time") || bytes > worth_it * least) continue;
    least = bytes;
    text += fmt::format("{}{} in {}: {}", text.empty() ? "With less memory: " : "; ",
                        to_text(Bytes{bytes}), to_text(Seconds{time(row)}),
                        plan_text(space, space.plans[row->index]));
    if (++shown == most) break;
  }
  return text.empty() ? "" : text + ".";
}

// Says that plans do not follow the job where that itself says how many engines there are.
std::string engines_text(const PlanSpace& space) {
  if (!space.asked.grpo || !space.asked.grpo->engines) return "";
  const std::string_view key = "job.vllm_num_engines";
  if (!holds(space.kinds.front().settings, key, &Setting::first)) return "";
  return fmt::format(
      " Engines are as many as find room beside the learners; the job says {}, and --set {} keeps "
      "a number.",
      *space.asked.grpo->engines, key);
}

std::string nothing_text(const PlanSpace& space, const PlanAnswer& answer) {
  if (answer.open.plans > 0)
    return fmt::format("{}: of {} plans {} were replayed, and none of these fits.", job_text(space),
                       answer.plans, answer.replayed);
  std::string text = fmt::format("{}: no plan of {} fits", job_text(space), answer.plans);
  if (space.asked.grpo)
    return text +
           ": not with other learners and engines, tensors gathered one by one, learners that "
           "share "
           "a sequence, shorter packs or fused cross-entropy. Offload and other optimizers are not "
           "varied: `stepsim run` tries them.";
  if (!answer.smallest || answer.smallest_bytes <= 0) return text + ".";
  const JobPlan& plan = space.plans[*answer.smallest];
  const auto& memory = space.kinds[plan.kind].scenario.cluster.gpu.memory;
  const bool device_has_room = answer.smallest_bytes < memory.usable.value.value;
  return text + fmt::format("; the one with the least memory, {}, needs at least {} of {}{}.",
                            plan_text(space, plan), to_text(Bytes{answer.smallest_bytes}),
                            to_text(memory.usable.value),
                            device_has_room ? ", and more memory of a node than there is" : "");
}

// Writes a figure that is to be least.
std::string goal_text(PlanGoal goal, double figure) {
  switch (goal) {
    case PlanGoal::time:
      return to_text(Seconds{figure}) + " a step";
    case PlanGoal::cost:
      return to_text(Seconds{figure}) + " of GPUs a step";
    case PlanGoal::energy:
      return to_text(Joules{figure}) + " a step";
    case PlanGoal::memory:
      break;
  }
  return to_text(Bytes{figure}) + " on a GPU";
}

Records second_records(const Turning& turning) {
  return {{"won", "draws in which it is the better of the two, by the goal", turning.won},
          {"draws", "of so many", turning.draws},
          {"cause", "on which it loses most time; none with the goal memory", turning.cause},
          {"lost_s", "by it", turning.lost},
          parts_if("constant", "that moves their ratio most", turning.by,
                   [](const Mover& by) -> Records {
                     return {
                         {"name", "of the constant", by.constant.name},
                         {"ratio_at_low", "second over first with it at its low end", by.at_low},
                         {"ratio_at_high", "and at its high end", by.at_high}};
                   }),
          {"equal_at", "value of the constant at which both come to the same, SI", turning.at}};
}

Records own_records(const PlanSpace& space, const PlanSearch& search, const PlanAnswer& answer) {
  const OwnPlan& own = *answer.own;
  const bool beside = own.outcome.feasible && !answer.best.empty();
  return {
      {"plan", "in words", plan_text(space, space.plans[own.plan])},
      {"reason", "why it cannot run; empty: it can", own.outcome.reason},
      {"place", "among the best, from 1; null: behind them", own_place(answer)},
      {"step_time_s", "one optimizer step", Seconds{own.outcome.of("step_time").value_or(0)}},
      {"peak_memory_bytes", "needed on a GPU", Bytes{own.outcome.of("peak_memory").value_or(0)}},
      {"more", "by the goal, than the first",
       beside
           ? goal_of(own.outcome, search.goal) / goal_of(answer.best.front().outcome, search.goal) -
                 1
           : 0,
       Measure::error},
      {"cause", "on which it loses most time beside the first", own.cause},
      {"lost_s", "by it", own.lost}};
}

Records open_records(const PlanSearch& search, const PlanAnswer& answer) {
  const OpenPlans& each = answer.open;
  return {{"plans", "that were neither replayed nor put aside", each.plans},
          {"too_dear", "of them: a replay takes more memory than is allowed", each.too_dear},
          {"interrupted", "by a signal; else time was up", each.interrupted},
          {"least_share", "of the goal of the first: none of them comes below",
           answer.best.empty() ? 0 : each.least / goal_of(answer.best.front().outcome, search.goal),
           Measure::share}};
}

Records batch_records(const OtherBatch& each) {
  return {{"rows", "of a step", each.rows},
          {"plan", "the best one, in words", each.plan},
          {"step_time_s", "one optimizer step", Seconds{each.outcome.of("step_time").value_or(0)}},
          {"gain", "by the goal, for each row", each.gain, Measure::share}};
}

}  // namespace

std::string best_so_far_text(const PlanSpace& space, PlanGoal goal, const SoFar& so_far) {
  std::string text = fmt::format("{:.0f} s: {}, {}", so_far.seconds, goal_text(goal, so_far.goal),
                                 plan_text(space, space.plans[*so_far.plan]));
  constexpr double worth_saying = 0.999;
  if (so_far.least > 0 && so_far.least < worth_saying * so_far.goal)
    text += fmt::format("; what is left may be {} below", percent(1 - so_far.least / so_far.goal));
  return text;
}

std::string plan_answer_text(const PlanSpace& space, const PlanSearch& search,
                             const PlanAnswer& answer, const Rates& rates,
                             const std::string& taken) {
  const std::string open = open_text(search, answer);
  if (answer.best.empty())
    return wrapped(nothing_text(space, answer)) + (open.empty() ? "" : wrapped(open)) + taken;
  std::string text = wrapped(sentence(space, search, answer)) + taken + "\n" +
                     table_of_best(space, search, answer) + "\n";
  text += cost_text(rates, job_time(answer.best.front()));
  for (const std::string& said : {second_text(space, search, answer),
                                  own_text(space, search, answer), smaller_text(space, answer)})
    if (!said.empty()) text += wrapped(said);
  text += wrapped(counts_text(answer) + engines_text(space));
  if (!open.empty()) text += wrapped(open);
  if (answer.free < search.free)
    text +=
        fmt::format("None leaves {} of the memory free: a run may need more than is predicted.\n",
                    percent(search.free, 0));
  return text;
}

std::string batches_text(const PlanSpace& space, const std::vector<OtherBatch>& better) {
  std::string text;
  for (const OtherBatch& each : better)
    text += wrapped(fmt::format(
        "{} rows a step instead of {}: {:.0f} tok/s/GPU, {} more, by {} (--global-batch {}).",
        each.rows, space.batch, each.outcome.of("tokens_per_second_per_gpu").value_or(0),
        percent(each.gain), each.plan, each.rows));
  return text;
}

Records plan_answer_records(const PlanSpace& space, const PlanSearch& search,
                            const PlanAnswer& answer, const Rates& rates,
                            const std::vector<OtherBatch>& batches,
                            const std::optional<PlayedBy>& played) {
  const auto found_records = [&](const FoundPlan& found) -> Records {
    const JobPlan& plan = space.plans[found.plan];
    return {
        {"plan", "in words", plan_text(space, plan)},
        {"settings", "that make it, as KEY=VALUE",
         setting_list(settings_of(space.sweep, space.points[found.plan]))},
        {"step_time_s", "one optimizer step", Seconds{figure(found, "step_time")}},
        {"step_time_range_s", "8 of 10 draws of the constants", found.step_time, Measure::seconds},
        {"first_share", "of the draws, in which it is the best of these", found.first,
         Measure::share},
        {"tokens_per_second_per_gpu", "padding left out",
         figure(found, "tokens_per_second_per_gpu")},
        {"peak_memory_bytes", "needed on a GPU", Bytes{figure(found, "peak_memory")}},
        {"energy_j", "of a step: GPUs, hosts and the network", found.outcome.of("energy"),
         Measure::joules},
        {"gpus", "of the whole cluster", figure(found, "gpus")},
        {"least_step_time_s", "that it could not go below", found.least.time},
        {"least_memory_bytes", "that it could not go below", Bytes{found.least.bytes}},
        {"binds", "what the step waits for most", binds(found.outcome)}};
  };
  const std::optional<OpenPlans> open =
      answer.open.plans > 0 ? std::optional(answer.open) : std::nullopt;
  Records records{
      {"goal", "what is least", plan_goal_names[static_cast<std::size_t>(search.goal)]},
      {"job", "what is planned", job_text(space)},
      {"plans", "that come out even", answer.plans},
      {"cannot_fit", "of them, by their bounds", answer.too_large},
      {"cannot_be_best", "of them, by their bounds", answer.too_slow},
      {"replayed", "of them", answer.replayed},
      {"failed", "of those replayed: did not fit, or could not run", answer.failed},
      {"tight", "of those replayed: fit, and leave less memory than they have to", answer.tight},
      {"free_share", "of a GPU's memory that a plan has to leave", answer.free, Measure::share},
      {"draws", "of the constants, that each of the best has been through", answer.draws},
      parts_if("open", "what the search has left open; null: nothing", open,
               [&](const OpenPlans&) { return open_records(search, answer); }),
      {"best", "the best first", list_of(answer.best, found_records)},
      {"other_batches", "near the one asked about that are better, the best first",
       list_of(batches, batch_records)},
      parts_if("second", "what would put the second first", answer.second, second_records),
      parts_if("own", "the split that the job has; null: it is none of these plans", answer.own,
               [&](const OwnPlan&) { return own_records(space, search, answer); }),
      played_record(played)};
  if (!answer.best.empty()) records.push_back(cost_record(rates, job_time(answer.best.front())));
  return records;
}

Records plan_sample() {
  PlanSpace space;
  space.kinds.emplace_back();
  space.kinds.front().scenario.cluster.gpus_used = 1;
  space.plans.emplace_back();
  space.points.emplace_back();
  PlanAnswer answer;
  answer.best.emplace_back();
  answer.second.emplace().by.emplace();
  answer.own.emplace().outcome = impossible("");
  answer.open.plans = 1;
  return plan_answer_records(space, {}, answer, {}, std::vector<OtherBatch>(1),
                             PlayedBy{.difference = 0.0, .energy_difference = 0.0});
}

}  // namespace stepsim
