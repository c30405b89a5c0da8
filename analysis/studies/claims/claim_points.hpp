// The replays that claims ask for, each done once.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/claims/claim.hpp"
#include "analysis/studies/claims/claim_metrics.hpp"
#include "scenarios/scenario.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// A point is a scenario under some settings and one draw of the constants; no draw: as stated.
struct ClaimPoint {
  std::string source;
  std::vector<Setting> settings;
  CauseSet free;
  std::optional<Draw> draw;
};

// A GRPO run that breaks a rule of its job is an answer, too: one that cannot be.
struct AllowedScenario {
  std::optional<Scenario> scenario;
  std::string rule;  // that forbids it
};
AllowedScenario allowed_scenario(const Catalogue& data, const std::string& source,
                                 std::span<const Setting> settings, const MaybeDraw& draw = {});

class ClaimPoints {
 public:
  ClaimPoints(Catalogue data, std::size_t workers, Progress progress)
      : data_(std::move(data)), workers_(workers), progress_(std::move(progress)) {}

  // Returns the point's facts; null where they are not known: the point is wanted from then on.
  const PointFacts* find(const ClaimPoint& point);
  // Replays all that are wanted.
  void ask();
  void forget_wanted() { wanted_.clear(); }

 private:
  Catalogue data_;
  std::size_t workers_;
  Progress progress_;
  std::map<std::string, PointFacts> known_;
  std::map<std::string, ClaimPoint> wanted_;
};

// Returns what a quantity comes to; nothing while replays are missing, which are wanted from then
// on.
std::optional<double> value_of(const Claim& claim, const ClaimQuantity& quantity,
                               const Condition* condition, const std::optional<Draw>& draw,
                               ClaimPoints& points);
// Returns the facts of one scenario under stated constants.
const PointFacts* facts_of(const Claim& claim, std::size_t scenario, const Condition* condition,
                           ClaimPoints& points);

}  // namespace stepsim
