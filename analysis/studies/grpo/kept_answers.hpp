// This keeps what follows from a training job alone: points of a sweep and changes to a GRPO job
// often leave its learners as they are. Workers that begin later have it, too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

#include "scenarios/scenario.hpp"
#include "sim/engine/player.hpp"
#include "sim/ideal.hpp"

namespace stepsim {

template <class Answer>
class KeptAnswers {
 public:
  // `find` is asked where the answer is not known; `free`: causes that cost nothing in it.
  template <class Find>
  Answer of(const Scenario& job, CauseSet free, const Player& player, const Find& find) {
    const auto known = std::ranges::find_if(
        kept_, [&](const Kept& each) { return each.is_of(job, free) && each.player == player; });
    if (known != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, known);
    } else {
      Answer answer = find();
      kept_.push_front({job.cluster, job.model, job.stack, job.strategy, job.job, free, player,
                        std::move(answer)});
      if (kept_.size() > most_kept) kept_.pop_back();
    }
    return kept_.front().answer;
  }

 private:
  static constexpr std::size_t most_kept = 64;
  struct Kept {
    Cluster cluster;
    Model model;
    Stack stack;
    Strategy strategy;
    Job job;
    CauseSet free;
    Player player;
    Answer answer;

    bool is_of(const Scenario& other, CauseSet causes) const {
      return job == other.job && free == causes && strategy == other.strategy &&
             model == other.model && carry_alike(cluster, other.cluster) &&
             cluster.gpu == other.cluster.gpu && stack == other.stack;
    }
  };
  std::list<Kept> kept_;  // asked for last, first
};

}  // namespace stepsim
