// This says in closed form how long a step takes at the least, and what it needs: for choosing
// among many ways to split a job without replaying them all.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "workloads/collectives/plan.hpp"
#include "workloads/pipeline/stages.hpp"
#include "workloads/program/visits.hpp"
#include "workloads/step/pace.hpp"

namespace stepsim {

struct LeastStep {
  Seconds time;
  double bytes = 0;       // of the fullest GPU, with what libraries take and the allocator's slack
  double operations = 0;  // that are written for each micro-batch, to some ten per cent
};

// Bounds that no replay goes below, at the stated constants: kernels of a stage run one after the
// other and wait for what ranks hand each other around them; its host dispatches them one after the
// other; a stage begins when those before it have sent something, and theirs comes after its end.
// What kernels, messages and gathers lose to each other is left out, and the update.
// `in_turns` takes longer and knows more: the host waits for the device and for other stages, and
// runs ahead again only from there. Parameters and gradients are under way beside what is left of
// the passes that they belong to, where the scheme has them so.
class LeastSteps {
 public:
  explicit LeastSteps(const Cluster& cluster) : cluster_(cluster) {}
  LeastSteps(const LeastSteps&) = delete;
  LeastSteps& operator=(const LeastSteps&) = delete;
  ~LeastSteps() = default;

  // These give the bounds on this cluster, and remember what messages cost.
  LeastStep of(const StepInput& input);
  Seconds in_turns(const StepInput& input);

 private:
  // These belong to units that are visited one after the other, with one micro-batch.
  struct Passes {
    double forward = 0, backward = 0;  // s; `backward` with what is computed again
    double host = 0;                   // s of the host for both
    double kept = 0;                   // bytes that wait for the backward pass
    double again = 0;                  // bytes beside that when what it needs is there again
    double gathered = 0;               // bytes of parameters that are there only while they run
    double dense = 0, experts = 0;  // elements that are trained, of which experts have other ranks
    PacedPiece paced{};

    Passes& operator+=(const Passes& more);  // behind these
  };
  // This holds the pieces of a stage in their order.
  using Stage = std::vector<Passes>;

  static Passes sum_of(std::span<const Passes> pieces);

  struct Stages {
    std::vector<StageShare> shares;
    Passes head;
    std::vector<Passes> layers;
    std::vector<Stage> stages;
  };

  Stages all_stages(const StepInput& input);
  StepInput with_usual_rows(const StepInput& asked);
  Passes passes_of(const StepInput& input, const std::vector<Unit>& units);
  Work add_visit(Pace& pace, const StepInput& input, const Mesh& mesh, const Visit& visit);
  void add_gradients(Pace& pace, Work& work, const StepInput& input, const Unit& unit) const;
  PacedPiece paced(const StepInput& input, const Mesh& mesh, const std::vector<Unit>& units);
  std::vector<Passes> layers_of(const StepInput& input, const ModelUnits& units);
  // Bytes of a stage at the most, beyond what it holds from step to step.
  static double most_bytes(const StepInput& input, std::size_t stage, const Stage& pieces,
                           const Passes& head, const std::vector<Passes>& layers);
  static std::vector<Stage> stages_of(const std::vector<StageShare>& shares,
                                      const Passes& embedding, const Passes& head,
                                      const std::vector<Passes>& layers);
  static std::vector<std::size_t> perhaps_fullest(const std::vector<StageShare>& shares,
                                                  const std::vector<Stage>& stages);
  double least_time(const StepInput& input, const std::vector<Stage>& stages);
  StageTraffic traffic_of(const StepInput& input, const Passes& all);
  // Returns the seconds of a message with nothing else under way.
  double alone(Collective kind, Rank size, Rank stride, double bytes);
  // Returns the same for what each stage sends to the next, the last one to the first.
  std::vector<double> sent(const StepInput& input);
  std::vector<Group> side_by_side(Rank first, Rank size, Rank stride) const;
  // Returns the same for a unit's tokens on their way to experts, by its dispatcher.
  double exchanged(const StepInput& input, const Mesh& mesh, const Unit& unit);

  const Cluster& cluster_;
  double least_of(const std::vector<Cost>& ways, double bytes) const;
  std::map<std::tuple<Collective, Rank, Rank>, std::vector<Cost>> costs_;
  std::map<std::pair<Rank, Rank>, std::vector<Cost>> sends_;      // by the first rank, and how far
  std::map<std::pair<Rank, Rank>, std::vector<Cost>> exchanges_;  // by kernels of a library
};

}  // namespace stepsim
