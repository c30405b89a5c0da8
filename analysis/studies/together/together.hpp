// Two jobs that run at once on one fabric: what each loses to the other.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/engine/player.hpp"

namespace stepsim {

struct JobBeside {
  Seconds alone;              // a step
  Seconds beside;             // a step while the other job runs, mean
  Seconds shortest, longest;  // of these
  std::size_t steps = 0;      // so many
  double loses() const { return beside.value / alone.value - 1; }
};

struct SharedLink {
  std::string name;
  double busy = 0;  // share of the time
};

struct JobsTogether {
  std::array<JobBeside, 2> jobs;
  std::vector<SharedLink> links;  // that flows of both cross, the busiest first
  PlayedBy by{};
};

// Plays steps of both, one after the other for each job, until each has had several while the other
// ran. Both begin at once. Throws UserError where they are no jobs of steps, not on one network, or
// on the same nodes.
JobsTogether play_together(const Scenario& a, const Scenario& b, const Player& player);

}  // namespace stepsim
