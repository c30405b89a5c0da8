#include "analysis/studies/anchor/anchoring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "analysis/studies/predict/draws.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

// A progress bar counts optimizer steps with most trainers, and micro-batches in a bare loop: its
// length tells.
bool counts_micro_batches(const TrainerLog& log, const Prediction& p) {
  if (!log.total || !p.length || p.length->iterations == p.length->optimizer_steps) return false;
  const auto off = [&](double count) { return std::abs(std::log(*log.total / count)); };
  return off(p.length->iterations) < off(p.length->optimizer_steps);
}

// What the logs say together: the middle of their times, the most of their memory.
struct Measured {
  std::optional<double> step_time, memory;
  MemoryKind kind = MemoryKind::unsaid;
  AnchorErrors errors;
  std::vector<std::string> from;
};

double error_of(const TrainerLog& log) {
  constexpr double usual = 0.01, first_steps = 0.15;
  if (phase_of(log) == RunPhase::first_steps) return first_steps;
  if (!log.spread || !(log.spread->low > 0)) return usual;
  // Eight of ten lines lie within 2.56 standard deviations; the middle of many is surer than one.
  const double line = std::log(log.spread->high / log.spread->low) / 2.56;
  return std::max(usual, line / std::sqrt(std::clamp(log.done, 1.0, 100.0)));
}

std::string said_by(const TrainerLog& log, const SeenRun& seen) {
  std::string text = log.kind;
  if (seen.step_time) text += fmt::format(", {} a step", to_text(Seconds{*seen.step_time}));
  if (log.memory) text += fmt::format(", {} of a GPU", to_text(Bytes{*log.memory}));
  return text;
}

Measured measured_of(const AnchorQuestion& question, const Prediction& stated) {
  Measured all;
  std::vector<double> times, errors;
  for (const TrainerLog& log : question.logs) {
    const SeenRun seen = seen_run(log, stated);
    all.from.push_back(said_by(log, seen));
    if (seen.step_time) {
      times.push_back(*seen.step_time);
      errors.push_back(error_of(log));
    }
    if (log.memory && *log.memory > all.memory.value_or(0)) {
      all.memory = log.memory;
      all.kind = log.memory_kind;
    }
  }
  std::ranges::sort(times);
  if (!times.empty()) {
    all.step_time = quantile(times, 0.5);
    all.errors.measured =
        std::max(std::ranges::max(errors), std::log(times.back() / times.front()) / 2);
  }
  return all;
}

double as_counted(const Footprint& memory, MemoryKind kind) {
  if (kind == MemoryKind::allocated) return memory.device.peak.bytes;
  return kind == MemoryKind::device ? memory.shown() : memory.needed();
}

struct Drawn {
  Ratios time, memory;  // logarithms of predicted over measured
};

std::vector<StepFigures> figures_of_draws(const AnchorQuestion& question,
                                          const std::vector<Setting>& settings,
                                          const std::vector<Draw>& draws) {
  std::vector<StepFigures> figures(draws.size());
  in_workers(
      draws.size(), std::max<std::size_t>(question.workers, 1),
      [&](std::size_t i) {
        const Scenario scenario =
            load_scenario(question.data, question.scenario, settings, draws[i]);
        return step_figures(scenario, {}, Asked::everything);
      },
      [&](std::size_t i, const StepFigures& each) { figures[i] = each; });
  return figures;
}

double weighted(std::span<const double> values, std::span<const double> weights) {
  return std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
}

// What a constant did to the step when it moved: by how much, and how far it moved itself.
struct Move {
  const NamedConstant* constant = nullptr;
  double place = 0.5;
  double effect = 0;  // on the logarithm of the time
};

// Least squares over all draws say what a constant does to the time.
double effect_of(std::span<const double> places, std::span<const double> time, double shift) {
  const double n = static_cast<double>(places.size());
  const double mean_place = std::accumulate(places.begin(), places.end(), 0.0) / n;
  const double mean_time = std::accumulate(time.begin(), time.end(), 0.0) / n;
  double both = 0, square = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    both += (places[i] - mean_place) * (time[i] - mean_time);
    square += (places[i] - mean_place) * (places[i] - mean_place);
  }
  return square > 0 ? both / square * shift : 0;
}

// Returns the constants that moved by more than the luck of so many draws.
std::vector<Move> moves_of(const Scenario& stated, const std::vector<Draw>& draws,
                           std::span<const double> time, std::span<const double> weights) {
  constexpr double luck = 1.5;  // standard deviations
  std::vector<Move> moves;
  const double least = luck * std::sqrt(1.0 / 12 / effective_draws(weights));
  for (const NamedConstant& constant : stated.constants) {
    if (!(constant.low < constant.high) || !constant.words.empty() || is_power(constant)) continue;
    std::vector<double> places;
    for (const Draw& draw : draws) places.push_back(quantile(draw, constant.name));
    const double place = weighted(places, weights);
    if (std::abs(place - 0.5) < least) continue;
    moves.push_back({&constant, place, effect_of(places, time, place - 0.5)});
  }
  std::ranges::stable_sort(
      moves, [](const Move& a, const Move& b) { return std::abs(a.effect) > std::abs(b.effect); });
  return moves;
}

std::string_view plain_name(std::string_view constant) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> names{{
      {"node.host", "the host"},
      {"stack.host", "the host"},
      {"stack.unexplained", "what no constant explains"},
      {"gpu.gemm", "matrix products"},
      {"gpu.memory", "the GPU's memory"},
      {"gpu.attention", "attention"},
      {"attention", "attention"},
      {"network", "the network"},
      {"node.links", "links in a node"},
      {"operators", "small kernels"},
      {"experts", "experts"},
      {"scenario", "settings that are not known"},
  }};
  for (const auto& [begin, name] : names)
    if (constant.starts_with(begin)) return name;
  return constant;
}

std::string said_of(double factor, const std::vector<Move>& moves, double unexplained) {
  const double off = std::log(factor);
  const std::string size = std::abs(off) < 0.005 ? std::string("as the catalogue has it")
                                                 : fmt::format("{:.0f} % {} than the catalogue",
                                                               100 * std::abs(factor - 1),
                                                               off > 0 ? "slower" : "faster");
  if (std::abs(off) < 0.02) return size;
  std::string_view most = plain_name("stack.unexplained");
  double strongest = unexplained / off;
  for (const Move& move : moves)
    if (move.effect / off > strongest) {
      strongest = move.effect / off;
      most = plain_name(move.constant->name);
    }
  return fmt::format("{}, {} {}", size, strongest > 0.5 ? "mostly" : "first of all", most);
}

// Puts the draws into order and keeps those that count.
std::vector<WeightedDraws::One> kept_draws(std::span<const double> time,
                                           std::span<const double> weights, double off,
                                           double carried) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return (1 - carried) * time[i]; });
  std::vector<WeightedDraws::One> kept;
  for (const std::size_t i : order)
    if (weights[i] >= 1e-5)
      kept.push_back({static_cast<std::uint32_t>(i), weights[i],
                      std::clamp(std::exp(off - carried * time[i]), 0.1, 10.0)});
  return kept;
}

Range eight_of_ten(std::span<const double> values, std::span<const double> weights, double unit) {
  return {unit * std::exp(weighted_quantile(values, weights, 0.1)),
          unit * std::exp(weighted_quantile(values, weights, 0.9))};
}

// Constants move together, the further the nearer the step comes to what the draws say.
std::shared_ptr<const WeightedDraws> at_reach(const WeightedDraws& draws,
                                              const std::vector<Move>& moves, double reach) {
  auto moved = std::make_shared<WeightedDraws>(draws);
  moved->places.clear();
  for (const Move& move : moves)
    moved->places.emplace_back(move.constant->name,
                               std::clamp(0.5 + reach * (move.place - 0.5), 0.02, 0.98));
  return moved;
}

// Returns where a line through these three, at 0, 1 and 2, is zero; the end that is nearer to zero
// where it is nowhere.
double zero_of(const std::array<double, 3>& values) {
  for (std::size_t i = 0; i + 1 < values.size(); ++i)
    if (values[i] * values[i + 1] < 0)
      return static_cast<double>(i) + values[i] / (values[i] - values[i + 1]);
  const auto* least =
      std::ranges::min_element(values, {}, [](double value) { return std::abs(value); });
  return static_cast<double>(least - values.begin());
}

std::vector<MovedConstant> moved_of(const std::vector<Move>& moves, const Draw& middle) {
  std::vector<MovedConstant> moved;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const NamedConstant& c = *moves[i].constant;
    moved.push_back({c.name, middle.after->places[i].second, value_text(c, c.value),
                     value_text(c, value_in(middle, c, c.name))});
  }
  return moved;
}

void require_a_figure(const Measured& measured) {
  if (measured.step_time || measured.memory) return;
  throw UserError("--log: no log holds a time of a step or memory of a GPU");
}

}  // namespace

SeenRun seen_run(const TrainerLog& log, const Prediction& p) {
  SeenRun seen;
  seen.micro_batches = counts_micro_batches(log, p);
  if (seen.micro_batches && p.iterations_per_second > 0)
    seen.parts = p.step_time.value * p.iterations_per_second;
  if (log.seconds_per_step)
    seen.step_time = *log.seconds_per_step * seen.parts;
  else if (log.tokens_per_second_per_gpu)
    seen.step_time =
        p.step_time.value * p.tokens_per_second_per_gpu / *log.tokens_per_second_per_gpu;
  return seen;
}

AnchoredRun anchor_run(const AnchorQuestion& question) {
  std::vector<Setting> settings(question.settings.begin(), question.settings.end());
  settings.emplace_back(no_anchor_setting, "true");
  const Scenario scenario = load_scenario(question.data, question.scenario, settings);
  if (scenario.grpo)
    throw UserError(fmt::format(
        "{}: a GRPO step is made of engines and learners, and its log of one time says of neither: "
        "anchor on a run of the learners alone",
        question.scenario));
  const Prediction stated = predict(scenario, Kept::figures);
  const Measured measured = measured_of(question, stated);
  require_a_figure(measured);

  const auto before = draws_before(question.samples, question.seed);
  std::vector<Draw> draws;
  for (std::uint32_t i = 0; i < question.samples; ++i)
    draws.push_back({.seed = question.seed, .sample = i, .of = question.samples, .after = before});
  const std::vector<StepFigures> figures = figures_of_draws(question, settings, draws);

  const double seen = measured.step_time.value_or(stated.step_time.value);
  const double stated_log = std::log(stated.step_time.value / seen);
  const Ratios raw = mapped(
      figures, [&](const StepFigures& each) { return std::log(each.step_time.value / seen); });
  const Ratios time = centred(raw, stated_log);
  Ratios memory;
  if (measured.memory) {
    const double as_said = as_counted(stated.memory, measured.kind) / stated.memory.needed();
    memory = mapped(figures, [&](const StepFigures& each) {
      return std::log(each.memory * as_said / *measured.memory);
    });
  }
  const std::vector<double> weights =
      weights_of(measured.step_time ? std::span<const double>(time) : std::span<const double>(),
                 memory, measured.errors);
  const double carried = measured.step_time ? measured.errors.carried() : 0;
  const std::vector<double> even(draws.size(), 1.0 / static_cast<double>(draws.size()));

  for (Draw& draw : draws) draw.after.reset();  // their places are asked for by number
  const std::vector<Move> moves = moves_of(scenario, draws, time, weights);
  auto after = std::make_shared<WeightedDraws>(*before);
  after->draws = kept_draws(time, weights, time.front() - raw.front(), carried);
  after->entries = entries_of(scenario);
  after->another_run = measured.step_time ? measured.errors.another_run() : 0;
  const auto middle_at = [&](double reach) -> Draw {
    return {.after = at_reach(*after, moves, reach), .centre = true};
  };
  const auto near = figures_of_draws(question, settings, {middle_at(1), middle_at(2)});
  const double asked = seen * std::exp(weighted(time, weights));  // of constants alone
  const auto off = [&](Seconds step) { return std::log(step.value / asked); };
  const Draw there =
      middle_at(zero_of({off(stated.step_time), off(near[0].step_time), off(near[1].step_time)}));
  const double wanted = (1 - carried) * weighted(time, weights);
  after->places = there.after->places;
  after->factor =
      std::clamp(seen * std::exp(wanted) /
                     figures_of_draws(question, settings, {there}).front().step_time.value,
                 0.1, 10.0);

  AnchoredRun run;
  run.step_time = measured.step_time;
  run.memory = measured.memory;
  run.stated = stated.step_time;
  run.stated_memory = measured.memory ? as_counted(stated.memory, measured.kind) : 0;
  run.anchored = Seconds{seen * std::exp(wanted)};
  run.before = eight_of_ten(time, even, seen);
  Ratios settled = time;
  for (double& each : settled) each *= 1 - carried;
  run.after = eight_of_ten(settled, weights, seen);
  run.anchor.title = question.title;
  run.anchor.from = measured.from;
  run.anchor.effective = effective_draws(weights);
  run.anchor.said = said_of(run.anchored.value / stated.step_time.value, moves,
                            -carried * weighted(time, weights));
  run.anchor.moved = moved_of(moves, there);
  run.anchor.draws = std::move(after);
  return run;
}

}  // namespace stepsim
