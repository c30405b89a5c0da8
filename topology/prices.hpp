// Providers rent GPUs; this says for how much, by the day on which somebody read their price.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/catalog.hpp"

namespace stepsim {

inline constexpr Shelf price_shelf{"topology/prices", "provider"};

struct Price {
  std::string provider;    // "lambda", as its file is called
  std::string gpu;         // of the catalogue
  std::uint32_t gpus = 1;  // that are rented together
  std::string kind;        // one of price_kinds
  double rate = 0;         // for a GPU and hour
  std::string date;        // "2026-09-20"
};
inline constexpr std::array<std::string_view, 4> price_kinds{"on-demand", "spot", "reserved-1y",
                                                             "reserved-3y"};

// One provider's file.
struct Provider {
  std::string name, title, currency;
  std::string oldest;  // no price of it is older
  std::vector<Price> prices;
};
Provider read_provider(const Table& table);

// Returns what is said to a cluster's node, as "lambda" or "aws:spot" ask for it; "cheapest" is the
// cheapest of that kind. Nothing: nobody has such a price. Throws UserError where no such words are
// known.
std::optional<Price> price_of(const Catalogue& data, std::string_view said, const Cluster& cluster);
// The same; throws UserError where nobody has it.
Price price_called(const Catalogue& data, std::string_view said, const Cluster& cluster);

}  // namespace stepsim
