// Two passes of different micro-batches on one device, in turns: while tokens of one are on their
// way to experts or back, the other one computes.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/program/run_visit.hpp"

namespace stepsim {

struct PassInTurns {
  std::size_t next = 0, end = 0;  // visits
  std::int64_t micro_batch = 0;
  bool sent = false;            // the tokens of the next visit
  std::vector<Mark> waits{};    // what its next kernels wait for
  std::optional<Mark> begun{};  // its first kernel

  bool over() const { return next >= end; }
};

// `around` has `before(pass, visit)` and `ran(pass, visit, mark)`: what goes with every visit.
template <class Around>
void go_on(StepWriter& writer, const std::vector<Visit>& visits, PassInTurns& pass,
           Around& around) {
  writer.await_again(std::exchange(pass.waits, {}));
  for (bool away = false; !away && !pass.over();) {
    const Visit& visit = visits[pass.next];
    around.before(pass, pass.next);
    if (!pass.sent && sends_before(visit)) {
      send_tokens(writer, *visit.unit);
      pass.sent = away = true;
      continue;
    }
    pass.sent = false;
    away = sends_behind(visit);
    const bool delays = away && writer.input().strategy.experts.delays_weights;
    Mark compute = run_between(writer, visit, delays ? PartOfVisit::inputs : PartOfVisit::all);
    if (!pass.begun) pass.begun = compute;
    if (delays) {
      send_tokens(writer, *visit.unit);
      pass.waits = writer.set_aside();
      compute = run_between(writer, visit, PartOfVisit::weights);
    }
    around.ran(pass, pass.next, compute);
    if (away && !delays) send_tokens(writer, *visit.unit);
    ++pass.next;
  }
  for (const Mark mark : writer.set_aside()) pass.waits.push_back(mark);
}

template <class Around>
void run_in_turns(StepWriter& writer, const std::vector<Visit>& visits,
                  std::array<PassInTurns*, 2> passes, Around around) {
  while (!passes[0]->over() || !passes[1]->over())
    for (PassInTurns* pass : passes)
      if (!pass->over()) go_on(writer, visits, *pass, around);
  for (PassInTurns* pass : passes) writer.await_again(std::exchange(pass->waits, {}));
}

}  // namespace stepsim
