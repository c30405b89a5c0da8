// A pace says how host and device of a rank keep up with each other: when each is done with a pass,
// by when it began. Both wait for the later of two things and then take their time, so that a pass
// is a matrix of which sums are maxima and products are sums, and passes that follow each other are
// its products.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/pipeline/schedule.hpp"

namespace stepsim {

// The clock says, in seconds, when the host is free, the last kernel is over, and the next one may
// begin.
struct RankClock {
  double host = 0, kernel = 0, ready = 0;

  double last() const;
};

class Pace {
 public:
  Pace();  // of a pass with nothing in it

  // These take what the step writer writes, in its words: each goes behind what is there.
  void spend(double seconds) { spent_ += seconds; }
  void host(double seconds);
  void run(double dispatch, double device);
  // Runs this in pieces, of which nothing is known but that they come one after the other.
  void run_apart(double dispatch, double device);
  void collective(double launch, double alone);
  void drain(double seconds);
  // The host asks what other ranks know when the last kernel is over, and waits for the answer.
  void ask(double launch, double alone, double sync);

  // go_on() puts another pass behind this one; repeated() returns this one so many times.
  void go_on(const Pace& next);
  Pace repeated(std::int64_t times) const;

  RankClock operator()(const RankClock& begin) const;

 private:
  using Row = std::array<double, 3>;  // seconds behind each part of the clock at the beginning
  static Row later(const Row& row, double seconds);
  static Row last_of(const Row& a, const Row& b);
  Row after(const Row& row, const Pace& before) const;

  Row host_, kernel_, ready_;
  double spent_ = 0;  // with what the host does next
};

// This is what a pass takes of each, in seconds, whatever waits for whatever.
struct Work {
  double host = 0, kernels = 0;
  double exchange = 0;    // of tokens, on the stream for them
  double operations = 0;  // that are written for it, to some ten per cent

  Work& operator+=(const Work& more);
};
// Two passes on one device that take turns: neither waits for the other's tokens. Both begin when
// all that both need is there.
struct PairClock {
  RankClock clock{};
  double exchange = 0;  // when the last tokens are there

  void run_both(const Work& work);
};

// This is the pace of a piece of the model.
struct PacedPiece {
  Pace forward, backward;
  Work ahead{}, back{};  // of these
};
// This is what a stage does beside its turns, in seconds.
struct StageCosts {
  double post = 0;                 // to ask for a message, or to send one
  double sync = 0;                 // to wait until all has arrived
  std::vector<double> messages{};  // on their way from each stage to the next, or back; empty: none
};
// These are seconds that the parameters and gradients of a stage are under way at the least.
struct StageTraffic {
  double before = 0;         // until the last piece has the parameters for its first micro-batch
  double behind = 0;         // from where gradients may be whole
  bool in_backward = false;  // that is, in the last micro-batch's passes; else behind all turns
};
// When the last stage is done with its last turn, [stage][piece], and with its traffic, [stage];
// only where pieces go round the stages, and backward passes are whole.
double end_of_turns(const PipelineParallel& pipeline,
                    const std::vector<std::vector<PacedPiece>>& stages, std::int64_t micro_batches,
                    const StageHabits& habits, const StageCosts& costs,
                    std::vector<StageTraffic> traffic = {});
// Returns the same for one stage, each of whose passes forward runs beside the backward pass of the
// one before.
double end_of_pairs(const PacedPiece& piece, std::int64_t micro_batches);

}  // namespace stepsim
