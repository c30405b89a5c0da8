#include "sim/side_by_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Puts one program after the other into what all of them share.
class Merger {
 public:
  Merger(SideBySide& all, const std::function<bool(const Link&)>& is_shared)
      : all_(all), is_shared_(is_shared) {}

  void add(const RunAgain& program) {
    first_rank_ = static_cast<Rank>(all_.platform.devices.size());
    ++number_;
    add_links(program.platform);
    for (Device device : program.platform.devices) {
      device.name = own(device.name);
      for (LinkId& engine : device.engines) engine = links_[index(engine)];
      all_.platform.devices.push_back(std::move(device));
    }
    add_patterns(program.graph);
    names_ = mapped(program.graph.names(),
                    [&](const std::string& name) { return all_.graph.name(name); });
    std::vector<OpId>& ends = all_.ends.emplace_back();
    for (std::uint32_t time = 0; time < program.times; ++time)
      ends.push_back(add_once(program.graph, ends));
  }

 private:
  std::string own(const std::string& name) const { return fmt::format("{}.{}", number_, name); }

  // A link that is wider on one side was stretched less.
  void add_links(const Platform& platform) {
    links_.clear();
    links_.reserve(platform.links.size());
    for (Link link : platform.links) {
      const bool shared = is_shared_(link);
      if (!shared) link.name = own(link.name);
      const auto [place, added] =
          by_name_.try_emplace(link.name, static_cast<std::uint32_t>(all_.platform.links.size()));
      links_.push_back(LinkId{place->second});
      if (added) {
        all_.platform.links.push_back(std::move(link));
      } else {
        BytesPerSecond& known = all_.platform.links[place->second].capacity;
        known = std::max(known, link.capacity);
      }
    }
  }

  void add_patterns(const OpGraph& graph) {
    std::vector<bool> crossed(all_.platform.links.size());
    patterns_.clear();
    patterns_.reserve(graph.patterns().size());
    for (Pattern pattern : graph.patterns()) {
      for (Rank& member : pattern.members) member += first_rank_;
      for (Round& round : pattern.rounds)
        for (Flow& flow : round.flows) {
          flow.source += first_rank_;
          flow.target += first_rank_;
          Path path;
          for (const LinkId link : flow.path) path.push_back(links_[index(link)]);
          flow.path = path;
          for (const LinkId link : path) crossed[index(link)] = true;
        }
      patterns_.push_back(all_.graph.pattern(std::move(pattern)));
    }
    std::vector<LinkId>& used = all_.used.emplace_back();
    for (std::size_t i = 0; i < crossed.size(); ++i)
      if (crossed[i]) used.push_back(LinkId{static_cast<std::uint32_t>(i)});
  }

  // Returns the instant at which all of it is done. It begins when the last time has ended.
  OpId add_once(const OpGraph& graph, const std::vector<OpId>& before) {
    const auto base = static_cast<std::uint32_t>(all_.graph.size());
    std::vector<bool> followed(graph.size());
    std::vector<OpId> after;
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      Op op = graph[OpId{i}];
      op.rank += first_rank_;
      op.name = names_[index(op.name)];
      if (op.pattern != no_pattern) op.pattern = patterns_[index(op.pattern)];
      after.clear();
      for (const OpId earlier : graph.predecessors(OpId{i})) {
        followed[index(earlier)] = true;
        after.push_back(OpId{base + static_cast<std::uint32_t>(index(earlier))});
      }
      if (after.empty() && !before.empty()) after.push_back(before.back());
      all_.graph.add(op, after);
    }
    after.clear();
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      if (!followed[i]) after.push_back(OpId{base + i});
    return all_.graph.add(
        {.kind = OpKind::join, .rank = first_rank_, .name = all_.graph.name("end")}, after);
  }

  SideBySide& all_;
  const std::function<bool(const Link&)>& is_shared_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
  std::size_t number_ = 0;  // of the program, from 1
  Rank first_rank_ = 0;
  std::vector<LinkId> links_;  // of the program, as they are called in all
  std::vector<PatternId> patterns_;
  std::vector<NameId> names_;
};

}  // namespace

SideBySide side_by_side(std::span<const RunAgain> programs,
                        const std::function<bool(const Link&)>& is_shared) {
  SideBySide all;
  Merger merger(all, is_shared);
  for (const RunAgain& program : programs) merger.add(program);
  return all;
}

}  // namespace stepsim
