#include "analysis/studies/together/together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/budget.hpp"
#include "sim/side_by_side.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {
namespace {

// The longer job has so many steps, and the other one as many as take a little longer than those.
constexpr double steps_of_longer = 3, longer_than_these = 1.3;

// Nodes are a job's own; what lies between them is not. Links of a node are called "node3.".
bool is_between_nodes(const Link& link) {
  return !link.name.starts_with("node");
}

void require_apart(const Scenario& a, const Scenario& b) {
  for (const Scenario* each : {&a, &b}) {
    if (each->grpo)
      throw UserError(
          fmt::format("{} is a GRPO job: jobs of optimizer steps are played together", each->name));
    if (!each->cluster.network || each->cluster.nodes == 1)
      throw UserError(fmt::format("{} is on one node: it shares no network", each->name));
  }
  if (a.cluster.network->name != b.cluster.network->name)
    throw UserError(fmt::format("{} is on {}, and {} on {}: --cluster says one machine for both",
                                a.name, a.cluster.network->name, b.name, b.cluster.network->name));
  for (std::uint32_t i = 0; i < a.cluster.nodes; ++i)
    for (std::uint32_t k = 0; k < b.cluster.nodes; ++k)
      if (a.cluster.place(i) == b.cluster.place(k))
        throw UserError(
            fmt::format("both jobs are on node {} of the machine: say which nodes are "
                        "whose, such as --placement 0-3/4-7",
                        a.cluster.place(i)));
}

StepProgram whole_program(const Scenario& scenario) {
  const RankPart rank = rank_part(step_input(scenario));
  StepProgram program = prepare_step(rank, Folding::off);
  write_step(program, rank, Written::figures);
  return program;
}

std::uint32_t times_of(Seconds alone, Seconds longer) {
  return static_cast<std::uint32_t>(
      std::ceil(longer_than_these * steps_of_longer * longer.value / alone.value));
}

// Counts the steps that were done before the other job had its last.
void count_steps(JobBeside& job, const std::vector<OpId>& ends, const Trace& trace, double until) {
  double begin = 0;
  job.shortest = {std::numeric_limits<double>::infinity()};
  for (const OpId end : ends) {
    const double finish = trace.finish[index(end)];
    if (finish > until * (1 + 1e-9)) break;
    const Seconds step{finish - begin};
    job.shortest = std::min(job.shortest, step);
    job.longest = std::max(job.longest, step);
    ++job.steps;
    begin = finish;
  }
  job.beside = {begin / static_cast<double>(std::max<std::size_t>(job.steps, 1))};
}

std::vector<SharedLink> shared_links(const SideBySide& all, const Trace& trace) {
  std::vector<LinkId> both;
  std::ranges::set_intersection(all.used[0], all.used[1], std::back_inserter(both));
  std::vector<SharedLink> links = mapped(both, [&](LinkId link) {
    return SharedLink{all.platform.links[index(link)].name,
                      trace.links[index(link)].busy / trace.makespan};
  });
  std::ranges::stable_sort(links, std::greater{}, &SharedLink::busy);
  return links;
}

}  // namespace

JobsTogether play_together(const Scenario& a, const Scenario& b, const Player& player) {
  require_apart(a, b);
  const std::array programs{whole_program(a), whole_program(b)};
  JobsTogether answer;
  for (std::size_t i = 0; i < programs.size(); ++i)
    answer.jobs[i].alone =
        replay(programs[i].traffic.folded.platform, programs[i].graph, Watched::makespan).makespan;
  const Seconds longer = std::max(answer.jobs[0].alone, answer.jobs[1].alone);
  std::vector<RunAgain> again;
  double operations = 0;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    again.push_back({programs[i].traffic.folded.platform, programs[i].graph,
                     times_of(answer.jobs[i].alone, longer)});
    operations += static_cast<double>(again[i].times) * static_cast<double>(again[i].graph.size());
  }
  require_budget(operations, std::max(a.job.budget, b.job.budget),
                 "take fewer nodes or micro-batches (job.gradient_accumulation)");
  const SideBySide all = side_by_side(again, is_between_nodes);
  const Trace trace = player.play(all.platform, all.graph);
  const auto last = [&](std::size_t i) { return trace.finish[index(all.ends[i].back())]; };
  const double until = std::min(last(0), last(1));
  for (std::size_t i = 0; i < programs.size(); ++i)
    count_steps(answer.jobs[i], all.ends[i], trace, until);
  answer.links = shared_links(all, trace);
  answer.by = trace.by;
  return answer;
}

}  // namespace stepsim
