#include "sim/exchange_kinds.hpp"

#include <unordered_map>

namespace stepsim {

ExchangeKinds::ExchangeKinds(const FlatExchange& exchange, std::span<const Color> links, Color base)
    : exchange_(exchange),
      base_(base),
      senders_(side(links, true)),
      receivers_(side(links, false)) {}

ExchangeKinds::Side ExchangeKinds::side(std::span<const Color> links, bool sends) const {
  Side made;
  made.of.reserve(exchange_.ends.size());
  std::unordered_map<Color, std::uint32_t> known;  // looked up, never iterated
  for (std::uint32_t i = 0; i < exchange_.ends.size(); ++i) {
    const FlatExchange::End& end = exchange_.ends[i];
    Color path = 0;
    for (const std::uint32_t link : sends ? end.out : end.in) path += scrambled(links[link]);
    const std::uint32_t link = sends ? end.up : end.down;
    const Color beyond = link == FlatExchange::none ? 0 : scrambled(links[link]);
    const std::array colors{path, path + beyond};
    const auto [place, added] = known.try_emplace(mixed(colors[0], colors[1]),
                                                  static_cast<std::uint32_t>(made.first.size()));
    if (added) {
      made.first.push_back(i);
      made.colors.push_back(colors);
    }
    made.of.push_back(place->second);
  }
  return made;
}

}  // namespace stepsim
