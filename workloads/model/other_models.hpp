// Models that are known and not modelled, by their names: encoders with a decoder, speech,
// diffusion.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

class Catalogue;

// Returns "an encoder with a decoder, and these are not modelled; ..."; empty: the name is of none
// of these.
std::string why_not_modelled(const Catalogue& data, std::string_view name);

// The first line of a text that names a diffusion model or a program that trains these.
struct DiffusionNamed {
  int line = 0;
  std::string message;
};
std::optional<DiffusionNamed> diffusion_in(const Catalogue& data, std::string_view text);

}  // namespace stepsim
