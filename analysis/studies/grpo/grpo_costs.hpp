// These replays find the time that the learners' training step and a weight sync take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "analysis/breakdown.hpp"
#include "analysis/studies/predict/replayed_step.hpp"
#include "scenarios/scenario.hpp"
#include "sim/engine/player.hpp"
#include "sim/ideal.hpp"
#include "workloads/grpo/actors.hpp"
#include "workloads/grpo/placement.hpp"
#include "workloads/grpo/sync.hpp"
#include "workloads/sharding/resident.hpp"

namespace stepsim {

// This says where the time of training goes; the parts add up to it.
struct TrainingParts {
  ByCause<double> exposed{};  // [Cause] s
  double idle = 0, seconds = 0;
  double traffic = 0;  // s in which gathers and reductions run, exposed or not

  TrainingParts& operator+=(const TrainingParts& other);
};
TrainingParts operator*(double factor, TrainingParts parts);

// This is what a learner holds on its GPU between steps.
struct LearnerStates {
  double all = 0;         // bytes
  double parameters = 0;  // of them; what is sent to engines
  double reference = 0;   // of them; of a frozen model
  double gradients = 0;   // of them; nobody reads them after the update

  LearnerStates& operator+=(const LearnerStates& beside);

  // Returns the bytes of a reference model that is in host memory but for its own passes.
  double waiting(const Grpo& grpo) const { return grpo.park_reference ? reference : 0; }
  double here(const Grpo& grpo) const { return all - waiting(grpo); }
  // Returns the bytes that leave the GPU before weights are sent; parameters follow behind.
  double freed(const Grpo& grpo) const { return grpo.park_learners ? here(grpo) - parameters : 0; }
  // Returns the bytes that are in host memory while engines generate.
  double parked(const Grpo& grpo) const { return grpo.park_learners ? here(grpo) - gradients : 0; }
};

// A step has these models: with a critic two are trained, one after the other or each on GPUs of
// its own; the others are frozen.
enum class GrpoModel : std::uint8_t { policy, critic, reference, reward };

// A model does all of its work in a step, or the update alone.
enum class Passes : std::uint8_t { all, update };

// These replay the learners' optimizer step over micro-batches of any length. Steps of one and of
// two equal micro-batches are replayed, or of as many as there are stages and twice as many; the
// difference is what each other one takes. Lengths between two replayed ones are interpolated.
class TrainingReplays {
 public:
  explicit TrainingReplays(const Scenario& scenario, const Replaying& how = {},
                           GrpoModel model = GrpoModel::policy, Passes passes = Passes::all);

  TrainingParts parts(std::span<const double> tokens);
  // Adds a forward pass before the update, from now on.
  void score() { learner_.job.scoring_passes = 1; }
  const LearnerStates& states() const { return states_; }
  std::size_t replays() const { return replays_; }
  // Returns which engines played all replays so far; nothing before the first.
  const std::optional<PlayedBy>& played_by() const { return played_by_; }

 private:
  struct Point {
    TrainingParts one, further;
    bool has_further = false;
  };
  void replay_point(std::int64_t tokens, bool further);
  TrainingParts at(double tokens, bool first);

  Scenario learner_;
  Replaying how_;
  LearnerStates states_;
  std::int64_t grid_ = 1, least_ = 1;
  std::map<std::int64_t, Point> points_;
  std::size_t replays_ = 0;
  std::optional<PlayedBy> played_by_;
};

// These replay one forward pass over rows of any length: the step with it less the step without.
class PassReplays {
 public:
  PassReplays(const Scenario& scenario, const Replaying& how, GrpoModel model);
  Seconds seconds(double tokens) { return {time(tokens).all}; }
  PassTime time(double tokens);

 private:
  TrainingReplays with_, without_;
};

struct SyncReplay {
  SyncCost cost;
  double broadcasts = 0;  // s: of the sending part
  double gathers = 0;     // between the broadcasts
  double parking = 0;     // states of colocated learners, to host memory and back
  double sleep = 0;       // colocated engines fall asleep and wake
  double overhead = 0;    // calls, copies, bookkeeping
  double written = 0;     // a checkpoint into its file, out of host memory
  PlayedBy played_by{};
};
// Returns the rows that a learner generates at a time by itself.
double rows_of_call(const Scenario& scenario);
// Returns what a step of the scenario's engines costs. Kernels that know where rows begin and end
// take heads of keys and values as they are, and so do others for rows of one prompt, which nothing
// pads.
DecodeModel decode_of(const Scenario& scenario);
// Returns whether learners that generate themselves gather the whole model before.
bool gathers_for_generation(const Scenario& scenario);
SyncReplay replay_sync(const Scenario& scenario, const Placement& placement,
                       const TurnBytes& turn = {}, const Player& player = {});
TurnBytes turn_bytes(const Scenario& scenario, const LearnerStates& states);
// Returns the time until a parked reference model of so many bytes is back on every learner.
Seconds replay_return(const Scenario& scenario, const Placement& placement, double bytes,
                      const Player& player = {});

LearnerStates states_between_steps(const Resident& resident);

// Returns how many learners train on packs of their own; others share them.
std::size_t packers_of(const Scenario& scenario, GrpoModel model = GrpoModel::policy);
// The GPUs that have the model: its own, or those of whom it stands beside.
Cluster cluster_of(const Scenario& scenario, GrpoModel model);
// Returns whether the model has GPUs of its own.
bool stands_alone(const Scenario& scenario, GrpoModel model);

// The learners alone, as the training job that they are. A critic has one number for each token in
// the place of the head, finds values before it is updated, and a reward model as its reference.
Scenario learners_of(const Scenario& scenario, GrpoModel model = GrpoModel::policy,
                     Passes passes = Passes::all);

// This keeps what follows from a training job alone: points of a sweep and changes to a GRPO job
// often leave its learners as they are. Workers that begin later have it, too.
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
