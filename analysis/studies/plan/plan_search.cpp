#include "analysis/studies/plan/plan_search.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/studies/plan/plan_draws.hpp"
#include "analysis/studies/plan/plan_queue.hpp"
#include "analysis/studies/sweep/sweep.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// A worker may take so much at least, whatever is left of the memory that a search may take.
constexpr double least_memory = 100e6;  // bytes
// A replay takes so much for each operation that is written, with what it finds out about them.
constexpr double bytes_of_operation = 190;
constexpr std::size_t first_bounds = 2000, first_replays = 4;
constexpr std::size_t replays_at_once = 8;  // whatever the machine, so that the answer is the same

bool is_tight(const Outcome& outcome, double share) {
  const auto peak = outcome.of("peak_memory"), capacity = outcome.of("memory_capacity");
  return outcome.feasible && peak && capacity && *peak > share * *capacity;
}

// This keeps the best so far, best first. Of plans that come to the same it keeps the one that
// stands first in the space.
class Best {
 public:
  Best(PlanGoal goal, std::size_t most, double share) : goal_(goal), most_(most), share_(share) {}

  std::size_t size() const { return all_.size(); }
  std::optional<std::size_t> first() const {
    return all_.empty() ? std::nullopt : std::optional(all_.begin()->second);
  }
  double least() const { return all_.empty() ? unreached : all_.begin()->first.front(); }
  // A plan that does not come below is not among the best.
  double worst() const {
    return all_.size() < most_ ? unreached : std::prev(all_.end())->first.front();
  }
  void add(std::size_t plan, const Outcome& outcome) {
    if (!outcome.feasible || is_tight(outcome, share_)) return;
    const auto [place, added] =
        all_.try_emplace({goal_of(outcome, goal_), outcome.of("step_time").value_or(unreached),
                          outcome.of("peak_memory").value_or(unreached)},
                         plan);
    place->second = std::min(place->second, plan);
    if (all_.size() > most_) all_.erase(std::prev(all_.end()));
  }
  std::vector<std::size_t> plans() const {
    return mapped(all_, [](const auto& each) { return each.second; });
  }

 private:
  PlanGoal goal_;
  std::size_t most_;
  double share_;
  std::map<std::array<double, 3>, std::size_t> all_;
};

using SearchClock = std::chrono::steady_clock;

double seconds_since(SearchClock::time_point begin) {
  return std::chrono::duration<double>(SearchClock::now() - begin).count();
}

// Draws of the constants may take this share of the time that a search has.
constexpr double share_of_draws = 0.25;

// A search keeps what it has replayed when it goes on with other plans.
class SearchOfPlans {
 public:
  SearchOfPlans(const PlanSpace& space, const PlanSearch& search)
      : space_(space),
        search_(search),
        bounds_(space),
        best_(search.goal, search.top, 1),
        run_(question(), space.points, {space.asked.files.begin(), space.asked.files.end()}) {}
  SearchOfPlans(const SearchOfPlans&) = delete;
  SearchOfPlans& operator=(const SearchOfPlans&) = delete;
  ~SearchOfPlans() = default;

  // Replays plans until none is left that may be among the best of those that leave so much memory.
  PlanAnswer best_that_leave(double free) {
    best_ = Best(search_.goal, search_.top, 1 - free);
    for (const std::size_t plan : replayed_) best_.add(plan, run_.outcome(plan));
    replay_own();
    find_bounds(1 - free);
    PlanAnswer answer;
    answer.free = free;
    answer.plans = space_.plans.size();
    answer.too_large = answer.plans - queue_->left();
    for (const std::size_t plan : replayed_)
      if (!queue_->drop(plan)) --answer.too_large;
    while (fill_batch()) replay_batch();
    replay_dear();
    conclude(answer);
    return answer;
  }

  bool is_interrupted() const { return search_.interrupted && search_.interrupted(); }
  bool is_over(double kept = 0) const {
    return is_interrupted() ||
           (search_.within > 0 && seconds_since(search_.begun) + kept >= search_.within);
  }

 private:
  SweepQuestion question() {
    SweepQuestion question{.data = search_.data,
                           .plan = space_.sweep,
                           .shard = {},
                           .journal = search_.journal,
                           .workers = search_.workers};
    question.heard = [this](std::size_t plan, const Outcome& outcome) { best_.add(plan, outcome); };
    question.stop = [this] {
      tell();
      return is_over(seconds_of_draws());
    };
    return question;
  }

  // A few of many plans are bounded and replayed before the others, so that there is an answer
  // soon.
  void find_bounds(double share) {
    std::vector<std::size_t> all(space_.plans.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto find = [&](const std::vector<std::size_t>& plans) {
      bounds_.find(plans, search_.workers, [this] {
        tell();
        return is_over();
      });
      queue_.emplace(space_, bounds_, search_, share, plans);
    };
    if (!bounded_ && search_.prune && all.size() > 4 * first_bounds) {
      std::vector<std::size_t> some;
      some.reserve(first_bounds + 1);
      for (std::size_t plan = 0; plan < all.size(); plan += all.size() / first_bounds)
        some.push_back(plan);
      find(some);
      if (fill_batch()) {
        batch_.resize(std::min(batch_.size(), first_replays));
        replay_batch();
      }
    }
    if (bounded_)
      queue_.emplace(space_, bounds_, search_, share, all);
    else
      find(all);
    bounded_ = true;
  }

  double seconds_of_draws() const {
    const double replays = static_cast<double>(best_.size()) * search_.samples;
    return std::min(replays * seconds_of_replay_, share_of_draws * search_.within);
  }

  double memory_of_workers() const {
    return search_.memory > 0 ? std::max(least_memory, search_.memory - own_memory()) : 0;
  }

  // Returns whether a replay needs more than its part of the memory of so many workers.
  bool is_dear(std::size_t plan, std::size_t workers) const {
    return search_.memory > 0 && bounds_.cost(plan) * bytes_of_operation >
                                     memory_of_workers() / static_cast<double>(workers);
  }

  // Takes the next plans out of the queue. Returns false where none is left, or no time.
  bool fill_batch() {
    batch_.clear();
    while (const std::optional<double> least = queue_->least()) {
      if (search_.prune && *least > best_.worst()) break;
      if (is_over(seconds_of_draws())) {
        for (const std::size_t plan : batch_) queue_->put_back(plan);
        return false;
      }
      const std::optional<std::size_t> plan = queue_->next();
      if (!plan || dear_.contains(*plan)) continue;
      if (!run_.knows(*plan) && is_dear(*plan, search_.workers))
        dear_.insert(*plan);
      else
        batch_.push_back(*plan);
      if (batch_.size() == replays_at_once) break;
    }
    // A plan that is soon replayed may be the first that fits.
    std::ranges::sort(batch_, {}, [this](std::size_t plan) { return bounds_.cost(plan); });
    return !batch_.empty();
  }

  // The split that somebody has goes first: no answer is worse, and it may fit where its bound
  // leaves too little free.
  void replay_own() {
    if (!space_.own || replayed_.contains(*space_.own) || is_over()) return;
    const std::vector<std::size_t> own{*space_.own};
    bounds_.find(own, 1, [] { return false; });
    if (is_dear(own.front(), 1)) return;
    run_.answer(own, memory_of_workers());
    if (!run_.knows(own.front())) return;
    replayed_.insert(own.front());
    best_.add(own.front(), run_.outcome(own.front()));
  }

  // One after the other these have the memory of all workers.
  void replay_dear() {
    std::vector<std::size_t> dear(dear_.begin(), dear_.end());
    std::ranges::sort(dear, {}, [this](std::size_t plan) { return queue_->least_of(plan); });
    for (const std::size_t plan : dear) {
      if (is_over(seconds_of_draws()) || queue_->least_of(plan) > best_.worst()) return;
      if (is_dear(plan, 1)) continue;
      dear_.erase(plan);
      batch_ = {plan};
      replay_batch();
    }
  }

  void replay_batch() {
    const auto begin = SearchClock::now();
    const std::size_t count = batch_.size();
    run_.answer(batch_, memory_of_workers());
    for (const std::size_t plan : batch_) {
      if (run_.knows(plan)) {
        replayed_.insert(plan);
        best_.add(plan, run_.outcome(plan));  // that a journal had, too
      } else if (is_over(seconds_of_draws())) {
        queue_->put_back(plan);
      } else {
        dear_.insert(plan);
      }
    }
    batch_.clear();
    seconds_of_replay_ =
        std::max(seconds_of_replay_, seconds_since(begin) / static_cast<double>(count));
  }

  void tell() const {
    if (!search_.tell || !queue_) return;
    SoFar so_far{.plan = best_.first(),
                 .goal = best_.least(),
                 .least = bounded_ ? queue_->least().value_or(unreached) : 0,
                 .replayed = replayed_.size(),
                 .seconds = seconds_since(search_.begun)};
    for (const std::size_t plan : batch_) {
      if (run_.knows(plan))
        ++so_far.replayed;
      else
        so_far.least = std::min(so_far.least, queue_->least_of(plan));
    }
    search_.tell(so_far);
  }

  void conclude(PlanAnswer& answer) {
    const double worst = best_.worst();
    for (const std::size_t plan : dear_) {
      queue_->drop(plan);
      if (queue_->least_of(plan) > worst) continue;
      queue_->put_back(plan);
      ++answer.open.too_dear;
    }
    answer.open.plans = queue_->left_to(worst);
    if (answer.open.plans > 0) answer.open.least = *queue_->least();
    answer.open.interrupted = is_interrupted();
    answer.replays.assign(replayed_.begin(), replayed_.end());
    answer.replayed = replayed_.size();
    answer.too_slow = answer.plans - answer.too_large - answer.replayed - answer.open.plans;
    for (const std::size_t plan : replayed_) {
      answer.failed += run_.outcome(plan).feasible ? 0 : 1;
      answer.tight += is_tight(run_.outcome(plan), 1 - answer.free) ? 1 : 0;
    }
    answer.table = run_.table(answer.replays);
    answer.table.title = space_.asked.name;
    for (const std::size_t plan : best_.plans())
      answer.best.push_back({plan, bounds_[plan], run_.outcome(plan), {}, 1, 0});
    if (space_.own && replayed_.contains(*space_.own)) add_own(answer, *space_.own);
    if (!answer.best.empty() || space_.asked.grpo) return;
    answer.smallest = bounds_.smallest();
    if (answer.smallest) answer.smallest_bytes = bounds_[*answer.smallest].bytes;
  }

  void add_own(PlanAnswer& answer, std::size_t plan) const {
    answer.own = OwnPlan{.plan = plan, .outcome = run_.outcome(plan), .cause = {}};
    if (!answer.best.empty())
      std::tie(answer.own->cause, answer.own->lost) =
          most_lost(answer.best.front().outcome, answer.own->outcome);
  }

  const PlanSpace& space_;
  const PlanSearch& search_;
  PlanBounds bounds_;
  Best best_;
  bool bounded_ = false;  // all bounds are known
  std::optional<PlanQueue> queue_;
  std::vector<std::size_t> batch_;  // that is being replayed
  std::set<std::size_t> replayed_, dear_;
  double seconds_of_replay_ = 0;  // with all workers at work
  SweepRun run_;
};

}  // namespace

double goal_of(const Outcome& outcome, PlanGoal goal) {
  if (goal == PlanGoal::memory) return outcome.of("peak_memory").value_or(unreached);
  if (goal == PlanGoal::energy) return outcome.of("energy").value_or(unreached);
  const double time = outcome.of("step_time").value_or(unreached);
  return goal == PlanGoal::time ? time : time * outcome.of("gpus").value_or(1);
}

std::pair<std::string, Seconds> most_lost(const Outcome& first, const Outcome& second) {
  constexpr std::string_view group = "time.";
  std::pair<std::string, Seconds> most;
  for (const NamedMetric& metric : all_metrics()) {
    if (!metric.name.starts_with(group)) continue;
    const double more = second.of(metric.name).value_or(0) - first.of(metric.name).value_or(0);
    if (more > most.second.value) most = {metric.name.substr(group.size()), {more}};
  }
  return most;
}

PlanAnswer search_plans(const PlanSpace& space, const PlanSearch& search) {
  SearchOfPlans plans(space, search);
  PlanAnswer answer = plans.best_that_leave(search.free);
  // Better one that just fits than none.
  if (answer.best.empty() && search.free > 0) {
    PlanAnswer tight = plans.best_that_leave(0);
    if (!tight.best.empty()) answer = std::move(tight);
  }
  if (!answer.best.empty())
    add_draws(
        space, search, [&] { return plans.is_over(); }, answer);
  return answer;
}

}  // namespace stepsim
