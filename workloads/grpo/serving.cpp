#include "workloads/grpo/serving.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

Sequence request(const Requests& requests, std::int64_t number) {
  const auto name = static_cast<std::uint64_t>(number);
  return {.group = static_cast<std::uint32_t>(number),
          .sample = 0,
          .prompt = std::max<std::int64_t>(1, requests.prompt(name)),
          .target = std::max<std::int64_t>(1, requests.answer(name)),
          .asked = requests.asked};
}

}  // namespace

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

Served serve(const DecodeModel& decode, const EngineLimits& limits, const Requests& requests) {
  Engine engine(decode, limits);
  std::vector<double> arrived(static_cast<std::size_t>(requests.count), 0);
  const std::int64_t first =
      requests.at_once > 0 ? std::min(requests.at_once, requests.count) : requests.count;
  std::vector<Sequence> group;
  for (std::int64_t i = 0; i < first; ++i) group.push_back(request(requests, i));
  engine.give(requests.front * static_cast<double>(first), group);
  Served served;
  std::int64_t next = first, answered = 0;
  while (answered < requests.count) {
    const double now = engine.next();
    if (!std::isfinite(now))
      throw UserError("an engine's cache is too small for one request with its answer");
    std::vector<Sequence> follow;
    for (const Sequence& s : engine.finish_block(now)) {
      const double start = arrived[s.group];
      served.prompted += static_cast<double>(s.prompt);
      served.generated += static_cast<double>(s.done);
      served.first_token += s.first_token - start;
      served.latency += now - start;
      if (s.done > 1) served.per_token += (now - s.first_token) / static_cast<double>(s.done - 1);
      ++answered;
      if (next >= requests.count) continue;
      arrived[static_cast<std::size_t>(next)] = now;
      follow.push_back(request(requests, next++));
    }
    served.seconds = now;
    if (!follow.empty()) engine.give(now, follow);
  }
  const double count = static_cast<double>(requests.count);
  served.totals = engine.totals();
  served.running = served.totals.sequence_seconds / served.seconds;
  served.held = served.totals.held_seconds / served.seconds;
  served.first_token /= count;
  served.per_token /= count;
  served.latency /= count;
  return served;
}

}  // namespace stepsim
