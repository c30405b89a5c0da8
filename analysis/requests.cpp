#include "analysis/requests.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <unordered_map>

namespace stepsim {
namespace {

constexpr double same_bytes = 0.5;

class RequestReader {
 public:
  RequestReader(const OpGraph& graph, const Timeline& timeline)
      : graph_(graph), timeline_(timeline) {}

  void take(std::size_t change) {
    live_[timeline_[change].tensor_class].push_back(all_.size());
    all_.push_back({.taken = change, .bytes = timeline_[change].bytes});
  }
  void give(std::size_t change) {
    std::vector<std::size_t>& live = live_[timeline_[change].tensor_class];
    double rest = -timeline_[change].bytes;
    if (const auto same = as_large(live, change); same != live.end()) {
      all_[*same].given = change;
      live.erase(same);
      return;
    }
    for (; rest > same_bytes; live.pop_back()) {
      if (live.empty()) throw std::logic_error("memory is given back that nobody took");
      Request& newest = all_[live.back()];
      if (newest.bytes > rest + same_bytes) {
        newest.bytes -= rest;
        all_.push_back({newest.taken, change, rest});
        return;
      }
      newest.given = change;
      rest -= newest.bytes;
    }
  }
  std::vector<Request> take_all() {
    std::ranges::stable_sort(all_, {}, &Request::taken);
    return std::move(all_);
  }

 private:
  bool same_place(std::size_t a, std::size_t b) const {
    const OpId first = timeline_[a].op, second = timeline_[b].op;
    if (first == no_operation || second == no_operation) return first == second;
    return graph_[first].layer == graph_[second].layer &&
           graph_[first].micro_batch == graph_[second].micro_batch;
  }
  std::vector<std::size_t>::iterator as_large(std::vector<std::size_t>& live,
                                              std::size_t change) const {
    auto found = live.end();
    for (auto each = live.end(); each != live.begin();) {
      const Request& request = all_[*--each];
      if (std::abs(request.bytes + timeline_[change].bytes) > same_bytes) continue;
      if (same_place(request.taken, change)) return each;
      if (found == live.end()) found = each;
    }
    return found;
  }

  const OpGraph& graph_;
  const Timeline& timeline_;
  std::vector<Request> all_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> live_;  // never iterated
};

}  // namespace

std::vector<Request> requests_of(const OpGraph& graph, const Timeline& timeline) {
  RequestReader requests(graph, timeline);
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    if (timeline[i].pool != Pool::device) continue;
    if (timeline[i].bytes > 0)
      requests.take(i);
    else
      requests.give(i);
  }
  return requests.take_all();
}

}  // namespace stepsim
