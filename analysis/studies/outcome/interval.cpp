#include "analysis/studies/outcome/interval.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// This many constants are put at both ends to find the strongest.
constexpr std::size_t most_suspects = 12;

struct Figures {
  double step_time = 0, throughput = 0, memory = 0, wall = 0, energy = 0, job_energy = 0;
};

struct Point {
  std::vector<Setting> settings;
  MaybeDraw draw;
};

// Returns a time of 0 where engines or learners cannot start with these constants.
Figures figures_of(const Scenario& scenario, const GrpoPrediction& p) {
  return {.step_time = p.ran ? p.step_time.value : 0,
          .throughput = p.trained_per_second / static_cast<double>(scenario.cluster.ranks()),
          .memory = p.memory.learner.most(),
          .wall = p.wall.value,
          .energy = 0,
          .job_energy = 0};
}

Figures figures_of(const StepFigures& p) {
  return {p.step_time.value, p.tokens_per_second_per_gpu, p.memory, p.wall.value,
          p.energy.value,    p.job_energy.value};
}

Figures figures_at(const IntervalQuestion& question, const Point& point, Asked asked) {
  const Scenario scenario =
      load_scenario(question.data, question.scenario, point.settings, point.draw);
  if (scenario.grpo) return figures_of(scenario, predict_grpo(scenario, {.free = question.free}));
  return figures_of(step_figures(scenario, question.free, asked));
}

std::vector<Figures> ask(const IntervalQuestion& question, const std::vector<Point>& points,
                         Asked asked) {
  std::vector<Figures> answers(points.size());
  in_workers(
      points.size(), std::max<std::size_t>(question.workers, 1),
      [&](std::size_t i) { return figures_at(question, points[i], asked); },
      [&](std::size_t i, const Figures& each) { answers[i] = each; });
  return answers;
}

std::vector<double> column(const std::vector<Figures>& figures, double Figures::*member) {
  return mapped(figures, [&](const Figures& each) { return each.*member; });
}

// The most telling of what goes with the step time and with the whole job, and what the scenario
// itself does not know.
std::vector<NamedConstant> suspects(const std::vector<NamedConstant>& uncertain,
                                    const std::vector<Figures>& figures,
                                    const std::vector<Draw>& draws) {
  std::vector<NamedConstant> found =
      telling_constants(uncertain, column(figures, &Figures::step_time), draws, most_suspects);
  add_uncertain(found, telling_constants(uncertain, column(figures, &Figures::wall), draws,
                                         most_suspects / 2));
  std::vector<NamedConstant> own = uncertain;
  std::erase_if(own, [](const NamedConstant& each) { return !each.name.starts_with("scenario."); });
  add_uncertain(found, own);
  return found;
}

// One end of a suspect's range.
struct End {
  std::size_t suspect = 0;
  bool high = false;
};

bool moves(double figure, double stated) {
  return std::abs(figure - stated) > moves_little * std::abs(stated);
}

// Each suspect at both ends of its range; where the further one moves next to nothing, the other
// one is taken to move nothing.
class EndFigures {
 public:
  EndFigures(const IntervalQuestion& question, const std::vector<Setting>& settings,
             const std::vector<NamedConstant>& suspects, const Figures& stated)
      : question_(question),
        settings_(settings),
        suspects_(suspects),
        low_(suspects.size(), stated),
        high_(suspects.size(), stated) {
    std::vector<End> first, others;
    for (std::size_t i = 0; i < suspects.size(); ++i)
      first.push_back({i, is_high_further(suspects[i])});
    ask_at(first);
    for (const End& end : first)
      if (const Figures& seen = of(end);
          moves(seen.step_time, stated.step_time) || moves(seen.wall, stated.wall))
        others.push_back({end.suspect, !end.high});
    ask_at(others);
  }

  const Figures& low(std::size_t suspect) const { return low_[suspect]; }
  const Figures& high(std::size_t suspect) const { return high_[suspect]; }

 private:
  Figures& of(const End& end) { return (end.high ? high_ : low_)[end.suspect]; }

  void ask_at(const std::vector<End>& ends) {
    std::vector<Point> points;
    for (const End& end : ends) {
      const NamedConstant& suspect = suspects_[end.suspect];
      points.push_back({settings_, {}});
      points.back().settings.push_back(setting_of(suspect, end.high ? suspect.high : suspect.low));
    }
    const std::vector<Figures> figures = ask(question_, points, Asked::times);
    for (std::size_t i = 0; i < ends.size(); ++i) of(ends[i]) = figures[i];
  }

  const IntervalQuestion& question_;
  const std::vector<Setting>& settings_;
  const std::vector<NamedConstant>& suspects_;
  std::vector<Figures> low_, high_;  // [suspect]
};

void add_movers(const IntervalQuestion& question, const std::vector<Setting>& settings,
                const std::vector<NamedConstant>& suspects, const Figures& stated,
                Interval& interval) {
  const EndFigures ends(question, settings, suspects, stated);
  std::vector<Mover> of_step, of_job;
  for (std::size_t i = 0; i < suspects.size(); ++i) {
    const Figures &low = ends.low(i), &high = ends.high(i);
    of_step.push_back({suspects[i], low.step_time, high.step_time});
    // A constant that only makes steps longer moves the whole job as much, and is said already.
    const double per_step = stated.wall / stated.step_time;
    of_job.push_back({suspects[i], low.wall - per_step * (low.step_time - stated.step_time),
                      high.wall - per_step * (high.step_time - stated.step_time)});
  }
  interval.movers = strongest(std::move(of_step), stated.step_time, question.movers);
  if (stated.wall > 0)
    interval.wall_movers = strongest(std::move(of_job), stated.wall, question.movers);
}

void drop_those_that_cannot_run(std::vector<Figures>& figures, std::vector<Draw>& draws) {
  for (std::size_t i = figures.size(); i-- > 0;) {
    if (figures[i].step_time > 0) continue;
    figures.erase(figures.begin() + static_cast<std::ptrdiff_t>(i));
    draws.erase(draws.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (draws.empty()) throw UserError("--samples: no draw of the constants can run");
}

}  // namespace

StepFigures stated_figures(const Prediction& prediction) {
  return {.step_time = prediction.step_time,
          .tokens_per_second_per_gpu = prediction.tokens_per_second_per_gpu,
          .memory = prediction.memory.needed(),
          .wall = prediction.wall,
          .energy = {prediction.energy ? prediction.energy->total() : 0},
          .job_energy = prediction.job_energy};
}

Interval interval_of(const IntervalQuestion& question) {
  const std::vector<Setting> settings(question.settings.begin(), question.settings.end());
  std::vector<Point> points;
  if (!question.stated) points.push_back({settings, {}});
  std::vector<Draw> draws;
  for (std::uint32_t sample = 0; sample < question.samples; ++sample) {
    draws.push_back({.seed = question.seed, .sample = sample, .of = question.samples});
    points.push_back({settings, draws.back()});
  }
  std::vector<Figures> figures = ask(question, points, Asked::everything);
  if (question.stated) figures.insert(figures.begin(), figures_of(*question.stated));
  const Figures stated = figures.front();
  figures.erase(figures.begin());
  drop_those_that_cannot_run(figures, draws);
  Interval interval{
      .step_time = range_of(column(figures, &Figures::step_time), stated.step_time),
      .throughput = range_of(column(figures, &Figures::throughput), stated.throughput),
      .memory = range_of(column(figures, &Figures::memory), stated.memory),
      .wall = range_of(column(figures, &Figures::wall), stated.wall),
      .energy = range_of(column(figures, &Figures::energy), stated.energy),
      .job_energy = range_of(column(figures, &Figures::job_energy), stated.job_energy),
      .samples = static_cast<std::uint32_t>(draws.size()),
      .step_times = column(figures, &Figures::step_time),
      .throughputs = column(figures, &Figures::throughput),
      .movers = {},
      .wall_movers = {}};
  if (question.movers == 0) return interval;
  std::vector<NamedConstant> uncertain;
  add_uncertain(uncertain, load_scenario(question.data, question.scenario, settings).constants);
  std::erase_if(uncertain, is_power);
  add_movers(question, settings, suspects(uncertain, figures, draws), stated, interval);
  return interval;
}

}  // namespace stepsim
