// Folding sees an exchange so: ends of few kinds, and how many flows of which kind each end has.
// This takes n times the number of kinds, not n^2 as flows one by one do.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/draw.hpp"
#include "sim/traffic.hpp"

namespace stepsim {

using Color = std::uint64_t;

constexpr Color mixed(Color a, Color b) {
  return scrambled(a ^ (scrambled(b) + 0x632BE59BD9B4E019ULL));
}

// Links have numbers of their own here, those that count.
struct FlatExchange {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  struct End {
    Rank rank = 0;
    std::uint32_t area = 0;  // counted from 0
    std::vector<std::uint32_t> out{}, in{};
    std::uint32_t up = none, down = none;
  };

  const Exchange* whole = nullptr;
  std::uint32_t group = 0, family = 0, round = 0;
  std::vector<End> ends{};
  std::vector<std::vector<std::uint32_t>> places{};  // the ends of each
  std::uint32_t areas = 0;
};

// `number` gives a link its number, or none.
template <class Number>
FlatExchange flat(const Exchange& exchange, Number number);

// The ends of one exchange by colour.
class ExchangeKinds {
 public:
  // Finds the kinds by the colours of links, and of all flows of the exchange.
  ExchangeKinds(const FlatExchange& exchange, std::span<const Color> links, Color base);

  // A bundle is the flows between an end and all those of one kind, in its own area or not.
  struct Bundle {
    std::uint32_t end = 0, other = 0;  // other: the first of its kind
    bool further = false;
    std::uint32_t count = 0;
    Color color = 0;
  };
  // Calls `use` for every bundle of what all ends send, or of what they get; a link of the bundle's
  // path is crossed by `count` flows.
  template <class Use>
  void for_each(bool sends, Use use) const;

  const FlatExchange& exchange() const { return exchange_; }
  std::span<const std::uint32_t> path(const Bundle& bundle, bool sends) const {
    const FlatExchange::End& end = exchange_.ends[bundle.end];
    return sends ? end.out : end.in;
  }
  // Between areas one link more, unless it does not count.
  std::uint32_t link_further(const Bundle& bundle, bool sends) const {
    const FlatExchange::End& end = exchange_.ends[bundle.end];
    return !bundle.further ? FlatExchange::none : sends ? end.up : end.down;
  }

 private:
  struct Side {
    std::vector<std::uint32_t> of;             // [end] its kind
    std::vector<std::uint32_t> first;          // [kind] an end
    std::vector<std::array<Color, 2>> colors;  // [kind] inside its area, to others
  };
  Side side(std::span<const Color> links, bool sends) const;
  Color color(std::uint32_t sender, std::uint32_t receiver, bool further) const {
    const std::size_t way = further ? 1 : 0;
    return mixed(base_, senders_.colors[sender][way] + receivers_.colors[receiver][way]);
  }

  const FlatExchange& exchange_;
  Color base_;
  Side senders_, receivers_;
};

template <class Number>
FlatExchange flat(const Exchange& exchange, Number number) {
  FlatExchange made{.whole = &exchange};
  std::vector<std::uint32_t> places, areas;
  const auto counted = [](std::vector<std::uint32_t>& numbers, std::uint32_t key) {
    if (key >= numbers.size()) numbers.resize(key + 1, FlatExchange::none);
    return &numbers[key];
  };
  const auto numbered = [&](const Path& path) {
    std::vector<std::uint32_t> links;
    for (const LinkId link : path)
      if (const std::uint32_t each = number(link); each != FlatExchange::none)
        links.push_back(each);
    return links;
  };
  for (const FarEnd& end : exchange.ends) {
    std::uint32_t& place = *counted(places, end.place);
    if (place == FlatExchange::none) {
      place = static_cast<std::uint32_t>(made.places.size());
      made.places.emplace_back();
    }
    made.places[place].push_back(static_cast<std::uint32_t>(made.ends.size()));
    std::uint32_t& area = *counted(areas, end.area);
    if (area == FlatExchange::none) area = made.areas++;
    made.ends.push_back(
        {.rank = end.rank, .area = area, .out = numbered(end.out), .in = numbered(end.in)});
  }
  for (std::size_t i = 0; made.areas > 1 && i < made.ends.size(); ++i) {
    made.ends[i].up = number(exchange.ends[i].up);
    made.ends[i].down = number(exchange.ends[i].down);
  }
  return made;
}

template <class Use>
void ExchangeKinds::for_each(bool sends, Use use) const {
  const Side& own = sends ? senders_ : receivers_;
  const Side& others = sends ? receivers_ : senders_;
  const std::size_t kinds = others.first.size();
  std::vector<std::uint32_t> all(kinds, 0), in_area(exchange_.areas * kinds, 0);
  for (std::size_t i = 0; i < exchange_.ends.size(); ++i) {
    ++all[others.of[i]];
    ++in_area[exchange_.ends[i].area * kinds + others.of[i]];
  }
  std::vector<std::uint32_t> same(kinds), further(kinds);
  for (const std::vector<std::uint32_t>& place : exchange_.places)
    for (const std::uint32_t i : place) {
      const std::uint32_t area = exchange_.ends[i].area;
      for (std::size_t k = 0; k < kinds; ++k) {
        same[k] = in_area[area * kinds + k];
        further[k] = all[k] - same[k];
      }
      for (const std::uint32_t j : place)
        --(exchange_.ends[j].area == area ? same : further)[others.of[j]];
      for (std::uint32_t k = 0; k < kinds; ++k)
        for (const bool away : {false, true})
          if (const std::uint32_t count = (away ? further : same)[k]; count > 0)
            use(Bundle{i, others.first[k], away, count,
                       sends ? color(own.of[i], k, away) : color(k, own.of[i], away)});
    }
}

}  // namespace stepsim
