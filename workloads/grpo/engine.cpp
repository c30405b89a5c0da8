#include "workloads/grpo/engine.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {

double Engine::iteration() const {
  if (running_.empty()) return 0;
  const double own = decode_->iteration(static_cast<double>(running_.size()), cached_);
  return std::max(own, pace_);
}

double Engine::iterations_left() const {
  const auto longest = [](const auto& sequences) {
    std::int64_t most = 0;
    for (const Sequence& s : sequences) most = std::max(most, s.target - s.done);
    return static_cast<double>(most);
  };
  return longest(running_) + longest(waiting_);
}

// k iterations from here: each adds a token to the context of every sequence.
double Engine::seconds_of(std::int64_t iterations) const {
  const double b = static_cast<double>(running_.size()), k = static_cast<double>(iterations);
  const double mean = decode_->iteration(b, cached_ + b * (k - 1) / 2);
  return decode_->prefill(block_.prefilled, block_.pairs) + k * std::max(mean, pace_);
}

void Engine::give(double now, const std::vector<Sequence>& group) {
  held_ += static_cast<std::int64_t>(group.size());
  waiting_.insert(waiting_.end(), group.begin(), group.end());
  if (running_block_)
    cut(now);
  else
    start_block(now);
}

// With a shared prompt the first sample of a group pays for it.
double Engine::prompt_share(const Sequence& sequence) const {
  if (!limits_.prefix_caching) return static_cast<double>(sequence.prompt);
  return sharers_.contains(sequence.group) ? 0 : static_cast<double>(sequence.prompt);
}

double Engine::charge(const Sequence& sequence) const {
  return prompt_share(sequence) + static_cast<double>(sequence.done);
}

// Blocks are handed out whole, so each sequence may hold almost one that it does not use; one more
// token each has to find room.
bool Engine::fits(const Sequence& sequence) const {
  const double b = static_cast<double>(running_.size() + 1);
  const double kept = running_.empty() ? 0 : limits_.watermark * limits_.cache;
  return stored_ + charge(sequence) + b * limits_.block + kept <= limits_.cache;
}

void Engine::enter(const Sequence& sequence) {
  stored_ += charge(sequence);
  block_.prefilled += charge(sequence);
  block_.pairs += decode_->pairs_of(charge(sequence));
  if (limits_.prefix_caching) ++sharers_[sequence.group];
  cached_ += static_cast<double>(sequence.prompt + sequence.done);
  running_.push_back(sequence);
  if (sequence.done > 0) totals_.recomputed += charge(sequence);
}

void Engine::leave(const Sequence& sequence) {
  cached_ -= static_cast<double>(sequence.prompt + sequence.done);
  stored_ -= static_cast<double>(sequence.done);
  if (!limits_.prefix_caching) {
    stored_ -= static_cast<double>(sequence.prompt);
  } else if (--sharers_[sequence.group] == 0) {
    sharers_.erase(sequence.group);
    stored_ -= static_cast<double>(sequence.prompt);
  }
}

// After somebody had to leave, nobody is let in until somebody is done.
void Engine::admit() {
  while (!waiting_.empty() && !full_ &&
         static_cast<std::int64_t>(running_.size()) < limits_.sequences && fits(waiting_.front())) {
    Sequence next = waiting_.front();
    waiting_.pop_front();
    if (next.done == 0) next.first_version = version_;
    enter(next);
  }
}

void Engine::preempt_last() {
  const Sequence last = running_.back();
  running_.pop_back();
  leave(last);
  waiting_.push_front(last);
  ++totals_.preemptions;
  full_ = true;
}

std::int64_t Engine::iterations_that_fit() const {
  const double b = static_cast<double>(running_.size());
  return static_cast<std::int64_t>(
      std::floor((limits_.cache - stored_ - b * (limits_.block - 1)) / b));
}

void Engine::start_block(double now) {
  running_block_ = false;
  pace_ = next_pace_;
  if (paused_) return;
  block_ = {.start = now, .end = now, .sequences = 0, .tokens = 0, .prefilled = 0, .pairs = 0};
  admit();
  while (running_.size() > 1 && iterations_that_fit() < 1) preempt_last();
  if (running_.empty()) return;
  iterations_ = std::max<std::int64_t>(1, iterations_that_fit());
  for (const Sequence& s : running_) iterations_ = std::min(iterations_, s.target - s.done);
  block_.sequences = static_cast<double>(running_.size());
  block_.end = now + seconds_of(iterations_);
  for (Sequence& s : running_)
    if (s.done == 0) s.first_token = now + seconds_of(1);
  running_block_ = true;
}

// The block ends with the iteration that is under way at `now`.
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

std::vector<Sequence> Engine::finish_block(double now) {
  std::vector<Sequence> finished;
  const double b = static_cast<double>(running_.size()), k = static_cast<double>(iterations_);
  block_.tokens = iterations_ * static_cast<std::int64_t>(running_.size());
  totals_.busy += block_.end - block_.start;
  totals_.sequence_seconds += b * (block_.end - block_.start);
  totals_.tokens += block_.tokens;
  ++totals_.blocks;
  cached_ += b * k;
  stored_ += b * k;
  totals_.most_cached = std::max(totals_.most_cached, stored_);
  log_.push_back(block_);
  for (Sequence& s : running_) s.done += iterations_;
  const auto still = std::stable_partition(running_.begin(), running_.end(),
                                           [](const Sequence& s) { return s.done < s.target; });
  finished.assign(still, running_.end());
  running_.erase(still, running_.end());
  for (const Sequence& s : finished) leave(s);
  held_ -= static_cast<std::int64_t>(finished.size());
  if (!finished.empty()) full_ = false;
  start_block(now);
  return finished;
}

void Engine::pause(double now) {
  paused_ = true;
  cut(now);
}

void Engine::set_version(std::int64_t version) {
  version_ = version;
  for (Sequence& s : running_) s.mixed = s.mixed || s.first_version != version;
  for (Sequence& s : waiting_) s.mixed = s.mixed || (s.done > 0 && s.first_version != version);
}

void Engine::resume(double now, std::int64_t version) {
  set_version(version);
  paused_ = false;
  if (!running_block_) start_block(now);
}

// The iteration under way keeps its speed.
void Engine::pace(double now, double seconds) {
  next_pace_ = seconds;
  cut(now);
}

}  // namespace stepsim
