// Cards by the words that people have for them: "RTX 4090", "A100-80G", "h100:4", "8xH100".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/catalog.hpp"

namespace stepsim {

struct CalledCard {
  std::string gpu;          // an entry of topology/gpus
  std::uint32_t count = 0;  // 0: the words do not say
};

// Returns nothing for words that are no card of the catalogue.
std::optional<CalledCard> card_called(const Catalogue& data, std::string_view words);
// Says why a TPU or a Mac is not modelled, and what is near; "" for all other words.
std::string why_no_machine(const Catalogue& data, std::string_view words);
// Returns the smallest node of the catalogue with at least so many of the card, else its largest;
// "" where there is none. `found` becomes how many that one has.
std::string node_of_card(const Catalogue& data, const std::string& gpu, std::uint32_t gpus,
                         std::uint32_t& found);
// Puts a node of the catalogue in the place of a card, and shares `all` GPUs among nodes; 0: it is
// not said how many. Throws UserError if they are no whole number of nodes.
void settle_machine(const Catalogue& data, std::uint32_t all, ClusterChoice& choice);

}  // namespace stepsim
