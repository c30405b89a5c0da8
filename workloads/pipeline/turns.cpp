#include "workloads/pipeline/turns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepsim {
namespace {

constexpr std::array<std::string_view, 4> kind_names{"ask for the input of", "run",
                                                     "send the output of", "wait for messages of"};

std::string place_text(std::size_t stage, const StageAct& act) {
  return fmt::format("stage {} is to {} micro-batch {} of piece {}, {}", stage,
                     kind_names[static_cast<std::size_t>(act.kind)], act.turn.micro_batch,
                     act.turn.piece, goes_back(act.turn.pass) ? "backward" : "forward");
}

[[noreturn]] void refuse_circle(const std::vector<std::vector<StageAct>>& acts,
                                const std::vector<std::size_t>& next) {
  std::vector<std::string> places;
  for (std::size_t stage = 0; stage < acts.size(); ++stage)
    if (next[stage] < acts[stage].size())
      places.push_back(place_text(stage, acts[stage][next[stage]]));
  throw std::logic_error(
      fmt::format("the stages of the pipeline wait for each other: {}", fmt::join(places, "; ")));
}

}  // namespace

void take_turns(const std::vector<std::vector<StageAct>>& acts, const DoAct& done) {
  std::vector<std::size_t> next(acts.size(), 0);
  for (bool all_done = false; !all_done;) {
    bool moved = false;
    all_done = true;
    for (std::size_t stage = 0; stage < acts.size(); ++stage) {
      std::size_t& at = next[stage];
      for (; at < acts[stage].size(); ++at, moved = true)
        if (!done(static_cast<std::int64_t>(stage), acts[stage][at])) break;
      all_done = all_done && at == acts[stage].size();
    }
    if (!moved && !all_done) refuse_circle(acts, next);
  }
}

}  // namespace stepsim
