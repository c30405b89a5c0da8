#include "analysis/studies/explain/explain_draws.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/studies/explain/explained_side.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Constants that carry the gap, and others that go with it over the draws: so many of each are put
// at both ends of their ranges.
constexpr std::size_t most_telling_of_two = 2, most_movers_of_two = 5;

// A pair is both sides under one draw.
struct Pair {
  DrawnFigures a, b;

  double gap() const { return (a.step_time - b.step_time).value; }
  double row(const ExplainRow& row) const {
    if (!row.cause) return (a.idle - b.idle).value;
    return (a.exposed[index(*row.cause)] - b.exposed[index(*row.cause)]).value;
  }
};

class Drawing {
 public:
  Drawing(const NamedStep& a, const NamedStep& b, const Explanation& stated,
          const ExplainOptions& options)
      : a_(a), b_(b), time_a_(stated.a.step_time), time_b_(stated.b.step_time), options_(options) {}

  // Plays both sides under the draws with these numbers.
  std::vector<Pair> play(std::uint32_t from, std::uint32_t to) const {
    Tasks<DrawnFigures> tasks;
    for (std::uint32_t number = from; number < to; ++number)
      for (const NamedStep* side : {&a_, &b_})
        tasks.emplace_back([this, side, number] {
          const Draw draw = draw_number(number, options_.replays.seed);
          return draw_figures({side->label, side->source, side->settings,
                               load_scenario(options_.data, side->source, side->settings, draw)});
        });
    const std::vector<DrawnFigures> answers =
        in_workers(tasks, options_.replays.workers, options_.replays.progress);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < answers.size(); i += 2)
      pairs.push_back({answers[i], answers[i + 1]});
    return pairs;
  }

  // The gap with each constant at its ends.
  std::vector<Mover> at_ends(const std::vector<NamedConstant>& constants) const {
    Tasks<Seconds> tasks;
    for (const NamedConstant& constant : constants)
      for (const RangeEnd end : {RangeEnd::low, RangeEnd::high})
        for (const auto& [side, time] : {std::pair{&a_, time_a_}, std::pair{&b_, time_b_}})
          if (const auto own = setting_at(side->scenario.constants, constant.name, end))
            tasks.emplace_back([this, side, own = *own] {
              std::vector<Setting> settings = side->settings;
              settings.push_back(own);
              return step_time_of(load_scenario(options_.data, side->source, settings));
            });
          else
            tasks.emplace_back([time] { return time; });
    const std::vector<Seconds> times = in_workers(tasks, options_.replays.workers);
    std::vector<Mover> movers;
    for (std::size_t i = 0; i < constants.size(); ++i)
      movers.push_back({constants[i], (times[4 * i] - times[4 * i + 1]).value,
                        (times[4 * i + 2] - times[4 * i + 3]).value});
    return movers;
  }

 private:
  const NamedStep& a_;
  const NamedStep& b_;
  Seconds time_a_, time_b_;
  const ExplainOptions& options_;
};

bool same_top(const Explanation& e, const Pair& drawn) {
  if (e.rows.empty()) return true;
  const double sign = drawn.gap() < 0 ? -1 : 1;  // some draws turn the gap round
  const double top = sign * drawn.row(e.rows.front());
  return std::none_of(e.rows.begin() + 1, e.rows.end(),
                      [&](const ExplainRow& row) { return sign * drawn.row(row) > top; });
}

void count(Explanation& e, const std::vector<Pair>& pairs) {
  GapDraws& draws = *e.draws;
  draws.draws = static_cast<std::uint32_t>(pairs.size());
  draws.a_slower = static_cast<std::uint32_t>(
      std::ranges::count_if(pairs, [](const Pair& pair) { return pair.gap() > 0; }));
  draws.b_slower = static_cast<std::uint32_t>(
      std::ranges::count_if(pairs, [](const Pair& pair) { return pair.gap() < 0; }));
  draws.same_top = static_cast<std::uint32_t>(
      std::ranges::count_if(pairs, [&](const Pair& pair) { return same_top(e, pair); }));
}

template <class Reading>
Range range_over(const std::vector<Pair>& pairs, double stated, const Reading& reading) {
  std::vector<double> values = mapped(pairs, [&](const Pair& pair) { return reading(pair); });
  return range_of(std::move(values), stated);
}

SideRanges side_ranges(const std::vector<Pair>& pairs, const ExplainedSide& side,
                       DrawnFigures Pair::*which) {
  return {range_over(pairs, side.step_time.value,
                     [&](const Pair& pair) { return (pair.*which).step_time.value; }),
          range_over(pairs, side.tokens_per_second_per_gpu,
                     [&](const Pair& pair) { return (pair.*which).tokens_per_second_per_gpu; }),
          range_over(pairs, side.needed, [&](const Pair& pair) { return (pair.*which).needed; })};
}

struct DrawnGaps {
  std::vector<double> gaps;
  std::vector<Draw> draws;
};

// Returns the constants that may move the gap: first by what their causes' exposed times make of
// them, were costs in proportion; then by how they go with the gap over the draws; and what a
// scenario itself does not know.
std::vector<NamedConstant> suspects(const Explanation& e, const NamedStep& a, const NamedStep& b,
                                    const ByCause<std::vector<Carrier>>& of_a,
                                    const ByCause<std::vector<Carrier>>& of_b,
                                    const DrawnGaps& drawn) {
  std::map<std::string, double> moves;
  std::vector<NamedConstant> all;
  add_uncertain(all, a.scenario.constants);
  add_uncertain(all, b.scenario.constants);
  std::erase_if(all, is_power);
  const auto add = [&](const ExplainedSide& side, const ByCause<std::vector<Carrier>>& carriers,
                       double sign) {
    for (std::size_t cause = 0; cause < cause_count; ++cause)
      for (const Carrier& each : carriers[cause])
        if (each.constant.value != 0)
          moves[each.constant.name] += sign * side.causes[cause].exposed.value * each.weight *
                                       (each.constant.high - each.constant.low) /
                                       each.constant.value;
  };
  add(e.a, of_a, 1);
  add(e.b, of_b, -1);
  for (const NamedConstant& each : all)
    if (each.name == carries_everything)
      moves[each.name] = e.gap().value * (each.high - each.low) / each.value;
  std::vector<NamedConstant> carrying = all;
  std::ranges::stable_sort(carrying, [&](const NamedConstant& x, const NamedConstant& y) {
    return std::abs(moves[x.name]) > std::abs(moves[y.name]);
  });
  carrying.resize(std::min(most_carrying, carrying.size()));
  for (const NamedConstant& each :
       telling_constants(all, drawn.gaps, drawn.draws, most_telling_of_two))
    if (!has_constant(carrying, each.name)) carrying.push_back(each);
  std::erase_if(all, [](const NamedConstant& each) { return !each.name.starts_with("scenario."); });
  add_uncertain(carrying, all);
  return carrying;
}

}  // namespace

void add_draws(Explanation& e, const NamedStep& a, const NamedStep& b,
               const ExplainOptions& options, const ByCause<std::vector<Carrier>>& of_a,
               const ByCause<std::vector<Carrier>>& of_b) {
  const std::uint32_t most =
      options.most_draws ? *options.most_draws : usual_draws(e, a.scenario, b.scenario);
  if (most == 0) return;
  e.draws = GapDraws{.most = most};
  const Drawing drawing(a, b, e, options);
  std::vector<Pair> pairs;
  while (e.draws->draws < most) {
    const std::uint32_t next = std::min(e.draws->draws + draws_at_once, most);
    for (const Pair& pair : drawing.play(e.draws->draws, next)) pairs.push_back(pair);
    count(e, pairs);
    if (!may_change(e.draws->a_slower, e.draws->draws) &&
        !may_change(e.draws->same_top, e.draws->draws))
      break;
  }
  std::vector<double> gaps;
  std::vector<Draw> draws;
  for (const Pair& pair : pairs) {
    draws.push_back(draw_number(static_cast<std::uint32_t>(gaps.size()), options.replays.seed));
    gaps.push_back(pair.gap());
  }
  e.draws->gap = range_of(gaps, e.gap().value);
  e.draws->a = side_ranges(pairs, e.a, &Pair::a);
  e.draws->b = side_ranges(pairs, e.b, &Pair::b);
  for (ExplainRow& row : e.rows)
    row.range =
        range_over(pairs, row.seconds.value, [&](const Pair& pair) { return pair.row(row); });
  if (options.carriers)
    e.draws->movers = strongest(drawing.at_ends(suspects(e, a, b, of_a, of_b, {gaps, draws})),
                                e.gap().value, most_movers_of_two);
}

}  // namespace stepsim
