#include "sim/engine/own/sharing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepsim {
namespace {

// Shares that differ by no more are one: what is equal comes out of sums in different orders.
constexpr double same_share = 1 + 1e-13;

}  // namespace

Sharing::Sharing(const Platform& platform, const OpGraph& graph)
    : links_(platform.links), series_(platform.links, graph), constraints_(platform.links.size()) {
  std::vector<std::uint32_t> number_of(platform.links.size(), 0);
  for (const Pattern& pattern : graph.patterns()) {
    first_round_.push_back(static_cast<std::uint32_t>(first_flow_.size()));
    for (const Round& round : pattern.rounds) {
      first_flow_.push_back(static_cast<std::uint32_t>(caps_.size()));
      for (const Flow& flow : round.flows) add_route(flow, number_of);
    }
  }
  for (std::uint32_t link = 0; link < constraints_.size(); ++link)
    if (series_.used(LinkId{link})) constraints_[link].capacity = series_.width(LinkId{link});
}

// `number_of` holds for each link one more than its place on the route, 0 in between.
void Sharing::add_route(const Flow& flow, std::vector<std::uint32_t>& number_of) {
  const std::size_t begin = crossings_.size();
  for (const LinkId link : flow.path) {
    if (series_.first(link) != link) continue;
    std::uint32_t& number = number_of[index(link)];
    if (number == 0) {
      crossings_.push_back({static_cast<std::uint32_t>(index(link)), 0});
      number = static_cast<std::uint32_t>(crossings_.size() - begin);
    }
    ++crossings_[begin + number - 1].times;
  }
  for (std::size_t i = begin; i < crossings_.size(); ++i) number_of[crossings_[i].link] = 0;
  route_ends_.push_back(crossings_.size());
  caps_.push_back(flow.rate_cap);
  longest_ = std::max(longest_, crossings_.size() - begin);
}

void Sharing::note(std::uint32_t link) {
  if (constraints_[link].changed) return;
  constraints_[link].changed = true;
  changed_.push_back(link);
}

void Sharing::enter(Slot slot, PatternId pattern, std::uint32_t round, std::uint32_t number) {
  if (slot >= under_way_.size()) {
    under_way_.resize(slot + 1);
    places_.resize((slot + 1) * longest_);
  }
  const std::uint32_t which = first_flow_[first_round_[index(pattern)] + round] + number;
  under_way_[slot] = {.route = which, .most = caps_[which]};
  const std::span<const Crossing> crossings = route(which);
  for (std::uint32_t i = 0; i < crossings.size(); ++i) {
    Constraint& constraint = constraints_[crossings[i].link];
    places_[slot * longest_ + i] = static_cast<std::uint32_t>(constraint.visitors.size());
    constraint.visitors.push_back({slot, i});
    constraint.users += crossings[i].times;
    note(crossings[i].link);
  }
}

void Sharing::leave(Slot slot) {
  const std::span<const Crossing> crossings = route(under_way_[slot].route);
  for (std::uint32_t i = 0; i < crossings.size(); ++i) {
    Constraint& constraint = constraints_[crossings[i].link];
    const std::uint32_t place = places_[slot * longest_ + i];
    const Visitor last = constraint.visitors.back();
    constraint.visitors[place] = last;
    places_[last.slot * longest_ + last.crossing] = place;
    constraint.visitors.pop_back();
    constraint.users -= crossings[i].times;
    note(crossings[i].link);
  }
}

void Sharing::scale(LinkId link, double share) {
  if (!series_.used(link)) return;
  series_.scale(link, share);
  take_width(link);
}

void Sharing::change(LinkId link, double share) {
  if (!series_.used(link)) return;
  series_.change(link, share);
  take_width(link);
}

void Sharing::take_width(LinkId link) {
  const auto first = static_cast<std::uint32_t>(index(series_.first(link)));
  const double width = series_.width(link);
  if (constraints_[first].capacity == width) return;
  constraints_[first].capacity = width;
  note(first);
}

std::span<const Sharing::Slot> Sharing::settle() {
  answers_.clear();
  ++searches_;
  for (const std::uint32_t link : changed_) {
    constraints_[link].changed = false;
    if (constraints_[link].seen == searches_ || constraints_[link].visitors.empty()) continue;
    search(link);
    find_rates();
  }
  changed_.clear();
  return answers_;
}

// All that is connected with a link by flows.
void Sharing::search(std::uint32_t link) {
  found_links_.clear();
  found_flows_.clear();
  capped_.clear();
  constraints_[link].seen = searches_;
  found_links_.push_back(link);
  for (std::size_t next = 0; next < found_links_.size(); ++next)
    for (const Visitor& visitor : constraints_[found_links_[next]].visitors) {
      UnderWay& flow = under_way_[visitor.slot];
      if (flow.seen == searches_) continue;
      flow.seen = searches_;
      found_flows_.push_back(visitor.slot);
      if (std::isfinite(flow.most)) capped_.push_back(visitor.slot);
      for (const Crossing& crossing : route(flow.route)) {
        Constraint& other = constraints_[crossing.link];
        if (other.seen == searches_) continue;
        other.seen = searches_;
        found_links_.push_back(crossing.link);
      }
    }
}

// The links that leave the least to each of their flows decide about these; what is left of the
// others is shared by the others.
void Sharing::find_rates() {
  for (const std::uint32_t link : found_links_) {
    constraints_[link].left = constraints_[link].capacity;
    constraints_[link].without_rate = constraints_[link].users;
  }
  double before = 0;
  while (!found_links_.empty()) {
    const double rate = std::max(before, least_share());
    fix_at(rate);
    before = rate;
    std::erase_if(found_links_,
                  [&](std::uint32_t link) { return constraints_[link].without_rate == 0; });
    std::erase_if(capped_, [&](Slot slot) { return under_way_[slot].fixed == searches_; });
  }
}

double Sharing::least_share() {
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t link : found_links_)
    least = std::min(least, constraints_[link].left / constraints_[link].without_rate);
  for (const Slot slot : capped_) least = std::min(least, under_way_[slot].most);
  return least;
}

// Finds all of the narrowest links before any flow gets its rate, which changes what links have
// left.
void Sharing::fix_at(double rate) {
  const double most = rate * same_share;
  const auto others = std::ranges::partition(found_links_, [&](std::uint32_t link) {
    return constraints_[link].left / constraints_[link].without_rate <= most;
  });
  for (auto link = found_links_.begin(); link != others.begin(); ++link)
    for (const Visitor& visitor : constraints_[*link].visitors) fix(visitor.slot, rate);
  for (const Slot slot : capped_)
    if (under_way_[slot].most <= most) fix(slot, rate);
}

void Sharing::fix(Slot slot, double rate) {
  UnderWay& flow = under_way_[slot];
  if (flow.fixed == searches_) return;
  flow.fixed = searches_;
  for (const Crossing& crossing : route(flow.route)) {
    Constraint& constraint = constraints_[crossing.link];
    constraint.left = std::max(0.0, constraint.left - crossing.times * rate);
    constraint.without_rate -= crossing.times;
  }
  if (flow.rate == rate) return;
  flow.rate = rate;
  answers_.push_back(slot);
}

}  // namespace stepsim
