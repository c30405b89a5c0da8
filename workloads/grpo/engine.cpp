#include "workloads/grpo/engine.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {

Engine::Engine(const DecodeModel& decode, const EngineLimits& limits)
    : decode_(&decode),
      limits_(limits),
      pool_(static_cast<std::int64_t>(std::floor(limits.cache / limits.block))),
      share_(limits.reserve.first) {}

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

double Engine::seconds_of(std::int64_t steps) const {
  if (batch_.prompt > 0) return std::max(decode_->step(batch_), pace_);
  return decode_->steps(batch_.decoding, batch_.cached, steps, pace_);
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
  const auto block = static_cast<std::int64_t>(limits_.block);
  return (tokens + block - 1) / block;
}

// Whole blocks of the prompt; the last token is always computed, as an answer begins with it.
std::int64_t Engine::shareable(const Sequence& sequence) const {
  if (!limits_.prefix_caching) return 0;
  return (sequence.prompt - 1) / static_cast<std::int64_t>(limits_.block);
}

Engine::Found Engine::look_up(const Held& next) const {
  Found found;
  if (!limits_.prefix_caching) return found;
  const Sequence& s = next.sequence;
  const auto prompt = prompts_.find(s.group);
  if (prompt != prompts_.end())
    found.live = prompt->second.blocks;
  else
    found.kept = std::min(shareable(s), pool_.kept({s.group, -1}));
  if (found.live + found.kept == shareable(s)) found.own = pool_.kept({s.group, s.sample});
  const auto block = static_cast<std::int64_t>(limits_.block);
  const std::int64_t whole = (next.context() - 1) / block;
  found.own = std::min(found.own, whole - found.live - found.kept);
  found.start = (found.live + found.kept + found.own) * block;
  return found;
}

// Blocks for so many tokens more; false: there are not enough.
bool Engine::grow(Held& held, std::int64_t tokens) {
  const std::int64_t needed = blocks_of(held.computed + tokens);
  const std::int64_t more = needed - held.shared - held.own;
  if (more > pool_.free()) return false;
  if (more <= 0) return true;
  pool_.take(more);
  if (!held.provides) {
    held.own += more;
    return true;
  }
  Prompt& prompt = prompts_[held.sequence.group];
  const std::int64_t part = std::min(more, shareable(held.sequence) - held.shared);
  held.shared += part;
  held.own += more - part;
  prompt.blocks = held.shared;
  return true;
}

void Engine::leave(const Held& held, bool comes_back) {
  const Sequence& s = held.sequence;
  // The end of a sequence is overwritten before its beginning, and both before its prompt.
  const auto block = static_cast<std::int64_t>(limits_.block);
  const std::int64_t whole = held.computed / block - held.shared;
  const std::int64_t kept =
      limits_.prefix_caching && comes_back ? std::clamp<std::int64_t>(whole, 0, held.own) : 0;
  pool_.give_back(held.own - kept);
  pool_.give_back({s.group, s.sample}, kept);
  if (!limits_.prefix_caching) return;
  const auto prompt = prompts_.find(s.group);
  if (--prompt->second.sharers > 0) return;
  pool_.give_back({s.group, -1}, prompt->second.blocks);
  prompts_.erase(prompt);
}

void Engine::preempt_last() {
  Held last = running_.back();
  running_.pop_back();
  if (last.planned > 0) {
    budget_ += last.planned;
    last.planned = 0;
  }
  leave(last, true);
  last.reached = std::max(last.reached, last.computed);
  last.computed = last.shared = last.own = 0;
  last.provides = false;
  waiting_.push_front(last);
  ++totals_.preemptions;
  preempted_ = true;
  share_ = limits_.reserve.first;
}

// Who came first is the first to come back.
void Engine::empty() {
  empties_ = false;
  for (Held& h : running_) h.planned = 0;
  while (!running_.empty()) {
    preempt_last();
    --totals_.preemptions;
  }
  // Weights change, so nothing is found again.
  pool_ = BlockPool(static_cast<std::int64_t>(std::floor(limits_.cache / limits_.block)));
  prompts_.clear();
  if (!gives_up_) return;
  for (const Held& h : waiting_) totals_.given_up += static_cast<double>(h.sequence.done);
  held_ -= static_cast<std::int64_t>(waiting_.size());
  waiting_.clear();
}

// ---- one step

// Running sequences in the order of their coming; who finds no block puts out who came last.
void Engine::schedule_running() {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Held& held = running_[i];
    const std::int64_t tokens = std::min(held.left(), budget_);
    bool placed = tokens > 0 && grow(held, tokens);
    while (tokens > 0 && !placed && running_.size() > i + 1) {
      preempt_last();
      placed = grow(running_[i], tokens);
    }
    if (tokens > 0 && !placed) {
      if (i > 0) {
        preempt_last();
        return;
      }
      placed = true;  // alone, it goes on with what there is
    }
    if (!placed) continue;
    running_[i].planned = tokens;
    budget_ -= tokens;
  }
}

// Cache for its own answer and for a share of the others'.
bool Engine::reserved(const Held& next) const {
  const Reservation& reserve = limits_.reserve;
  if (!reserve.any() || running_.empty()) return true;
  double needed = 0;
  const auto open = [](const Held& h) {
    return static_cast<double>(std::max(h.sequence.asked, h.sequence.target) - h.sequence.done);
  };
  double stored = 0;
  for (const Held& h : running_) {
    needed += share_ * open(h) + static_cast<double>(h.left());
    stored += static_cast<double>(h.computed);
  }
  needed += static_cast<double>(next.context()) + (reserve.own ? open(next) : 0);
  return stored + needed <= limits_.cache;
}

bool Engine::admit_next() {
  if (waiting_.empty() || budget_ <= 0) return false;
  if (static_cast<std::int64_t>(running_.size()) >= limits_.sequences) return false;
  Held next = waiting_.front();
  const Sequence& s = next.sequence;
  if (!reserved(next)) return false;
  const Found found = look_up(next);
  next.computed = found.start;
  const std::int64_t tokens = std::min(next.left(), budget_);
  if (blocks_of(found.start + tokens) - found.live > pool_.free()) return false;
  waiting_.pop_front();
  if (limits_.prefix_caching) {
    const auto [prompt, first] = prompts_.try_emplace(s.group);
    next.provides = first;
    pool_.take_again({s.group, -1}, found.kept);
    pool_.take_again({s.group, s.sample}, found.own);
    if (first) prompt->second.blocks = found.kept;
    ++prompt->second.sharers;
    next.shared = found.live + found.kept;
    next.own = found.own;
  }
  grow(next, tokens);
  next.planned = tokens;
  budget_ -= tokens;
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

// What a planned sequence adds to the step.
void Engine::note(const Held& held) {
  if (held.planned == 0) return;
  const bool decodes = held.planned == 1 && held.left() == 1 && held.sequence.done > 0;
  if (decodes) {
    batch_.decoding += 1;
    batch_.cached += static_cast<double>(held.context());
    return;
  }
  const auto from = static_cast<double>(held.computed);
  const auto tokens = static_cast<double>(held.planned);
  batch_.prompt += tokens;
  batch_.pairs += decode_->pairs_of(from + tokens) - decode_->pairs_of(from);
  if (held.samples()) batch_.sampled += 1;
  totals_.recomputed +=
      static_cast<double>(std::clamp<std::int64_t>(held.reached - held.computed, 0, held.planned));
}

void Engine::schedule() {
  preempted_ = false;
  batch_ = {};
  for (Held& h : running_) h.planned = 0;
  budget_ = limits_.tokens;
  if (limits_.prompts_first) {
    // A prompt that is under way goes on, then others come; answers stand still meanwhile.
    for (Held& h : running_) {
      const std::int64_t tokens = std::min(h.left(), budget_);
      if (h.left() == 1 && h.sequence.done > 0) continue;
      if (tokens == 0 || !grow(h, tokens)) continue;
      h.planned = tokens;
      budget_ -= tokens;
    }
    admit();
    if (budget_ == limits_.tokens) {
      schedule_running();
      lower_share(1);
    }
  } else {
    schedule_running();
    if (!preempted_) admit();
  }
  for (const Held& h : running_) note(h);
  block_.prefilled = batch_.prompt;
}

// ---- steps that are alike

// Nothing but the running sequences can be scheduled until one of them is done.
bool Engine::block_may_go_on() const {
  if (batch_.prompt > 0 || batch_.decoding < static_cast<double>(running_.size())) return false;
  if (waiting_.empty()) return true;
  // Whoever was put out may come back in the very next step.
  const bool falling = limits_.reserve.any() && share_ > limits_.reserve.last;
  return !preempted_ && !falling;
}

bool Engine::steps_fit(std::int64_t steps) const {
  std::int64_t more = 0;
  for (const Held& h : running_)
    more += std::max<std::int64_t>(0, blocks_of(h.computed + steps) - h.shared - h.own);
  return more <= pool_.free();
}

std::int64_t Engine::steps_together() const {
  if (!block_may_go_on()) return 1;
  std::int64_t most = limits_.together;
  for (const Held& h : running_) most = std::min(most, h.sequence.target - h.sequence.done);
  std::int64_t low = 1;
  while (low < most && !steps_fit(most)) {
    const std::int64_t middle = low + (most - low) / 2;
    if (middle > low && steps_fit(middle))
      low = middle;
    else
      most = std::max(low, middle > low ? middle - 1 : low);
  }
  return most;
}

void Engine::start_block(double now) {
  running_block_ = false;
  pace_ = next_pace_;
  if (paused_) return;
  block_ = {.start = now, .end = now};
  schedule();
  if (batch_.decoding + batch_.prompt == 0) return;
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
  held.computed += held.planned + iterations_ - 1;
  if (!sampled) return;
  if (held.sequence.done == 0) held.sequence.first_token = block_.end;
  const std::int64_t kept = held.sequence.kept;
  block_.tokens += kept > 0 ? std::clamp<std::int64_t>(kept - held.sequence.done, 0, iterations_)
                            : iterations_;
  held.sequence.done += iterations_;
}

std::vector<Sequence> Engine::finish_block(double now) {
  for (Held& h : running_) advance(h);
  lower_share(iterations_ - 1);
  const double seconds = block_.end - block_.start;
  totals_.busy += seconds;
  totals_.sequence_seconds += block_.sequences * seconds;
  totals_.tokens += block_.tokens;
  totals_.prefilled += block_.prefilled;
  ++totals_.blocks;
  totals_.most_cached =
      std::max(totals_.most_cached, static_cast<double>(pool_.used()) * limits_.block);
  log_.push_back(block_);
  const auto still = std::stable_partition(running_.begin(), running_.end(), [](const Held& h) {
    return h.sequence.done < h.sequence.target;
  });
  std::vector<Sequence> finished;
  for (auto h = still; h != running_.end(); ++h) {
    leave(*h, false);
    finished.push_back(h->sequence);
  }
  running_.erase(still, running_.end());
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

void Engine::stop(double now) {
  count_held(now);
  pause(now);
  empties_ = true;
  if (!running_block_) empty();
}

void Engine::put_aside(double now) {
  gives_up_ = false;
  stop(now);
}

void Engine::give_up(double now) {
  gives_up_ = true;
  stop(now);
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
