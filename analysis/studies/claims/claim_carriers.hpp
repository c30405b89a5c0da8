// This finds, without replays, which constants weigh on the steps of a claim.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/studies/claims/claim_points.hpp"
#include "analysis/studies/explain/carriers.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

class ClaimCarriers {
 public:
  explicit ClaimCarriers(Catalogue data) : data_(std::move(data)) {}

  // Constants by what their whole range makes of a step's time, were exposed times in proportion to
  // costs; of several scenarios by how differently it moves them. The strongest first. What the
  // claim's points are under stated constants is known.
  std::vector<NamedConstant> of(const Claim& claim, ClaimPoints& points);

 private:
  const ByCause<std::vector<Carrier>>& of_scenario(const ClaimScenario& scenario);

  Catalogue data_;
  std::map<std::string, ByCause<std::vector<Carrier>>> known_;
};

}  // namespace stepsim
