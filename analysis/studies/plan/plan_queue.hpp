// The plans of a space that wait for their replay, by what they cannot come below.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "analysis/studies/plan/plan_search.hpp"

namespace stepsim {

// Bounds of a GRPO job's plans say no more before they are replayed than whether they can fit.
class PlanBounds {
 public:
  explicit PlanBounds(const PlanSpace& space);

  // Finds the bounds of these plans in workers, unless `stop` ends it; those of others stay 0.
  void find(std::span<const std::size_t> plans, std::size_t workers,
            const std::function<bool()>& stop);
  const LeastStep& operator[](std::size_t plan) const { return all_[plan]; }
  // Returns the plan with the least memory.
  std::optional<std::size_t> smallest() const;
  void look_closer(std::size_t plan);
  // Operations that a replay of the plan writes, to some ten per cent.
  double cost(std::size_t plan) const;

 private:
  LeastSteps& of(const JobPlan& plan);

  const PlanSpace& space_;
  std::map<std::uint32_t, LeastSteps> clusters_;  // by the number of nodes
  std::vector<LeastStep> all_;
};

// Plans that may fit, best bound first; of equal ones that which stands first in the space.
class PlanQueue {
 public:
  PlanQueue(const PlanSpace& space, PlanBounds& bounds, const PlanSearch& search, double share,
            std::span<const std::size_t> plans);

  // No plan that is left comes below.
  std::optional<double> least() const;
  std::size_t left() const { return queue_.size(); }
  std::size_t left_to(double goal) const;  // of them, those that may come to it or below
  double least_of(std::size_t plan) const;
  // The next plan, unless a closer look has shown that others may come before it.
  std::optional<std::size_t> next();
  void put_back(std::size_t plan);  // that could not be replayed
  bool drop(std::size_t plan);      // returns whether it waited

 private:
  struct Entry {
    double least = 0;
    std::size_t plan = 0;
    bool rough = false;
    auto operator<=>(const Entry&) const = default;
  };

  const PlanSpace& space_;
  PlanGoal goal_;
  PlanBounds& bounds_;
  std::set<Entry> queue_;
};

}  // namespace stepsim
