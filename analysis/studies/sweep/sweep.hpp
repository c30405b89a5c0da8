// This evaluates every point of a sweep, in workers on all cores.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/studies/sweep/sweep_journal.hpp"
#include "analysis/studies/sweep/sweep_table.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

struct Shard {
  std::size_t number = 1;  // from 1
  std::size_t of = 1;
};

// Money buys GPUs by the hour; what it says of a cluster's GPUs, where anybody has a price of them.
struct SweepPrice {
  std::string said;  // results depend on it
  std::function<std::optional<double>(const Cluster&)> of{};
  std::optional<double> budget{};
};

struct SweepQuestion {
  Catalogue data;
  SweepPlan plan;
  Shard shard;                // every so many-th point
  std::string journal;        // where finished points are kept until finish(); empty: nowhere
  std::uint32_t samples = 0;  // draws of the constants behind an interval for each point
  std::size_t workers = usual_workers();
  SweepPrice price{};
  Progress progress{};
  std::function<void(std::size_t point, const Outcome&)> heard{};  // of each that was computed
  std::function<bool()> stop{};  // asked once a second at least: whether to give up what is left
};

// Points of a sweep that are asked for bit by bit. `files` were read beside the scenario.
class SweepRun {
 public:
  SweepRun(SweepQuestion question, std::vector<SweepValues> points,
           const std::set<std::string>& files);

  // Evaluates the points in workers; those that are known already are not computed again. Where it
  // was told to stop, some stay unknown, and so do those that take more memory than the workers may
  // together: so many bytes beside what they begin with; 0: any.
  void answer(std::span<const std::size_t> points, double memory = 0);
  bool knows(std::size_t point) const { return known_.contains(point); }
  const Outcome& outcome(std::size_t point) const;  // that is known
  SweepTable table(std::span<const std::size_t> points) const;

 private:
  SweepQuestion question_;
  std::vector<SweepValues> points_;
  SweepTable frame_;  // without rows
  std::unique_ptr<SweepJournal> journal_;
  std::map<std::size_t, Outcome> known_;
};

// Throws UserError when a key or a value can mean nothing; what merely cannot be is a row. A point
// whose worker dies is a row with that reason, and stays out of the journal. Points that the
// journal has are not computed again; the caller removes it when the table is written and every
// point in it was answered.
SweepTable run_sweep(const SweepQuestion& question);

}  // namespace stepsim
