#include "analysis/studies/anchor/anchoring.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "analysis/studies/predict/draws.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/releases.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

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
struct MeasuredRun {
  std::optional<double> step_time, memory;
  MemoryKind kind = MemoryKind::unsaid;
  std::optional<KernelTimes> kernels{};  // as seen_kernels() has them
  bool steps_known = false;              // of the profile
  AnchorErrors errors;
  std::vector<std::string> from;
};

double error_of(const TrainerLog& log) {
  constexpr double usual = 0.01, profiled = 0.05, first_steps = 0.15;
  if (log.profile) return profiled;  // recording costs time, and a few steps are few
  if (phase_of(log) == RunPhase::first_steps) return first_steps;
  if (!log.spread || !(log.spread->low > 0)) return usual;
  // Eight of ten lines lie within 2.56 standard deviations; the middle of many is surer than one.
  const double line = std::log(log.spread->high / log.spread->low) / 2.56;
  return std::max(usual, line / std::sqrt(std::clamp(log.done, 1.0, 100.0)));
}

std::string said_by(const std::string& name, const TrainerLog& log, const SeenRun& seen) {
  std::string text = fmt::format("{}: {}", name, log.kind);
  if (seen.step_time) text += fmt::format(", {} a step", to_text(Seconds{*seen.step_time}));
  if (log.memory) text += fmt::format(", {} of a GPU", to_text(Bytes{*log.memory}));
  if (log.profile) text += fmt::format(", {} kernels by name", log.profile->kernels.size());
  return text;
}

MeasuredRun measured_of(const AnchorQuestion& question, const Prediction& stated) {
  MeasuredRun all;
  std::vector<double> times, errors;
  for (std::size_t i = 0; i < question.logs.size(); ++i) {
    const TrainerLog& log = question.logs[i];
    const SeenRun seen = seen_run(log, stated);
    all.from.push_back(said_by(question.names[i], log, seen));
    if (seen.step_time) {
      times.push_back(*seen.step_time);
      errors.push_back(error_of(log));
    }
    if (log.memory && *log.memory > all.memory.value_or(0)) {
      all.memory = log.memory;
      all.kind = log.memory_kind;
    }
    if (!log.profile) continue;
    all.kernels = seen_kernels(*log.profile, question.data);
    all.steps_known = log.profile->steps > 0;
  }
  std::ranges::sort(times);
  if (!times.empty()) {
    all.step_time = quantile(times, 0.5);
    all.errors.measured =
        std::max(std::ranges::max(errors), std::log(times.back() / times.front()) / 2);
  }
  return all;
}

struct DrawnStep {
  StepFigures step;
  KernelTimes kernels;
};

std::vector<DrawnStep> figures_of_draws(const AnchorQuestion& question,
                                        const std::vector<Setting>& settings,
                                        const std::vector<Draw>& draws) {
  std::vector<DrawnStep> figures(draws.size());
  in_workers(
      draws.size(), std::max<std::size_t>(question.workers, 1),
      [&](std::size_t i) {
        const Scenario scenario =
            load_scenario(question.data, question.scenario, settings, draws[i]);
        return DrawnStep{step_figures(scenario, {}, Asked::everything),
                         kernel_times(step_input(scenario))};
      },
      [&](std::size_t i, const DrawnStep& each) { figures[i] = each; });
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
    const auto places =
        mapped(draws, [&](const Draw& draw) { return quantile(draw, constant.name); });
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
  std::string size = std::abs(off) < 0.005
                         ? std::string("as the catalogue has it")
                         : fmt::format("{:.0f} % {} than the catalogue", 100 * std::abs(factor - 1),
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

// What is known of each draw: its weight, and its mean gap in so many runs.
struct KnownDraws {
  double runs = 0;
  std::vector<double> weights;
  Ratios gaps;  // logarithms of predicted over measured

  double carried(const AnchorErrors& errors) const { return errors.carried(runs); }
};

KnownDraws known_before(const AnchorQuestion& question) {
  const double even = question.before ? 0 : 1.0 / question.samples;
  KnownDraws known{.runs = 0,
                   .weights = std::vector<double>(question.samples, even),
                   .gaps = Ratios(question.samples)};
  if (!question.before) return known;
  const WeightedDraws& draws = *question.before->draws;
  known.runs = draws.shared > 0 ? draws.runs : 0;
  for (const WeightedDraws::One& one : draws.draws) {
    known.weights[one.sample] = one.weight;
    if (known.runs > 0)
      known.gaps[one.sample] = (draws.centre - std::log(one.factor)) / draws.shared;
  }
  return known;
}

// `others` are distances of other figures of the run.
KnownDraws known_after(KnownDraws known, const Ratios& time, std::vector<Ratios> others,
                       const AnchorErrors& errors) {
  const double carried = known.carried(errors), scale = errors.measured_run(known.runs);
  Ratios& of_time = others.emplace_back();
  for (std::size_t i = 0; i < time.size(); ++i)
    of_time.push_back((time[i] - carried * known.gaps[i]) / scale);
  const std::vector<double> told = weights_of(others);
  for (std::size_t i = 0; i < told.size(); ++i) known.weights[i] *= told[i];
  const double sum = std::accumulate(known.weights.begin(), known.weights.end(), 0.0);
  for (double& each : known.weights) each /= sum;
  for (std::size_t i = 0; i < time.size(); ++i)
    known.gaps[i] = (known.runs * known.gaps[i] + time[i]) / (known.runs + 1);
  if (!time.empty()) known.runs += 1;
  return known;
}

// A run of one scenario, played with each draw.
struct Played {
  const AnchorQuestion& question;
  std::vector<Setting> settings;
  Scenario scenario;
  Prediction stated;
  MemoryFigures stated_memory;
  MeasuredRun measured;
  std::shared_ptr<const WeightedDraws> before;
  std::vector<Draw> draws;
  Ratios raw, time;  // logarithms of predicted over measured; `time` is centred
  KnownDraws known;

  double seen() const { return measured.step_time.value_or(stated.step_time.value); }
};

// Kinds of kernels that take a fair part of the run, each with a distance for each draw. Where a
// profile does not say how many steps it covers, shares are compared.
std::vector<Ratios> distances_of(const KernelTimes& seen, const MeasuredRun& measured,
                                 const std::vector<DrawnStep>& figures) {
  constexpr double fair = 0.05;
  std::vector<Ratios> distances;
  for (const auto part : {&KernelTimes::products, &KernelTimes::attention, &KernelTimes::other}) {
    const bool drawn =
        std::ranges::all_of(figures, [&](const DrawnStep& each) { return each.kernels.*part > 0; });
    if (seen.*part < fair * seen.all() || !drawn) continue;
    distances.push_back(mapped(figures, [&](const DrawnStep& each) {
      const double whole = measured.steps_known ? 1 : each.kernels.all();
      return std::log(each.kernels.*part / whole / (seen.*part)) / measured.errors.kernels;
    }));
  }
  return distances;
}

void play(Played& p) {
  p.before = draws_before(p.question.samples, p.question.seed);
  p.draws.clear();
  for (std::uint32_t i = 0; i < p.question.samples; ++i)
    p.draws.push_back(
        {.seed = p.question.seed, .sample = i, .of = p.question.samples, .after = p.before});
  const std::vector<DrawnStep> figures = figures_of_draws(p.question, p.settings, p.draws);
  p.raw = mapped(figures, [&](const DrawnStep& each) {
    return std::log(each.step.step_time.value / p.seen());
  });
  p.time = centred(p.raw, std::log(p.stated.step_time.value / p.seen()));
  std::vector<Ratios> others;
  if (p.measured.memory) {
    const double unit = p.stated_memory.of(p.measured.kind) / p.stated_memory.needed;
    others.push_back(mapped(figures, [&](const DrawnStep& each) {
      return std::log(each.step.memory * unit / *p.measured.memory) / p.measured.errors.memory;
    }));
  }
  if (p.measured.kernels) append(others, distances_of(*p.measured.kernels, p.measured, figures));
  p.known = known_after(known_before(p.question), p.measured.step_time ? p.time : Ratios{},
                        std::move(others), p.measured.errors);
}

// Puts the draws into order and keeps those that count.
std::vector<WeightedDraws::One> kept_draws(const KnownDraws& known, const Ratios& time,
                                           double centre, double shared) {
  std::vector<std::size_t> order(time.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return time[i] - shared * known.gaps[i]; });
  std::vector<WeightedDraws::One> kept;
  for (const std::size_t i : order)
    if (known.weights[i] >= 1e-5)
      kept.push_back({static_cast<std::uint32_t>(i), known.weights[i],
                      std::clamp(std::exp(centre - shared * known.gaps[i]), 0.1, 10.0)});
  return kept;
}

std::string with_range(const NamedConstant& c, double value, const Range& range) {
  return fmt::format("{} ({} to {})", value_text(c, value), value_text(c, range.low),
                     value_text(c, range.high));
}

std::vector<MovedConstant> moved_of(const Played& p, const std::vector<Move>& moves,
                                    const Draw& middle) {
  std::vector<MovedConstant> moved;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const NamedConstant& c = *moves[i].constant;
    const auto values = mapped(p.draws, [&](Draw draw) {
      draw.after = p.before;
      return value_in(draw, c, c.name);
    });
    const Range since{weighted_quantile(values, p.known.weights, 0.1),
                      weighted_quantile(values, p.known.weights, 0.9)};
    const double now = value_in(middle, c, c.name);
    moved.push_back({c.name, middle.after->places[i].second,
                     with_range(c, c.value, {c.low, c.high}),
                     with_range(c, now, {std::min(now, since.low), std::max(now, since.high)})});
  }
  return moved;
}

// Finds where in their ranges the constants stand that make the step as the draws say, and the
// factor that is left to what no constant explains.
Draw middle_of(const Played& p, const std::vector<Move>& moves, WeightedDraws& after) {
  const auto at = [&](double reach) -> Draw {
    return {.after = at_reach(after, moves, reach), .centre = true};
  };
  const double seen = p.seen();
  const auto near = figures_of_draws(p.question, p.settings, {at(1), at(2)});
  const double asked = seen * std::exp(weighted(p.time, p.known.weights));  // of constants alone
  const auto off = [&](Seconds step) { return std::log(step.value / asked); };
  Draw there = at(
      zero_of({off(p.stated.step_time), off(near[0].step.step_time), off(near[1].step.step_time)}));
  const double wanted =
      weighted(p.time, p.known.weights) - after.shared * weighted(p.known.gaps, p.known.weights);
  const Seconds step = figures_of_draws(p.question, p.settings, {there}).front().step.step_time;
  after.places = there.after->places;
  after.factor = std::clamp(seen * std::exp(wanted) / step.value, 0.1, 10.0);
  return there;
}

AnchoredRun anchored_run(const Played& p) {
  const AnchorErrors& errors = p.measured.errors;
  std::vector<Draw> draws = p.draws;
  for (Draw& draw : draws) draw.after.reset();  // their places are asked for by number
  const std::vector<Move> moves = moves_of(p.scenario, draws, p.time, p.known.weights);
  WeightedDraws after = *p.before;
  after.runs = p.known.runs;
  after.shared = p.known.carried(errors);
  after.centre = p.time.front() - p.raw.front();
  after.draws = kept_draws(p.known, p.time, after.centre, after.shared);
  after.entries = entries_of(p.scenario);
  after.another_run = errors.another_run(p.known.runs);
  const Draw there = middle_of(p, moves, after);

  Ratios settled = p.time;
  for (std::size_t i = 0; i < settled.size(); ++i) settled[i] -= after.shared * p.known.gaps[i];
  const double unexplained = -after.shared * weighted(p.known.gaps, p.known.weights);
  const std::vector<double> even(draws.size(), 1.0 / static_cast<double>(draws.size()));
  AnchoredRun run;
  run.step_time = p.measured.step_time;
  run.memory = p.measured.memory;
  run.stated = p.stated.step_time;
  run.stated_memory = p.measured.memory ? p.stated_memory.of(p.measured.kind) : 0;
  run.anchored = Seconds{p.seen() * std::exp(weighted(settled, p.known.weights))};
  run.before = eight_of_ten(p.time, even, p.seen());
  run.after = eight_of_ten(settled, p.known.weights, p.seen());
  run.anchor.title = p.question.title;
  if (p.question.before) run.anchor.from = p.question.before->from;
  append(run.anchor.from, p.measured.from);
  run.anchor.releases = releases_text(p.question.data, p.scenario);
  run.anchor.effective = effective_draws(p.known.weights);
  run.anchor.said = said_of(run.anchored.value / p.stated.step_time.value, moves, unexplained);
  run.anchor.moved = moved_of(p, moves, there);
  run.anchor.draws = std::make_shared<WeightedDraws>(std::move(after));
  return run;
}

void require_same(const Anchor& before, const Scenario& scenario) {
  const std::vector<std::string> foreign = foreign_to(before, scenario);
  if (foreign.empty()) return;
  std::vector<std::string> both;
  for (const auto& [scope, name] : before.draws->entries)
    for (const auto& [own, here] : entries_of(scenario))
      if (own == scope && here != name)
        both.push_back(fmt::format("{} {}, and this is {}", scope, name, here));
  throw UserError(fmt::format("--anchor: is of {}: runs of another machine or stack do not add up",
                              fmt::join(both, ", ")));
}

void require_a_figure(const MeasuredRun& measured) {
  if (measured.step_time || measured.memory || measured.kernels) return;
  throw UserError("--log: no log holds a time of a step, memory of a GPU or kernels");
}

}  // namespace

double MemoryFigures::of(MemoryKind kind) const {
  switch (kind) {
    case MemoryKind::allocated:
      return allocated;
    case MemoryKind::reserved:
      return reserved;
    case MemoryKind::device:
      return device;
    default:
      return needed;
  }
}

// The allocator follows the host, so what it holds is of the program's order.
MemoryFigures memory_figures(const Scenario& scenario, Footprint memory) {
  memory.reserved = reserved_in_order(scenario, memory);
  return {memory.device.peak.bytes, memory.reserved, memory.shown(), memory.needed()};
}

std::optional<KernelTimes> seen_kernels(const KernelProfile& profile, const Catalogue& data) {
  const ProfiledTimes times = times_of(profile, data);
  const double whole = profile.steps > 0 ? 1 : times.computing();
  if (!(times.computing() > 0)) return std::nullopt;
  return KernelTimes{times.products / whole, times.attention / whole, times.other / whole};
}

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

AnchoredRun anchor_run(const AnchorQuestion& asked) {
  constexpr double few_draws = 8;
  constexpr std::uint32_t more = 4;
  constexpr std::size_t quick = 200'000;  // operations of a step
  AnchorQuestion question = asked;
  std::vector<Setting> settings(question.settings.begin(), question.settings.end());
  settings.emplace_back(no_anchor_setting, "true");
  const Scenario scenario = load_scenario(question.data, question.scenario, settings);
  if (scenario.grpo)
    throw UserError(fmt::format(
        "{}: a GRPO step is made of engines and learners, and its log of one time says of neither: "
        "anchor on a run of the learners alone",
        question.scenario));
  if (question.before) {
    require_same(*question.before, scenario);
    question.samples = question.before->draws->of;
    question.seed = question.before->draws->seed;
  }
  const Prediction stated = predict(scenario, Kept::figures);
  MeasuredRun measured = measured_of(question, stated);
  require_a_figure(measured);
  Played played{.question = question,
                .settings = std::move(settings),
                .scenario = scenario,
                .stated = stated,
                .stated_memory = memory_figures(scenario, stated.memory),
                .measured = std::move(measured),
                .before = {},
                .draws = {},
                .raw = {},
                .time = {},
                .known = {}};
  play(played);
  if (effective_draws(played.known.weights) < few_draws && !question.before &&
      played.stated.operations <= quick) {
    question.samples *= more;
    play(played);
  }
  return anchored_run(played);
}

}  // namespace stepsim
