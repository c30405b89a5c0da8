#include "workloads/grpo/engine.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/lists.hpp"

namespace stepsim {

EngineLimits limits_of(const DecodeModel& decode, const EngineStack& stack, const Grpo& grpo) {
  const EngineStack::Scheduler& scheduler = stack.scheduler;
  if (scheduler.order == StepOrder::whole_batches) {
    constexpr std::int64_t all = std::int64_t{1} << 40;
    return {.cache = static_cast<double>(all),
            .sequences = all,
            .admitted = all,
            .block = decode.block(),
            .states = decode.state_blocks(),
            .tokens = all,
            .prompts_first = true};
  }
  return {.ranks = static_cast<std::size_t>(decode.batches()),
          .cache = decode.capacity() / static_cast<double>(decode.batches()),
          .sequences = static_cast<std::int64_t>(
              std::min(static_cast<double>(grpo.batched_sequences), decode.most_sequences())),
          .admitted = grpo.admitted_samples,
          .prefix_caching = grpo.prefix_caching,
          .block = decode.block(),
          .states = decode.state_blocks(),
          .tokens = grpo.batched_tokens,
          .prompts_first = scheduler.order == StepOrder::prompts_first,
          .reserve = {.own = scheduler.reserves_answer,
                      .first = scheduler.reserves_first,
                      .last = scheduler.reserves_last,
                      .steps = static_cast<double>(scheduler.reserves_steps)}};
}

Engine::Engine(const DecodeModel& decode, const EngineLimits& limits)
    : decode_(&decode),
      limits_(limits),
      block_tokens_(static_cast<std::int64_t>(limits.block)),
      pools_(limits.ranks,
             BlockPool(static_cast<std::int64_t>(std::floor(limits.cache / limits.block)))),
      share_(limits.reserve.first),
      budget_(limits.ranks, 0),
      batches_(limits.ranks) {}

double Engine::iteration() const {
  if (!running_block_) return 0;
  return (block_.end - block_.start) / static_cast<double>(iterations_);
}

double Engine::iterations_left() const {
  const auto longest = [](const auto& all) {
    std::int64_t most = 0;
    for (const Held& h : all) most = std::max(most, h.sequence.target - h.sequence.done);
    return static_cast<double>(most);
  };
  return longest(running_) + longest(waiting_);
}

double Engine::together(double StepBatch::*part) const {
  return std::accumulate(batches_.begin(), batches_.end(), 0.0,
                         [&](double sum, const StepBatch& b) { return sum + b.*part; });
}

double Engine::seconds_of(std::int64_t steps) const {
  return steps_time(steps) / limits_.speed;
}

double Engine::steps_time(std::int64_t steps) const {
  if (batches_.size() == 1 && batches_.front().prompt == 0)
    return decode_->steps(batches_.front().decoding, batches_.front().cached, steps, pace_);
  // The GPU that ends last may change from step to step.
  std::vector<StepBatch> ranks = batches_;
  double seconds = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    seconds += std::max(decode_->step(ranks), pace_);
    for (StepBatch& b : ranks) b.cached += b.decoding;
  }
  return seconds;
}

void Engine::count_held(double now) {
  totals_.held_seconds += static_cast<double>(held_) * (now - counted_);
  counted_ = now;
}

void Engine::give(double now, const std::vector<Sequence>& group) {
  count_held(now);
  held_ += static_cast<std::int64_t>(group.size());
  for (const Sequence& s : group) waiting_.push_back({.sequence = s});
  if (running_block_)
    cut(now);
  else
    start_block(now);
}

// ---- blocks of the cache

std::int64_t Engine::blocks_of(std::int64_t tokens) const {
  return (tokens + block_tokens_ - 1) / block_tokens_;
}

// Returns whether its blocks are enough. It needs no division: most steps of most sequences stay
// within their last block.
bool Engine::has_blocks_for(const Held& held, std::int64_t tokens) const {
  return held.computed + tokens <= (held.shared + held.own) * block_tokens_;
}

// Counts the whole blocks of the prompt; the last token is always computed, as an answer begins
// with it.
std::int64_t Engine::shareable(const Sequence& sequence) const {
  if (!limits_.prefix_caching) return 0;
  return (sequence.prompt - 1) / block_tokens_;
}

Engine::Found Engine::look_up(const Held& next) const {
  Found found;
  if (!limits_.prefix_caching) return found;
  const Sequence& s = next.sequence;
  const BlockPool& pool = pools_[next.rank];
  const auto prompt = prompts_.find({next.rank, s.group});
  if (prompt != prompts_.end())
    found.live = prompt->second.found;
  else
    found.kept = std::min(shareable(s), pool.kept({s.group, -1}));
  if (found.live + found.kept == shareable(s)) found.own = pool.kept({s.group, s.sample});
  const std::int64_t whole = (next.context() - 1) / block_tokens_;
  found.own = std::min(found.own, whole - found.live - found.kept);
  found.start = (found.live + found.kept + found.own) * block_tokens_;
  return found;
}

// Takes blocks for so many tokens more. Returns false where there are not enough.
bool Engine::grow(Held& held, std::int64_t tokens) {
  if (has_blocks_for(held, tokens)) {
    if (held.provides) show_prompt(held, tokens);
    return true;
  }
  return take_blocks(held, tokens);
}

bool Engine::take_blocks(Held& held, std::int64_t tokens) {
  const std::int64_t needed = blocks_of(held.computed + tokens);
  const std::int64_t more = needed - held.shared - held.own;
  BlockPool& pool = pools_[held.rank];
  if (more > pool.free()) return false;
  pool.take(more);
  if (!held.provides) {
    held.own += more;
    return true;
  }
  Prompt& prompt = prompts_[{held.rank, held.sequence.group}];
  const std::int64_t part = std::min(more, shareable(held.sequence) - held.shared);
  held.shared += part;
  held.own += more - part;
  prompt.blocks = held.shared;
  show_prompt(held, tokens);
  return true;
}

// Others find blocks that are full once the step that fills them is planned (v1/core of
// vllm-project/vllm, kv_cache_manager.py: allocate_slots caches whole blocks of what is computed
// and scheduled).
void Engine::show_prompt(const Held& held, std::int64_t tokens) {
  if (held.computed >= held.sequence.prompt) return;
  Prompt& prompt = prompts_[{held.rank, held.sequence.group}];
  const std::int64_t filled = (held.computed + tokens) / block_tokens_;
  prompt.found = std::max(prompt.found, std::min(prompt.blocks, filled));
}

void Engine::leave(const Held& held, bool comes_back) {
  const Sequence& s = held.sequence;
  // The end of a sequence is overwritten before its beginning, and both before its prompt.
  const std::int64_t whole = held.computed / block_tokens_ - held.shared;
  const std::int64_t kept =
      limits_.prefix_caching && comes_back ? std::clamp<std::int64_t>(whole, 0, held.own) : 0;
  BlockPool& pool = pools_[held.rank];
  pool.give_back(limits_.states + held.own - kept);
  pool.give_back({s.group, s.sample}, kept);
  if (!limits_.prefix_caching) return;
  const auto prompt = prompts_.find({held.rank, s.group});
  // The sequence that computes the prompt has alone the blocks that are not full.
  if (held.provides) {
    pool.give_back(prompt->second.blocks - prompt->second.found);
    prompt->second.blocks = prompt->second.found;
  }
  if (--prompt->second.sharers > 0) return;
  pool.give_back({s.group, -1}, prompt->second.found);
  prompts_.erase(prompt);
}

// The place of the rank's newest sequence, which it has.
std::size_t Engine::last_of(std::size_t rank) const {
  std::size_t place = running_.size() - 1;
  while (running_[place].rank != rank) --place;
  return place;
}

void Engine::preempt(std::size_t place) {
  Held last = running_[place];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
  budget_[last.rank] += std::exchange(last.planned, 0);
  leave(last, true);
  last.reached = std::max(last.reached, last.computed);
  last.computed = last.shared = last.own = 0;
  last.provides = false;
  waiting_.push_front(last);
  ++totals_.preemptions;
  preempted_ = true;
  share_ = limits_.reserve.first;
}

void Engine::forget_cache() {
  for (BlockPool& pool : pools_)
    pool = BlockPool(static_cast<std::int64_t>(std::floor(limits_.cache / limits_.block)));
  prompts_.clear();
}

void Engine::lose(Sequence& sequence) {
  totals_.made_anew += static_cast<double>(std::exchange(sequence.done, 0));
  sequence.mixed = false;
}

// Takes all sequences off; those that came first are the first to come back.
void Engine::empty() {
  empties_ = false;
  while (!running_.empty()) {
    preempt(running_.size() - 1);
    --totals_.preemptions;
  }
  forget_cache();  // weights change
  if (aside_ == Aside::anew)
    for (Held& h : waiting_) lose(h.sequence);
  if (aside_ != Aside::given_up) return;
  for (const Held& h : waiting_) totals_.given_up += static_cast<double>(h.sequence.done);
  held_ -= static_cast<std::int64_t>(waiting_.size());
  waiting_.clear();
}

// ---- one step

// Schedules running sequences in the order of their coming; one that finds no block puts out the
// one that came last.
void Engine::schedule_running() {
  const auto older = [&](std::size_t place) {
    const auto end = running_.begin() + static_cast<std::ptrdiff_t>(place);
    return std::any_of(running_.begin(), end,
                       [&](const Held& h) { return h.rank == running_[place].rank; });
  };
  for (std::size_t i = 0; i < running_.size();) {
    const std::size_t rank = running_[i].rank;
    const std::int64_t tokens = std::min(running_[i].left(), budget_[rank]);
    if (tokens > 0) {
      bool placed = grow(running_[i], tokens);
      while (!placed && last_of(rank) > i) {
        preempt(last_of(rank));
        placed = grow(running_[i], tokens);
      }
      if (!placed && older(i)) {
        preempt(i);
        continue;
      }
      plan(running_[i], tokens);  // alone, it goes on with what there is
    }
    ++i;
  }
}

// Returns whether there is cache for its own answer and for a share of the others'.
bool Engine::reserved(const Held& next) const {
  const Reservation& reserve = limits_.reserve;
  if (!reserve.any() || !holds(running_, next.rank, &Held::rank)) return true;
  double needed = 0;
  const auto open = [](const Held& h) {
    return static_cast<double>(std::max(h.sequence.asked, h.sequence.target) - h.sequence.done);
  };
  double stored = 0;
  const double states = static_cast<double>(limits_.states) * limits_.block;
  for (const Held& h : running_) {
    if (h.rank != next.rank) continue;
    needed += share_ * open(h) + static_cast<double>(h.left());
    stored += static_cast<double>(h.computed) + states;
  }
  needed += states;
  needed += static_cast<double>(next.context()) + (reserve.own ? open(next) : 0);
  return stored + needed <= limits_.cache;
}

// Returns the rank that runs fewest sequences of those that can take one more in this step; none:
// the number of ranks.
std::size_t Engine::rank_with_room() const {
  if (pools_.size() == 1) {
    const bool room = budget_.front() > 0 && std::ssize(running_) < limits_.sequences;
    return room ? 0 : 1;
  }
  std::vector<std::int64_t> running(pools_.size(), 0);
  for (const Held& h : running_) ++running[h.rank];
  std::size_t best = pools_.size();
  for (std::size_t rank = 0; rank < pools_.size(); ++rank)
    if (budget_[rank] > 0 && running[rank] < limits_.sequences &&
        (best == pools_.size() || running[rank] < running[best]))
      best = rank;
  return best;
}

bool Engine::admit_next() {
  const std::size_t rank = waiting_.empty() ? pools_.size() : rank_with_room();
  if (rank == pools_.size()) return false;
  Held next = waiting_.front();
  next.rank = rank;
  BlockPool& pool = pools_[rank];
  const Sequence& s = next.sequence;
  if (!reserved(next)) return false;
  const Found found = look_up(next);
  next.computed = found.start;
  const std::int64_t tokens = std::min(next.left(), budget_[rank]);
  if (limits_.states + blocks_of(found.start + tokens) - found.live > pool.free()) return false;
  waiting_.pop_front();
  if (limits_.prefix_caching) {
    const auto [prompt, first] = prompts_.try_emplace({rank, s.group});
    next.provides = first;
    pool.take_again({s.group, -1}, found.kept);
    pool.take_again({s.group, s.sample}, found.own);
    if (first) prompt->second.blocks = prompt->second.found = found.kept;
    ++prompt->second.sharers;
    next.shared = found.live + found.kept;
    next.own = found.own;
  }
  pool.take(limits_.states);
  grow(next, tokens);
  plan(next, tokens);
  if (s.done == 0) next.sequence.first_version = version_;
  running_.push_back(next);
  return true;
}

void Engine::admit() {
  while (admit_next()) {
  }
}

void Engine::lower_share(std::int64_t steps) {
  const Reservation& r = limits_.reserve;
  const double each = (r.first - r.last) / std::max(1.0, r.steps);
  share_ = std::max(r.last, share_ - each * static_cast<double>(steps));
}

// Plans so many tokens of the sequence in this step, and adds them to the batch.
void Engine::plan(Held& held, std::int64_t planned) {
  held.planned = planned;
  budget_[held.rank] -= planned;
  StepBatch& batch = batches_[held.rank];
  if (planned == 1 && held.left() == 1 && held.sequence.done > 0) {
    batch.decoding += 1;
    batch.cached += static_cast<double>(held.context());
    nearest_ = std::min(nearest_, held.sequence.target - held.sequence.done);
  } else {
    plan_prompt(held);
  }
}

// Adds tokens of a prompt, or of what is computed again.
void Engine::plan_prompt(const Held& held) {
  StepBatch& batch = batches_[held.rank];
  const auto from = static_cast<double>(held.computed);
  const auto tokens = static_cast<double>(held.planned);
  batch.prompt += tokens;
  batch.pairs += decode_->pairs_of(from + tokens) - decode_->pairs_of(from);
  if (held.samples()) batch.sampled += 1;
  totals_.recomputed +=
      static_cast<double>(std::clamp<std::int64_t>(held.reached - held.computed, 0, held.planned));
}

// Plans a step; nothing is planned of any sequence yet.
void Engine::schedule() {
  preempted_ = false;
  batches_.assign(pools_.size(), {});
  budget_.assign(pools_.size(), limits_.tokens);
  nearest_ = limits_.together;
  if (limits_.prompts_first) {
    // A prompt that is under way goes on, then others come; answers stand still meanwhile.
    for (Held& h : running_) {
      const std::int64_t tokens = std::min(h.left(), budget_[h.rank]);
      if (h.left() == 1 && h.sequence.done > 0) continue;
      if (tokens > 0 && grow(h, tokens)) plan(h, tokens);
    }
    admit();
    if (std::ranges::count(budget_, limits_.tokens) == std::ssize(budget_)) {
      schedule_running();
      lower_share(1);
    }
  } else {
    schedule_running();
    if (!running_.empty()) lower_share(1);
    if (!preempted_) admit();
  }
  block_.prefilled = together(&StepBatch::prompt);
}

// ---- steps that are alike

// Returns whether nothing but the running sequences can be scheduled until one of them is done.
bool Engine::block_may_go_on() const {
  if (together(&StepBatch::prompt) > 0 ||
      together(&StepBatch::decoding) < static_cast<double>(running_.size()))
    return false;
  if (waiting_.empty()) return true;
  // Whoever was put out may come back in the very next step.
  const bool falling = limits_.reserve.any() && share_ > limits_.reserve.last;
  return !preempted_ && !falling;
}

// Were each sequence to need a block at once, and then one as soon as that is full.
bool Engine::surely_fit(std::int64_t steps) const {
  const std::int64_t each = steps / block_tokens_ + 1;
  for (std::size_t rank = 0; rank < pools_.size(); ++rank)
    if (static_cast<std::int64_t>(batches_[rank].decoding) * each > pools_[rank].free())
      return false;
  return true;
}

// Returns how many steps fit. Sequences whose last blocks have room for equally many tokens are
// counted together: there are as few such numbers as a block has tokens, so no guess looks at all
// sequences.
std::int64_t Engine::most_steps(std::size_t rank, std::int64_t most) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> alike;  // tokens, sequences
  std::vector<std::size_t> places(static_cast<std::size_t>(block_tokens_) + 1, alike.max_size());
  for (const Held& h : running_) {
    if (h.rank != rank) continue;
    const std::int64_t tokens = (h.shared + h.own) * block_tokens_ - h.computed;
    const bool usual = tokens >= 0 && tokens <= block_tokens_;
    std::size_t own = alike.size();
    std::size_t& place = usual ? places[static_cast<std::size_t>(tokens)] : own;
    place = std::min(place, alike.size());
    if (place == alike.size()) alike.emplace_back(tokens, 0);
    ++alike[place].second;
  }
  const auto fit = [&](std::int64_t steps) {
    std::int64_t more = 0;
    for (const auto& [tokens, sequences] : alike)
      if (steps > tokens) more += sequences * blocks_of(steps - tokens);
    return more <= pools_[rank].free();
  };
  std::int64_t low = 1;
  while (low < most && !fit(most)) {
    const std::int64_t middle = low + (most - low) / 2;
    if (middle > low && fit(middle))
      low = middle;
    else
      most = std::max(low, middle > low ? middle - 1 : low);
  }
  return most;
}

std::int64_t Engine::steps_together() const {
  if (!block_may_go_on()) return 1;
  std::int64_t most = nearest_;
  for (std::size_t rank = 0; rank < pools_.size() && !surely_fit(most); ++rank)
    most = most_steps(rank, most);
  return most;
}

void Engine::start_block(double now) {
  running_block_ = false;
  pace_ = next_pace_;
  if (paused_ || down_) return;
  block_ = {.start = now, .end = now};
  schedule();
  if (together(&StepBatch::decoding) + together(&StepBatch::prompt) == 0) return;
  iterations_ = steps_together();
  block_.sequences = static_cast<double>(running_.size());
  block_.end = now + seconds_of(iterations_);
  running_block_ = true;
}

// The block ends with the step that is under way at `now`.
void Engine::cut(double now) {
  if (!running_block_ || now >= block_.end) return;
  std::int64_t low = 1, high = iterations_;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (block_.start + seconds_of(middle) >= now)
      high = middle;
    else
      low = middle + 1;
  }
  iterations_ = low;
  block_.end = block_.start + seconds_of(iterations_);
}

void Engine::advance(Held& held) {
  if (held.planned == 0) return;
  const bool sampled = held.samples();
  if (iterations_ > 1) grow(held, iterations_);
  held.computed += std::exchange(held.planned, 0) + iterations_ - 1;
  if (!sampled) return;
  if (held.sequence.done == 0) held.sequence.first_token = block_.end;
  const std::int64_t kept = held.sequence.kept;
  block_.tokens +=
      kept > 0 ? std::clamp<std::int64_t>(kept - held.sequence.done, 0, iterations_) : iterations_;
  held.sequence.done += iterations_;
}

std::vector<Sequence> Engine::finish_block(double now) {
  done_.clear();
  auto still = running_.begin();
  for (Held& h : running_) {
    advance(h);
    if (h.sequence.done >= h.sequence.target) {
      done_.push_back(h);
      continue;
    }
    if (&*still != &h) *still = h;
    ++still;
  }
  running_.erase(still, running_.end());
  lower_share(iterations_ - 1);
  const double seconds = block_.end - block_.start;
  totals_.busy += seconds;
  totals_.sequence_seconds += block_.sequences * seconds;
  totals_.tokens += block_.tokens;
  totals_.prefilled += block_.prefilled;
  ++totals_.blocks;
  std::int64_t used = 0;
  for (const BlockPool& pool : pools_) used += pool.used();
  totals_.most_cached = std::max(totals_.most_cached, static_cast<double>(used) * limits_.block);
  log_.push_back(block_);
  std::vector<Sequence> finished;
  finished.reserve(done_.size());
  for (const Held& h : done_) {
    leave(h, false);
    finished.push_back(h.sequence);
  }
  count_held(now);
  held_ -= static_cast<std::int64_t>(finished.size());
  if (empties_) empty();
  start_block(now);
  return finished;
}

void Engine::pause(double now) {
  paused_ = true;
  cut(now);
}

void Engine::stop(double now, Aside aside) {
  count_held(now);
  pause(now);
  empties_ = true;
  aside_ = aside;
  if (!running_block_) empty();
}

void Engine::put_aside(double now) {
  stop(now, Aside::kept);
}

void Engine::begin_anew(double now) {
  stop(now, Aside::anew);
}

void Engine::give_up(double now) {
  stop(now, Aside::given_up);
}

std::vector<Sequence> Engine::fail(double now) {
  count_held(now);
  if (running_block_) {
    // Whole steps until now are lost with what was made before.
    block_.end = now;
    block_.tokens = 0;
    totals_.busy += now - block_.start;
    totals_.sequence_seconds += block_.sequences * (now - block_.start);
    log_.push_back(block_);
  }
  down_ = true;
  running_block_ = empties_ = false;
  std::vector<Sequence> lost;
  lost.reserve(running_.size() + waiting_.size());
  for (Held& h : running_) lost.push_back(h.sequence);
  for (Held& h : waiting_) lost.push_back(h.sequence);
  for (Sequence& s : lost) lose(s);
  running_.clear();
  waiting_.clear();
  held_ = 0;
  forget_cache();
  return lost;
}

void Engine::start_again(double now, std::int64_t version) {
  down_ = false;
  version_ = version;
  if (!running_block_) start_block(now);
}

void Engine::set_version(std::int64_t version) {
  version_ = version;
  const auto mix = [&](Sequence& s) { s.mixed = s.mixed || s.first_version != version; };
  for (Held& h : running_) mix(h.sequence);
  for (Held& h : waiting_)
    if (h.sequence.done > 0) mix(h.sequence);
}

void Engine::resume(double now, std::int64_t version) {
  set_version(version);
  paused_ = false;
  if (!running_block_) start_block(now);
}

// The step under way keeps its speed.
void Engine::pace(double now, double seconds) {
  next_pace_ = seconds;
  cut(now);
}

}  // namespace stepsim
