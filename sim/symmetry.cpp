#include "sim/symmetry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "sim/base/lists.hpp"
#include "sim/exchange_kinds.hpp"
#include "sim/implied_links.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// Everything of one sort, flat: who is coloured, and what each sees.
struct FlatFlow {
  const Flow* flow;
  std::uint32_t group;  // over all families
  std::uint32_t family, round;
  std::uint32_t first_link;  // into Structure::path_links
  std::uint32_t end_link;
};

struct Structure {
  Rank ranks = 0;
  std::vector<LinkId> used;            // compact number -> link
  std::vector<std::uint32_t> compact;  // link -> compact number, or none
  std::vector<FlatFlow> flows;
  std::vector<std::uint32_t> path_links;  // compact numbers
  std::vector<FlatExchange> exchanges;
  std::vector<const Pattern*> groups;
  std::vector<std::uint32_t> family_of;             // [group]
  std::vector<std::vector<Color>> roles;            // [group][member]: what each sends and gets
  std::vector<std::vector<std::uint32_t>> engines;  // [rank] -> compact numbers, used ones only
};

// The two of a message are not alike, and the message back is another one.
std::vector<Color> roles_in(const Pattern& pattern, std::vector<std::uint32_t>& place_of) {
  std::vector<Color> roles(pattern.members.size(), 0);
  if (roles.empty()) return roles;  // traffic of nobody here
  for (std::uint32_t i = 0; i < roles.size(); ++i) place_of[pattern.members[i]] = i;
  for (const Round& round : pattern.rounds)
    for (const Flow& flow : round.flows) {
      const Color amount = mixed(std::bit_cast<Color>(flow.wire), std::bit_cast<Color>(flow.share));
      roles[place_of[flow.source]] += mixed(amount, 5);
      roles[place_of[flow.target]] += mixed(amount, 6);
    }
  return roles;
}

Structure flatten(const Machinery& machinery, std::span<const Family> families, const Twins& twins,
                  const ImpliedLinks* implied) {
  Structure s;
  s.ranks = machinery.ranks;
  s.compact.assign(machinery.links, none);
  const auto number = [&](LinkId link) {
    if (implied != nullptr && (*implied)[link]) return none;
    std::uint32_t& number_of_link = s.compact[index(link)];
    if (number_of_link == none) {
      number_of_link = static_cast<std::uint32_t>(s.used.size());
      s.used.push_back(link);
    }
    return number_of_link;
  };
  std::vector<std::uint32_t> place_of(s.ranks);
  for (std::uint32_t family = 0; family < families.size(); ++family) {
    if (is_twin(twins, family)) continue;
    for (const Pattern& pattern : families[family]) {
      const auto group = static_cast<std::uint32_t>(s.groups.size());
      s.groups.push_back(&pattern);
      s.family_of.push_back(family);
      s.roles.push_back(roles_in(pattern, place_of));
      for (std::uint32_t round = 0; round < pattern.rounds.size(); ++round) {
        for (const Flow& flow : pattern.rounds[round].flows) {
          const auto first = static_cast<std::uint32_t>(s.path_links.size());
          for (const LinkId link : flow.path)
            if (const std::uint32_t each = number(link); each != none) s.path_links.push_back(each);
          s.flows.push_back({&flow, group, family, round, first,
                             static_cast<std::uint32_t>(s.path_links.size())});
        }
        if (pattern.rounds[round].exchange.ends.empty()) continue;
        FlatExchange& made = s.exchanges.emplace_back(flat(pattern.rounds[round].exchange, number));
        made.group = group;
        made.family = family;
        made.round = round;
      }
    }
  }
  s.engines.resize(s.ranks);
  return s;
}

struct Colors {
  std::vector<Color> ranks, links, groups, flows;
};

std::size_t count_distinct(const std::vector<Color>& colors) {
  std::vector<Color> table(std::bit_ceil(2 * colors.size() + 2), 0);
  const std::size_t mask = table.size() - 1;
  std::size_t distinct = 0;
  for (const Color color : colors) {
    const Color key = color | 1;  // 0 marks an empty place
    std::size_t at = static_cast<std::size_t>(key >> 7) & mask;
    while (table[at] != 0 && table[at] != key) at = (at + 1) & mask;
    if (table[at] == 0) ++distinct;
    table[at] = key;
  }
  return distinct;
}

Colors first_colors(const Machinery& machinery, const Structure& s) {
  Colors c;
  c.ranks.resize(s.ranks);
  for (Rank rank = 0; rank < s.ranks; ++rank)
    c.ranks[rank] = mixed(1, machinery.kinds.empty() ? 0 : machinery.kinds[rank]);
  for (const LinkId link : s.used)
    c.links.push_back(mixed(2, std::bit_cast<Color>(machinery.capacity(link).value)));
  for (const LinkId link : machinery.changing)
    if (const std::uint32_t number = s.compact[index(link)]; number != none)
      c.links[number] = mixed(c.links[number], mixed(11, index(link)));
  for (std::size_t g = 0; g < s.groups.size(); ++g) {
    Color color = mixed(3 + s.family_of[g], s.groups[g]->rounds.size());
    for (const Round& round : s.groups[g]->rounds)
      color = mixed(color, std::bit_cast<Color>(round.latency.value));
    c.groups.push_back(color);
  }
  for (const FlatFlow& flat : s.flows)
    c.flows.push_back(mixed(mixed(flat.family, flat.round),
                            mixed(std::bit_cast<Color>(flat.flow->wire),
                                  mixed(std::bit_cast<Color>(flat.flow->share),
                                        std::bit_cast<Color>(flat.flow->rate_cap)))));
  return c;
}

ExchangeKinds kinds_of(const FlatExchange& exchange, const Colors& c) {
  const Color amount = mixed(std::bit_cast<Color>(exchange.whole->wire),
                             std::bit_cast<Color>(exchange.whole->share));
  return {exchange, c.links,
          mixed(mixed(mixed(exchange.family, exchange.round), amount), c.groups[exchange.group])};
}

// Seen gathers what links, ranks and groups see in a round before any of them changes its colour.
struct Seen {
  std::vector<Color> links, ranks, groups;
};

void look_at(const ExchangeKinds& kinds, Seen& seen) {
  const FlatExchange& exchange = kinds.exchange();
  for (const bool sends : {true, false})
    kinds.for_each(sends, [&](const ExchangeKinds::Bundle& bundle) {
      const Color shown = bundle.count * scrambled(bundle.color);
      for (const std::uint32_t link : kinds.path(bundle, sends)) seen.links[link] += shown;
      if (const std::uint32_t link = kinds.link_further(bundle, sends); link != none)
        seen.links[link] += shown;
      if (sends) seen.groups[exchange.group] += shown;
    });
}

// A flow begins and ends with its group and has the rate that its links leave it: whose it is
// changes nothing. So a rank that is late tells its groups apart, not the neighbours around a ring.
void refine_once(const Structure& s, Colors& c) {
  Seen seen{std::vector<Color>(c.links.size(), 0), std::vector<Color>(c.ranks.size(), 0),
            std::vector<Color>(c.groups.size(), 0)};
  for (const FlatExchange& exchange : s.exchanges) look_at(kinds_of(exchange, c), seen);
  for (std::size_t i = 0; i < s.flows.size(); ++i) {
    const FlatFlow& flat = s.flows[i];
    Color color = mixed(c.flows[i], c.groups[flat.group]);
    Color path = 0;  // the order along a path does not matter, the set does
    for (std::uint32_t k = flat.first_link; k < flat.end_link; ++k)
      path += scrambled(c.links[s.path_links[k]]);
    c.flows[i] = mixed(color, path);
    const Color shown = scrambled(c.flows[i]);
    for (std::uint32_t k = flat.first_link; k < flat.end_link; ++k)
      seen.links[s.path_links[k]] += shown;
    seen.groups[flat.group] += shown;
  }
  for (std::size_t g = 0; g < s.groups.size(); ++g)
    for (std::size_t i = 0; i < s.roles[g].size(); ++i) {
      const Rank member = s.groups[g]->members[i];
      seen.groups[g] += mixed(mixed(c.ranks[member], s.roles[g][i]), 7);
      seen.ranks[member] += mixed(mixed(c.groups[g], s.roles[g][i]), 8);
    }
  for (Rank rank = 0; rank < s.ranks; ++rank)
    for (const std::uint32_t engine : s.engines[rank]) {
      seen.ranks[rank] += mixed(c.links[engine], 9);
      seen.links[engine] += mixed(c.ranks[rank], 10);
    }
  const auto absorb = [](std::vector<Color>& colors, const std::vector<Color>& more) {
    for (std::size_t i = 0; i < colors.size(); ++i) colors[i] = mixed(colors[i], more[i]);
  };
  absorb(c.links, seen.links);
  absorb(c.ranks, seen.ranks);
  absorb(c.groups, seen.groups);
}

Colors all_different(const Structure& s) {
  Colors c;
  for (std::vector<Color>* colors : {&c.ranks, &c.links, &c.groups, &c.flows}) {
    const std::size_t size = colors == &c.ranks    ? s.ranks
                             : colors == &c.links  ? s.used.size()
                             : colors == &c.groups ? s.groups.size()
                                                   : s.flows.size();
    colors->resize(size);
    std::iota(colors->begin(), colors->end(), Color{0});
  }
  return c;
}

// A difference that travels this far has left nearly nothing alike on its way: along a ring of
// nodes it would go on for half of them, and each round looks at everything.
constexpr std::size_t most_rounds = 256;

Colors refine(const Machinery& machinery, const Structure& s) {
  Colors c = first_colors(machinery, s);
  const auto classes = [&c] {
    return count_distinct(c.ranks) + count_distinct(c.links) + count_distinct(c.groups) +
           count_distinct(c.flows);
  };
  std::size_t before = 0, now = classes();
  for (std::size_t round = 0; now != before; ++round) {
    if (round == most_rounds) return all_different(s);
    before = now;
    refine_once(s, c);
    now = classes();
  }
  return c;
}

// Colours as numbers in order of first appearance, with a representative and a size each.
struct Classes {
  std::vector<std::uint32_t> of, first, size;
};

Classes number(const std::vector<Color>& colors) {
  Classes classes;
  classes.of.reserve(colors.size());
  std::unordered_map<Color, std::uint32_t> numbers;  // looked up, never iterated
  numbers.reserve(64);
  for (std::uint32_t i = 0; i < colors.size(); ++i) {
    const auto [place, added] =
        numbers.try_emplace(colors[i], static_cast<std::uint32_t>(classes.first.size()));
    if (added) {
      classes.first.push_back(i);
      classes.size.push_back(0);
    }
    ++classes.size[place->second];
    classes.of.push_back(place->second);
  }
  return classes;
}

// The flows of exchanges: of each exchange its kinds, and of each colour the class, behind those of
// single flows.
struct Bundles {
  std::vector<ExchangeKinds> kinds;
  std::unordered_map<Color, std::uint32_t> classes;  // looked up, never iterated
  std::size_t end = 0;                               // of the classes of all flows
};

Bundles bundles_of(const Structure& s, const Colors& colors, std::size_t single) {
  Bundles bundles{.kinds = {}, .classes = {}, .end = single};
  bundles.kinds.reserve(s.exchanges.size());
  for (const FlatExchange& exchange : s.exchanges) {
    bundles.kinds.push_back(kinds_of(exchange, colors));
    bundles.kinds.back().for_each(true, [&](const ExchangeKinds::Bundle& bundle) {
      const auto next = static_cast<std::uint32_t>(bundles.end);
      if (bundles.classes.try_emplace(bundle.color, next).second) ++bundles.end;
    });
  }
  return bundles;
}

// Incidence counts how many flows of each class meet on the link that stands for its class.
class Incidence {
 public:
  Incidence(const Structure& s, const Classes& links, const Classes& flows, const Bundles& bundles)
      : weight_(links.first.size(), 0), counts_(bundles.end) {
    const auto meet = [&](std::uint32_t flow_class, std::uint32_t link, std::uint32_t flows_there) {
      const std::uint32_t link_class = links.of[link];
      if (links.first[link_class] == link) count(flow_class, link_class) += flows_there;
    };
    for (std::size_t i = 0; i < s.flows.size(); ++i)
      for (std::uint32_t k = s.flows[i].first_link; k < s.flows[i].end_link; ++k)
        meet(flows.of[i], s.path_links[k], 1);
    for (const ExchangeKinds& kinds : bundles.kinds)
      for (const bool sends : {true, false})
        kinds.for_each(sends, [&](const ExchangeKinds::Bundle& bundle) {
          const std::uint32_t flow_class = bundles.classes.at(bundle.color);
          for (const std::uint32_t link : kinds.path(bundle, sends))
            meet(flow_class, link, bundle.count);
          if (const std::uint32_t link = kinds.link_further(bundle, sends); link != none)
            meet(flow_class, link, bundle.count);
        });
    for (const auto& row : counts_)
      for (const auto& [link, n] : row) weight_[link] = std::gcd(weight_[link], n);
  }

  std::uint32_t weight(std::uint32_t link_class) const { return std::max(1u, weight_[link_class]); }

  // Returns the path of a flow class. In max-min sharing only counts matter: k equal flows on a
  // link are one flow that is there k times. What all flows on the link have in common became the
  // link's weight.
  Path path(std::uint32_t flow_class) const {
    Path path;
    for (const auto& [link, n] : counts_[flow_class])
      for (std::uint32_t i = 0; i < n / weight(link); ++i) path.push_back(LinkId{link});
    return path;
  }

 private:
  std::uint32_t& count(std::uint32_t flow_class, std::uint32_t link_class) {
    auto& row = counts_[flow_class];
    const auto place =
        std::ranges::find_if(row, [&](const auto& entry) { return entry.first == link_class; });
    if (place != row.end()) return place->second;
    return row.emplace_back(link_class, 0).second;
  }

  std::vector<std::uint32_t> weight_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> counts_;  // [flow class]
};

struct Quotient {
  const Machinery& machinery;
  const Structure& s;
  Classes ranks, links, groups, flows;
  Bundles bundles;

  Platform platform(const Incidence& incidence) const {
    Platform result;
    for (std::uint32_t c = 0; c < links.first.size(); ++c) {
      Link link = machinery.link(s.used[links.first[c]]);
      if (links.size[c] > 1) link.name += fmt::format(" (1 of {})", links.size[c]);
      link.weight = incidence.weight(c);
      result.links.push_back(std::move(link));
    }
    for (const std::uint32_t rank : ranks.first) {
      Device device = machinery.device(rank);
      if (const auto lane = ranks.of[rank]; ranks.size[lane] > 1)
        device.name += fmt::format(" (1 of {})", ranks.size[lane]);
      device.engines.clear();
      for (const std::uint32_t engine : s.engines[rank])
        device.engines.push_back(LinkId{links.of[engine]});
      result.devices.push_back(std::move(device));
    }
    result.lost_at = machinery.lost_at;
    return result;
  }

  // Returns the first group of each class, with one flow for all flows of a class in each round.
  // `whole` is the group itself, or its twin.
  Pattern pattern(const Pattern& whole, std::uint32_t group, std::uint32_t first_flow,
                  const Incidence& incidence, bool& pure) const {
    Pattern folded{.name = whole.name, .members = {}, .rounds = {}, .occupancy = whole.occupancy};
    std::vector<std::uint8_t> taken(ranks.first.size(), 0);
    for (const Rank member : whole.members)
      if (std::uint8_t& mark = taken[ranks.of[member]]; mark == 0) {
        mark = 1;
        folded.members.push_back(ranks.of[member]);
      }
    folded.rounds.resize(whole.rounds.size());
    for (std::size_t r = 0; r < whole.rounds.size(); ++r)
      folded.rounds[r].latency = whole.rounds[r].latency;
    // Flow classes that are there, with their sort; looked up, never iterated.
    std::unordered_map<std::uint32_t, std::uint8_t> done;
    std::uint32_t number = first_flow;
    for (std::size_t r = 0; r < whole.rounds.size(); ++r)
      for (const Flow& each : whole.rounds[r].flows) {
        const std::uint32_t flow_class = flows.of[number++];
        const auto [place, added] = done.try_emplace(flow_class, each.sort);
        pure = pure && place->second == each.sort;
        if (!added) continue;
        Flow flow = each;
        flow.source = ranks.of[flow.source];
        flow.target = ranks.of[flow.target];
        flow.path = incidence.path(flow_class);
        folded.rounds[r].flows.push_back(std::move(flow));
      }
    for (const ExchangeKinds& kinds : bundles.kinds) {
      const FlatExchange& exchange = kinds.exchange();
      if (exchange.group != group) continue;
      kinds.for_each(true, [&](const ExchangeKinds::Bundle& bundle) {
        const std::uint32_t flow_class = bundles.classes.at(bundle.color);
        const Exchange& amounts = whole.rounds[exchange.round].exchange;
        const auto [place, added] = done.try_emplace(flow_class, amounts.sort);
        pure = pure && place->second == amounts.sort;
        if (!added) return;
        folded.rounds[exchange.round].flows.push_back(
            {.source = ranks.of[exchange.ends[bundle.end].rank],
             .target = ranks.of[exchange.ends[bundle.other].rank],
             .path = incidence.path(flow_class),
             .share = amounts.share,
             .wire = amounts.wire,
             .sort = amounts.sort});
      });
    }
    return folded;
  }
};

std::vector<std::vector<LinkId>> links_by_sort(const Machinery& machinery, const Structure& s,
                                               const Classes& classes) {
  std::vector<std::vector<LinkId>> links(classes.first.size());
  std::vector<std::vector<std::uint32_t>> sorts(classes.first.size());
  for (std::size_t i = 0; i < s.used.size(); ++i) {
    const std::uint32_t sort = machinery.sort(s.used[i]);
    std::vector<std::uint32_t>& known = sorts[classes.of[i]];
    if (holds(known, sort)) continue;
    known.push_back(sort);
    links[classes.of[i]].push_back(s.used[i]);
  }
  return links;
}

std::uint32_t flow_count(const Pattern& pattern) {
  std::size_t count = 0;
  for (const Round& round : pattern.rounds) count += round.flows.size();
  return static_cast<std::uint32_t>(count);
}

}  // namespace

Folded fold(const Machinery& machinery, std::span<const Family> families, Folding folding) {
  std::vector<Family> whole;
  if (folding == Folding::off) {
    for (const Family& family : families) whole.push_back(mapped(family, spelt_out));
    families = whole;
  }
  const Twins twins = folding == Folding::automatic ? find_twins(families) : no_twins(families);
  std::optional<ImpliedLinks> implied;
  if (folding == Folding::automatic) implied.emplace(machinery, families, twins);
  Structure s = flatten(machinery, families, twins, implied ? &*implied : nullptr);
  for (Rank rank = 0; rank < s.ranks; ++rank)
    for (const LinkId engine : machinery.device(rank).engines)
      if (s.compact[index(engine)] != none) s.engines[rank].push_back(s.compact[index(engine)]);
  const Colors colors = folding == Folding::automatic ? refine(machinery, s) : all_different(s);
  const Classes flows = number(colors.flows);
  const Quotient quotient{machinery,
                          s,
                          number(colors.ranks),
                          number(colors.links),
                          number(colors.groups),
                          flows,
                          bundles_of(s, colors, flows.first.size())};
  const Incidence incidence(s, quotient.links, quotient.flows, quotient.bundles);

  Folded folded;
  folded.platform = quotient.platform(incidence);
  folded.lane_of = quotient.ranks.of;
  folded.rank_of = quotient.ranks.first;
  folded.lane_sizes = quotient.ranks.size;
  bool pure = true;
  // These number the first group and the first flow of each family; a twin has those of the family
  // that it is like.
  std::vector<std::uint32_t> first_group(families.size()), first_flow(families.size());
  std::uint32_t groups_so_far = 0, flows_so_far = 0;
  for (std::uint32_t family = 0; family < families.size(); ++family) {
    first_group[family] = is_twin(twins, family) ? first_group[twins[family]] : groups_so_far;
    first_flow[family] = is_twin(twins, family) ? first_flow[twins[family]] : flows_so_far;
    Family& patterns = folded.families.emplace_back();
    std::vector<std::uint32_t>& classes = folded.group_class.emplace_back();
    std::unordered_map<std::uint32_t, std::uint32_t> made;  // looked up, never iterated
    std::uint32_t group = first_group[family], flow = first_flow[family];
    for (const Pattern& each : families[family]) {
      const auto [place, added] =
          made.try_emplace(quotient.groups.of[group], static_cast<std::uint32_t>(patterns.size()));
      if (added) patterns.push_back(quotient.pattern(each, group, flow, incidence, pure));
      classes.push_back(place->second);
      flow += flow_count(each);
      ++group;
    }
    if (is_twin(twins, family)) continue;
    groups_so_far = group;
    flows_so_far = flow;
  }
  if (implied && machinery.sort)
    folded.by = {.links = links_by_sort(machinery, s, quotient.links),
                 .widths = implied->take_widths(),
                 .pure = pure};
  return folded;
}

}  // namespace stepsim
