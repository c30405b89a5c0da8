// Models that are known and not modelled, by their names: encoders, T5, diffusion.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

class Catalogue;

// Returns "an encoder, and encoders are not modelled; ..."; empty: the name is of none of these.
std::string why_not_modelled(const Catalogue& data, std::string_view name);

}  // namespace stepsim
