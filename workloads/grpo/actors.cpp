#include "workloads/grpo/actors.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <queue>
#include <random>
#include <stdexcept>
#include <utility>

#include "sim/base/lists.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/grpo/packing.hpp"

namespace stepsim {
namespace {

enum class What : std::uint8_t {
  engine,
  failed,
  seen,
  back,
  scored,
  reward,
  verified,
  trained,
  sync_due,
  gathered,
  synced
};

struct Event {
  double time;
  std::uint64_t number;  // of two at one time the one that was set first
  What what;
  std::size_t whom;

  friend bool operator>(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }
};

struct GroupResult {
  std::vector<Sequence> samples;
  double tokens = 0;         // generated
  std::int64_t version = 0;  // the oldest weights in it
};

// Groups that a learner hands to an engine, and waits for.
struct Call {
  std::size_t learner = 0;
  std::vector<std::uint32_t> groups;
};

struct Batch {
  std::vector<GroupResult> groups;
  std::int64_t step = 0;
  double full = 0, verified = 0;  // all responses were there; their rewards, too
};

// Puts groups and samples in the order of prompts: in the order in which they came, one learner
// would have all that took long.
void in_order_of_prompts(Batch& batch) {
  std::sort(batch.groups.begin(), batch.groups.end(), [](const auto& a, const auto& b) {
    return a.samples.front().group < b.samples.front().group;
  });
  for (GroupResult& group : batch.groups)
    std::sort(group.samples.begin(), group.samples.end(),
              [](const Sequence& a, const Sequence& b) { return a.sample < b.sample; });
}

class Actors {
 public:
  explicit Actors(const GrpoInput& input) : in_(input), grpo_(input.grpo) {
    for (std::size_t i = 0; i < input.engines; ++i) {
      EngineLimits limits = input.limits;
      if (i < input.speeds.size()) limits.speed = input.speeds[i];
      out_.engines.emplace_back(input.decode, limits);
    }
    times_.assign(input.engines, -1);
    lost_.resize(input.engines);
    for (std::size_t i = 0; i < input.engines; ++i)
      luck_.emplace_back(input.failures.seed * 0x9e3779b97f4a7c15ULL + i);
    calls_.resize(input.engines);
    left_.resize(input.learners);
    scored_.resize(input.learners);
    for (const Scorer& scorer : input.scorers)
      free_.emplace_back(std::max<std::size_t>(1, scorer.servers), 0);
  }

  GrpoRun run() {
    // The engines get the learners' weights before anything is generated.
    out_.first_sync = {0, in_.sync.gather.value, sync_alone()};
    now_ = synced_at_ = out_.first_sync.end;
    for (std::size_t i = 0; i < in_.engines; ++i) next_failure(i);
    const std::int64_t ahead = grpo_.async_steps > 0 && !replaced_at_once() ? 1 : 0;
    if (in_parts())
      deal_prompts();
    else if (in_calls())
      call_for_step();
    else
      add_prompts(in_rounds() ? grpo_.round_prompts
                  : begins_more()
                      ? begun()
                      : (std::max<std::int64_t>(1, grpo_.async_steps) + ahead) * grpo_.prompts);
    while (static_cast<std::int64_t>(out_.steps.size()) < wanted_steps()) {
      if (events_.empty()) throw std::logic_error("GRPO actors wait for each other for ever");
      const Event event = events_.top();
      events_.pop();
      if (event.what == What::engine && event.time != times_[event.whom]) continue;  // was cut
      now_ = event.time;
      ++out_.events;
      handle(event);
    }
    out_.end = now_;
    for (const GroupResult& group : open_) out_.waiting += group.tokens;
    for (const GroupResult& group : results_) out_.waiting += group.tokens;
    for (const GroupResult& group : accepted_) out_.waiting += group.tokens;
    for (const auto* batches : {&unverified_, &batches_})
      for (const Batch& batch : *batches)
        for (const GroupResult& group : batch.groups) out_.waiting += group.tokens;
    return std::move(out_);
  }

 private:
  std::int64_t wanted_steps() const { return grpo_.warmup_steps() + grpo_.measured_steps; }

  double sync_alone() const {
    const SyncCost& s = in_.sync;
    return s.gather.value + s.send.value + s.pause.value;
  }

  void at(double time, What what, std::size_t whom) {
    events_.push({time, counter_++, what, whom});
  }

  void handle(const Event& event) {
    switch (event.what) {
      case What::engine:
        engine_boundary(event.whom);
        break;
      case What::failed:
        engine_failed(event.whom);
        break;
      case What::seen:
        failure_seen(event.whom);
        break;
      case What::back:
        engine_back(event.whom);
        break;
      case What::scored:
        rows_scored(event.whom);
        break;
      case What::reward:
        result_arrived(event.whom);
        break;
      case What::verified:
        batch_verified();
        break;
      case What::trained:
        trained();
        break;
      case What::sync_due:
        sync_due();
        break;
      case What::gathered:
        send_weights();
        break;
      case What::synced:
        synced();
        break;
    }
  }

  // ---- prompts and engines

  void enqueue_prompt() {
    prompts_.push_back(next_group_++);
    ++outstanding_;
    out_.most_prompts = std::max(out_.most_prompts, outstanding_);
  }

  void add_prompts(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) enqueue_prompt();
    dispatch();
  }

  // Code that drops old results asks for a prompt whenever it takes a result, older code for those
  // of one step whenever learners begin one.
  bool replaced_at_once() const { return grpo_.async_steps > 0 && grpo_.drop_stale; }

  // Returns whether more groups are begun than are needed, so that the last ones need not be waited
  // for: engines and learners take turns then.
  bool begins_more() const { return grpo_.async_steps == 0 && grpo_.oversampling > 1; }
  std::int64_t begun() const {
    return std::llround(std::ceil(grpo_.oversampling * static_cast<double>(grpo_.prompts)));
  }

  // Returns whether all of a round is waited for, and rounds follow each other until there are
  // enough: engines and learners take turns then.
  bool in_rounds() const { return grpo_.async_steps == 0 && grpo_.round_prompts > 0; }

  // There are enough.
  void stop_engines() {
    closed_ = true;
    for (std::size_t i = 0; i < out_.engines.size(); ++i) {
      if (grpo_.partial_rollouts)
        out_.engines[i].put_aside(now_);
      else
        out_.engines[i].give_up(now_);
      watch(i);
    }
  }

  // Forgets what engines gave up: it is nobody's group any more.
  void forget_open_groups() {
    prompts_.clear();
    homeless_.clear();
    for (auto& groups : lost_) groups.clear();
    outstanding_ = static_cast<std::int64_t>(results_.size());
    for (GroupResult& group : open_) {
      const auto answered = static_cast<std::int64_t>(group.samples.size());
      if (answered == 0) continue;
      if (answered == grpo_.samples) {
        ++outstanding_;  // its rewards are on their way
        continue;
      }
      out_.given_up += group.tokens;
      group = {};
    }
  }

  // ---- engines that fail

  void next_failure(std::size_t engine) {
    if (in_.failures.mtbf <= 0) return;
    const double odds = (static_cast<double>(luck_[engine]() >> 11U) + 0.5) * 0x1p-53;
    at(now_ - in_.failures.mtbf * std::log(odds), What::failed, engine);
  }

  void engine_failed(std::size_t engine) {
    ++out_.engine_failures;
    auto& groups = lost_[engine];
    for (const Sequence& s : out_.engines[engine].fail(now_)) {
      if (groups.empty() || groups.back().front().group != s.group) groups.emplace_back();
      groups.back().push_back(s);
    }
    watch(engine);
    at(now_ + in_.failures.notice, What::seen, engine);
    if (draining_) drain();
  }

  // Others are asked for what it had, before anything new.
  void failure_seen(std::size_t engine) {
    for (auto& group : lost_[engine]) homeless_.push_back(std::move(group));
    lost_[engine].clear();
    at(now_ + in_.failures.start, What::back, engine);
    dispatch();
  }

  void engine_back(std::size_t engine) {
    out_.engines[engine].start_again(now_, engine_version_);
    watch(engine);
    next_failure(engine);
    dispatch();
  }

  // The next engine in turn that has room for so many; none: their number.
  std::size_t engine_with_room(std::int64_t samples) {
    std::size_t tried = 0;
    while (tried < out_.engines.size() && !out_.engines[turn_].room_for(samples)) {
      turn_ = (turn_ + 1) % out_.engines.size();
      ++tried;
    }
    return tried == out_.engines.size() ? tried : turn_;
  }

  // Engines with room take prompts in turn.
  void dispatch() {
    if (closed_) return;
    while (!homeless_.empty()) {
      const std::size_t engine = engine_with_room(std::ssize(homeless_.front()));
      if (engine == out_.engines.size()) return;
      out_.engines[engine].give(now_, homeless_.front());
      watch(engine);
      homeless_.pop_front();
      turn_ = (turn_ + 1) % out_.engines.size();
    }
    while (!prompts_.empty()) {
      const std::size_t engine = engine_with_room(grpo_.samples);
      if (engine == out_.engines.size()) return;
      give(engine, prompts_.front());
      prompts_.pop_front();
      turn_ = (turn_ + 1) % out_.engines.size();
    }
  }

  void give(std::size_t engine, std::uint32_t group) {
    const std::vector<Sequence> samples = samples_of(group);
    out_.engines[engine].give(now_, samples);
    watch(engine);
  }

  std::vector<Sequence> samples_of(std::uint32_t group) {
    std::vector<Sequence> samples;
    for (std::int64_t i = 0; i < grpo_.samples; ++i) {
      const auto sample = static_cast<std::uint32_t>(i);
      samples.push_back({.group = group,
                         .sample = sample,
                         .prompt = grpo_.prompt_tokens,
                         .target = response_tokens(grpo_, group, sample),
                         .asked = grpo_.response_limit,
                         .done = 0,
                         .first_version = engine_version_,
                         .mixed = false});
    }
    open_.resize(std::max<std::size_t>(open_.size(), group + 1));
    return samples;
  }

  // ---- a part of the step at a time

  bool in_parts() const { return grpo_.rollout_at_once > 0; }

  // Learners share out the step's prompts.
  void deal_prompts() {
    const auto prompts = static_cast<std::size_t>(grpo_.prompts);
    for (std::size_t learner = 0; learner < in_.learners; ++learner)
      for (std::size_t i = learner * prompts / in_.learners;
           i < (learner + 1) * prompts / in_.learners; ++i) {
        left_[learner].push_back(next_group_++);
        ++outstanding_;
      }
    out_.most_prompts = std::max(out_.most_prompts, outstanding_);
    for (std::size_t learner = 0; learner < in_.learners; ++learner) hand_over(learner);
  }

  // Hands the learner's next call to its engine.
  void hand_over(std::size_t learner) {
    std::deque<std::uint32_t>& left = left_[learner];
    if (left.empty()) return;
    const std::int64_t most = std::max<std::int64_t>(1, grpo_.rollout_at_once / grpo_.samples);
    const auto count = std::min(left.size(), static_cast<std::size_t>(most));
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(count);
    const std::size_t engine = learner % out_.engines.size();
    calls_[engine].push_back({learner, {left.begin(), end}});
    left.erase(left.begin(), end);
    if (calls_[engine].size() == 1) take_call(engine);
  }

  void take_call(std::size_t engine) {
    std::vector<Sequence> rows;
    for (const std::uint32_t group : calls_[engine].front().groups)
      for (const Sequence& sample : samples_of(group)) rows.push_back(sample);
    if (in_.whole_batches) end_together(rows);
    out_.engines[engine].give(now_, rows);
    watch(engine);
  }

  static void end_together(std::span<Sequence> rows) {
    std::int64_t longest = 0;
    for (const Sequence& row : rows) longest = std::max(longest, row.target);
    for (Sequence& row : rows) row.kept = std::exchange(row.target, longest);
  }

  // ---- learners that generate themselves, in calls of all of them

  bool in_calls() const { return in_.whole_batches && !in_parts(); }

  void call_for_step() {
    calls_left_ = grpo_.generate_calls;
    call_learners();
  }

  // Rows of the next call are dealt in the order of prompts: a group may be on several learners.
  void call_learners() {
    --calls_left_;
    std::vector<Sequence> rows;
    for (std::int64_t i = 0; i < grpo_.prompts / grpo_.generate_calls; ++i, ++outstanding_)
      append(rows, samples_of(next_group_++));
    out_.most_prompts = std::max(out_.most_prompts, outstanding_);
    if (in_.in_step) end_together(rows);
    const std::size_t engines = out_.engines.size();
    for (std::size_t engine = 0; engine < engines; ++engine) {
      const auto at = [&](std::size_t share) {
        return rows.begin() + static_cast<std::ptrdiff_t>(share * rows.size() / engines);
      };
      std::vector<Sequence> own(at(engine), at(engine + 1));
      if (!in_.in_step) end_together(own);
      out_.engines[engine].give(now_, own);
      watch(engine);
    }
  }

  bool all_idle() const { return std::ranges::all_of(out_.engines, &Engine::idle); }

  // The call under way is done: its learner has the rows scored, the engine takes the next call.
  void call_done(std::size_t engine) {
    const Call call = std::move(calls_[engine].front());
    calls_[engine].pop_front();
    double rows = 0, longest = 0;
    for (const std::uint32_t group : call.groups)
      for (const Sequence& s : open_[group].samples) {
        rows += 1;
        longest = std::max(longest, static_cast<double>(s.prompt + s.done));
      }
    scored_[call.learner] = call.groups;
    at(all_passes(call.learner, rows * longest), What::scored, call.learner);
    if (!calls_[engine].empty()) take_call(engine);
  }

  // When all models have read rows of so many tokens: those on the learner's own GPUs one after the
  // other, the others beside them, each behind what it was given before.
  double all_passes(std::size_t learner, double tokens) {
    double here = now_, last = now_;
    for (std::size_t i = 0; i < in_.scorers.size(); ++i) {
      const Scorer& scorer = in_.scorers[i];
      const double seconds = scorer.pass(tokens).value;
      if (scorer.servers == 0) {
        here += seconds;
        continue;
      }
      double& free = free_[i][learner % scorer.servers];
      free = std::max(free, now_) + seconds;
      last = std::max(last, free);
    }
    return std::max(here, last);
  }

  void rows_scored(std::size_t learner) {
    for (const std::uint32_t group : std::exchange(scored_[learner], {})) result_arrived(group);
    hand_over(learner);
  }

  // The engine's next event may have moved.
  void watch(std::size_t engine) {
    const double next = out_.engines[engine].next();
    if (next == times_[engine]) return;
    times_[engine] = next;
    if (next < 1e300) at(next, What::engine, engine);
  }

  void engine_boundary(std::size_t number) {
    times_[number] = -1;
    const std::vector<Sequence> finished = out_.engines[number].finish_block(now_);
    for (Sequence sample : finished) {
      if (sample.kept > 0) sample.done = sample.kept;
      GroupResult& group = open_[sample.group];
      group.samples.push_back(sample);
      group.tokens += static_cast<double>(sample.done);
      out_.generated += static_cast<double>(sample.done);
      if (!in_parts() && static_cast<std::int64_t>(group.samples.size()) == grpo_.samples)
        at(now_ + grpo_.reward_latency.value, What::reward, sample.group);
    }
    if (in_parts() && out_.engines[number].idle() && !calls_[number].empty()) call_done(number);
    watch(number);
    if (calls_left_ > 0 && all_idle()) call_learners();
    if (!finished.empty()) dispatch();  // nobody else has room for more than before
    if (draining_) drain();
  }

  // ---- results and batches

  void result_arrived(std::size_t number) {
    GroupResult group = std::move(open_[number]);
    open_[number] = {};
    group.version = group.samples.front().first_version;
    for (const Sequence& s : group.samples)
      group.version = std::min(group.version, s.first_version);
    results_.push_back(std::move(group));
    out_.most_results = std::max(out_.most_results, static_cast<std::int64_t>(results_.size()));
    prepare();
  }

  bool may_prepare() const {
    return prepared_ - consumed_ <= std::max<std::int64_t>(1, grpo_.async_steps);
  }

  void replace_prompt() { add_prompts(1); }

  bool useless(const GroupResult& group) const {
    return grpo_.filter_zero_std && grpo_.zero_std_fraction > 0 &&
           without_signal(grpo_, group.samples.front().group);
  }

  void throw_away(const GroupResult& group) {
    out_.filtered += group.tokens;
    ++out_.filtered_groups;
  }

  // When a round is done: the first groups with a signal, in the order of their prompts, or one
  // round more.
  void prepare_round() {
    if (outstanding_ == 0 || std::ssize(results_) < outstanding_) return;
    std::ranges::sort(results_, {},
                      [](const GroupResult& group) { return group.samples.front().group; });
    for (GroupResult& group : std::exchange(results_, {}))
      if (useless(group))
        throw_away(group);
      else
        accepted_.push_back(std::move(group));
    outstanding_ = 0;
    if (std::ssize(accepted_) < grpo_.prompts) return add_prompts(grpo_.round_prompts);
    for (; std::ssize(accepted_) > grpo_.prompts; accepted_.pop_back())
      out_.given_up += accepted_.back().tokens;
    batch_full({std::exchange(accepted_, {}), prepared_++, now_, now_});
  }

  // Takes results until a batch is full; each one that is taken makes room for a prompt.
  void prepare() {
    if (in_rounds()) return prepare_round();
    while (!results_.empty() && may_prepare()) {
      GroupResult group = std::move(results_.front());
      results_.pop_front();
      --outstanding_;
      if (grpo_.drop_stale && grpo_.async_steps > 0 &&
          prepared_ - group.version > grpo_.async_steps) {
        out_.stale += group.tokens;
        ++out_.stale_groups;
        replace_prompt();
        continue;
      }
      const bool without = useless(group);
      if (replaced_at_once() || (without && grpo_.active_sampling)) replace_prompt();
      if (!without || !grpo_.active_sampling) ++counted_;
      if (without)
        throw_away(group);
      else
        accepted_.push_back(std::move(group));
      if (counted_ < grpo_.prompts) continue;
      batch_full({std::move(accepted_), prepared_++, now_, now_});
      accepted_.clear();
      counted_ = 0;
    }
  }

  double rewards_of(double responses) const {
    return std::ceil(responses / static_cast<double>(grpo_.verifiers)) * grpo_.verify_time.value;
  }

  // Ahead, verifiers are beside learners: one batch after the other. In turn these wait for them.
  void batch_full(Batch batch) {
    if (grpo_.async_steps > 0 && grpo_.verify_time.value > 0) {
      double responses = 0;
      for (const GroupResult& group : batch.groups)
        responses += static_cast<double>(group.samples.size());
      verifying_until_ = std::max(now_, verifying_until_) + rewards_of(responses);
      batch.verified = verifying_until_;
      at(verifying_until_, What::verified, 0);
      unverified_.push_back(std::move(batch));
      return;
    }
    batches_.push_back(std::move(batch));
    learn();
  }

  void batch_verified() {
    batches_.push_back(std::move(unverified_.front()));
    unverified_.pop_front();
    learn();
  }

  // ---- learners

  static std::vector<std::int64_t> lengths_of(const Batch& batch) {
    std::vector<std::int64_t> lengths;
    for (const GroupResult& group : batch.groups)
      for (const Sequence& s : group.samples) lengths.push_back(s.prompt + s.done);
    return lengths;
  }

  double seconds_of(const Updates& work, const TrainingCost& cost) const {
    double seconds = 0;
    for (const std::vector<double>& rounds : work.rounds) seconds += cost(rounds).value;
    return seconds * static_cast<double>(grpo_.epochs);
  }

  Updates updates(const Batch& batch, StepRecord& record) {
    const std::vector<std::int64_t> lengths = lengths_of(batch);
    for (const GroupResult& group : batch.groups) {
      for (const Sequence& s : group.samples) {
        const double age = static_cast<double>(batch.step - s.first_version);
        record.staleness += age;
        record.most_stale = std::max(record.most_stale, age);
        record.mixed += s.mixed ? 1 : 0;
        record.truncated += s.done >= grpo_.response_limit ? 1 : 0;
      }
    }
    const double count = static_cast<double>(std::max<std::size_t>(1, lengths.size()));
    record.staleness /= count;
    record.mixed /= count;
    record.truncated /= count;
    record.responses = static_cast<double>(lengths.size());
    Updates updates = updates_of(grpo_, lengths, in_.learners);
    record.tokens = updates.tokens;
    record.dropped_tokens = updates.dropped;
    record.packs = updates.micro_batches;
    for (const std::vector<double>& rounds : updates.rounds)
      for (const double tokens : rounds)
        record.longest_pack = std::max(record.longest_pack, tokens);
    return updates;
  }

  void learn() {
    if (busy_ || batches_.empty()) return;
    busy_ = true;
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    if (grpo_.batching != Batching::packs) in_order_of_prompts(batch);
    consumed_ = batch.step;
    StepRecord record;
    record.start = now_;
    record.wait = now_ - synced_at_;
    const Updates work = updates(batch, record);
    account(batch, record);
    record.train = seconds_of(work, in_.training);
    record.reference = in_.reference.value;
    const double rewards = grpo_.async_steps > 0 ? 0 : rewards_of(record.responses);
    // Ahead, what of the wait verifiers made.
    const double waited =
        std::clamp(batch.verified - std::max(batch.full, synced_at_), 0.0, record.wait);
    record.wait -= waited;
    record.rewards = rewards + waited;
    if (in_.beside)
      beside_until_ =
          now_ + rewards +
          seconds_of(updates_of(grpo_, lengths_of(batch), in_.beside_learners), in_.beside);
    out_.steps.push_back(record);
    if (begins_more()) stop_engines();
    at(now_ + rewards + record.reference + record.train, What::trained, 0);
    prepare();  // one batch less is waiting
  }

  // Generated tokens leave the books either packed or dropped; prompts are not counted.
  void account(const Batch& batch, const StepRecord& record) {
    double generated = 0, all = 0;
    for (const GroupResult& group : batch.groups) {
      generated += group.tokens;
      for (const Sequence& s : group.samples) all += static_cast<double>(s.prompt + s.done);
    }
    const double kept = all > 0 ? generated * record.tokens / all : 0;
    out_.trained += kept;
    out_.left_over += generated - kept;
  }

  // ---- weight sync

  void trained() {
    const double due = last_sync_ + grpo_.sync_interval.value;
    if (now_ >= due) return begin_sync();
    // Later: at once if learners wait then, else behind their step.
    if (!sync_due_) at(due, What::sync_due, 0);
    sync_due_ = true;
    step_done();
    learn();
  }

  // The first learner saves when it has done what it was told before; until then engines take no
  // prompts, as while weights change.
  void sync_due() {
    sync_due_ = false;
    closed_ = true;
    asked_ = now_;
    if (busy_) return;
    busy_ = true;
    begin_sync();
  }

  void begin_sync() {
    closed_ = true;
    if (const auto asked = std::exchange(asked_, std::nullopt))
      out_.steps.back().queued = now_ - *asked;
    drain_started_ = now_;
    if (grpo_.sync_aborts)
      for (std::size_t i = 0; i < out_.engines.size(); ++i) {
        out_.engines[i].begin_anew(now_);
        watch(i);
      }
    if (grpo_.inflight_updates || grpo_.sync_aborts || begins_more())
      sync();
    else
      drain();
  }

  void drain() {
    draining_ = true;
    if (!all_idle()) return;
    draining_ = false;
    sync();
  }

  // Learners gather while engines go on.
  void sync() {
    StepRecord& record = out_.steps.back();
    // A sync that comes late is of the last step.
    if (record.end > 0) record.late = drain_started_ - record.end;
    record.drain = now_ - drain_started_;
    record.gather = in_.sync.gather.value;
    at(now_ + record.gather, What::gathered, 0);
  }

  void send_weights() {
    StepRecord& record = out_.steps.back();
    const SyncCost& cost = in_.sync;
    record.send = cost.send.value;
    record.pause = cost.pause.value;
    record.calls = wait_for_engines(grpo_.protocol, cost, out_.engines);
    const double sending = record.send + record.calls;
    for (std::size_t i = 0; i < out_.engines.size(); ++i) {
      if (grpo_.protocol == SyncProtocol::v1 && !grpo_.sync_aborts)
        out_.engines[i].pace(now_, out_.engines[i].iteration() * slowed_by(cost, sending));
      else
        out_.engines[i].pause(now_);
      watch(i);
    }
    const double sent = now_ + sending + record.pause;
    record.beside = std::max(0.0, beside_until_ - sent);
    at(sent + record.beside, What::synced, 0);
  }

  void synced() {
    last_sync_ = now_;
    engine_version_ = static_cast<std::int64_t>(out_.steps.size());
    closed_ = false;
    for (std::size_t i = 0; i < out_.engines.size(); ++i) {
      if (grpo_.protocol == SyncProtocol::v1 && !begins_more() && !grpo_.sync_aborts) {
        out_.engines[i].set_version(engine_version_);
        out_.engines[i].pace(now_, 0);
      } else {
        out_.engines[i].pace(now_, 0);
        out_.engines[i].resume(now_, engine_version_);
      }
      watch(i);
    }
    const bool late = out_.steps.back().end > 0;
    step_done(late);
    if (late) dispatch();
    learn();
  }

  // Learners are free for the next one; a sync that came late ends behind its step.
  void step_done(bool late = false) {
    out_.steps.back().end = synced_at_ = now_;
    busy_ = false;
    if (late) return;
    if (begins_more() && !grpo_.partial_rollouts) forget_open_groups();
    const std::int64_t more = in_rounds()     ? grpo_.round_prompts
                              : begins_more() ? begun() - outstanding_
                                              : grpo_.prompts;
    if (in_parts())
      deal_prompts();
    else if (in_calls())
      call_for_step();
    else
      add_prompts(replaced_at_once() ? 0 : std::max<std::int64_t>(0, more));
  }

  const GrpoInput& in_;
  const Grpo& grpo_;
  GrpoRun out_;
  double now_ = 0;
  std::uint64_t counter_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<double> times_;  // [engine]: of its event that counts

  std::deque<std::uint32_t> prompts_;  // groups that no engine has taken
  std::uint32_t next_group_ = 0;
  std::int64_t outstanding_ = 0;  // prompts asked for whose results nobody took
  std::size_t turn_ = 0;
  std::int64_t calls_left_ = 0;                           // for answers of the step
  std::vector<std::mt19937_64> luck_;                     // [engine]
  std::vector<std::vector<std::vector<Sequence>>> lost_;  // [engine]: groups, nobody knows yet
  std::deque<std::vector<Sequence>> homeless_;            // groups of engines that failed
  std::vector<GroupResult> open_;                         // [group]
  std::vector<std::deque<Call>> calls_;                   // [engine]: under way and waiting
  std::vector<std::deque<std::uint32_t>> left_;           // [learner]: groups of the step
  std::vector<std::vector<std::uint32_t>> scored_;        // [learner]: of the call that is scored
  std::vector<std::vector<double>> free_;                 // [scorer][server]: from when on
  double beside_until_ = 0;                               // a critic on GPUs of its own is trained
  std::deque<GroupResult> results_;
  std::vector<GroupResult> accepted_;
  std::int64_t counted_ = 0;  // groups towards the next batch
  std::deque<Batch> unverified_, batches_;
  double verifying_until_ = 0;  // the batches before
  std::int64_t prepared_ = 0, consumed_ = -1;
  std::int64_t engine_version_ = 0;
  bool busy_ = false, closed_ = false, draining_ = false;
  bool sync_due_ = false;        // an event says when
  std::optional<double> asked_;  // for one that waits for the step under way
  // When learners were free for a step; when the last sync was over.
  double synced_at_ = 0, last_sync_ = -1e300, drain_started_ = 0;
};

}  // namespace

GrpoRun run_grpo(const GrpoInput& input) {
  return Actors(input).run();
}

}  // namespace stepsim
