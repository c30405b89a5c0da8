// Claims as a file has them.
#pragma once

#include "analysis/studies/claims/claim.hpp"

namespace stepsim {

// Reads the claims of a file. Throws UserError with every problem of it at once: unknown metrics
// and scenarios with the nearest name, bounds that contradict each other, units that do not fit.
std::vector<Claim> read_claims(const Catalogue& data, const std::string& path);

}  // namespace stepsim
