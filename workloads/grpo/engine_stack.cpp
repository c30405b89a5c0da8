#include "workloads/grpo/engine_stack.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "sim/base/lists.hpp"
#include "sim/base/words.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t many = 1 << 24;

std::vector<EngineStack::ExpertRate> expert_rates(const Table& kernels, std::string_view key) {
  std::vector<EngineStack::ExpertRate> rates;
  if (!kernels.has(key)) return rates;
  for (const Table& entry : kernels.tables(key)) {
    entry.text("name");
    rates.push_back({entry.number("tokens", 1, 1e6), entry.constant<Ratio>("share")});
  }
  std::ranges::sort(rates, {}, &EngineStack::ExpertRate::tokens);
  return rates;
}

EngineStack::Scheduler read_scheduler(const Table& table) {
  EngineStack::Scheduler scheduler;
  scheduler.order = read_word<StepOrder>(table, "order", step_order_names);
  scheduler.reserves_answer = table.flag_or("reserves_answer", false);
  scheduler.reserves_first = table.number_or("reserves_first", 0, 0, 1);
  scheduler.reserves_last =
      table.number_or("reserves_last", scheduler.reserves_first, 0, scheduler.reserves_first);
  scheduler.reserves_steps = table.integer_or("reserves_steps", 1, 1, many);
  for (const Table& entry : table.tables("served")) {
    EngineStack::Served served;
    served.tokens = entry.integer("tokens", 1, many);
    served.sequences = entry.integer("sequences", 1, many);
    if (entry.has("memory")) served.memory = entry.quantity<Bytes>("memory").value;
    served.not_on = entry.text_or("not_on", "");
    served.share = entry.number_or("share", served.share, 0.01, 1);
    scheduler.served.push_back(served);
  }
  return scheduler;
}

EngineStack::Kernels read_kernels(const Table& kernels) {
  return {.weights = kernels.constant<Ratio>("weights"),
          .flops = kernels.constant<Ratio>("flops"),
          .fp8 = kernels.constant<Ratio>("fp8"),
          .blend = kernels.constant<Ratio>("blend"),
          .cache = kernels.constant<Ratio>("cache"),
          .small = kernels.constant<Seconds>("small"),
          .small_experts = kernels.constant<Seconds>("small_experts"),
          .small_latent = kernels.constant<Seconds>("small_latent"),
          .experts = expert_rates(kernels, "experts"),
          .experts_later = expert_rates(kernels, "experts_later")};
}

EngineStack::Sync read_sync(const Table& sync) {
  return {.call = sync.constant<Seconds>("call"),
          .engine = sync.constant<Seconds>("engine"),
          .busy = sync.constant<Seconds>("busy"),
          .send = sync.constant<Seconds>("send"),
          .gather = sync.constant<Seconds>("gather"),
          .pause = sync.constant<Seconds>("pause"),
          .stream = sync.constant<BytesPerSecond>("stream"),
          .bucket = sync.constant<Bytes>("bucket"),
          .convert = sync.constant<Seconds>("convert"),
          .load = sync.constant<Seconds>("load"),
          .handle = sync.constant<Seconds>("handle"),
          .write = sync.constant<BytesPerSecond>("write"),
          .read = sync.constant<BytesPerSecond>("read")};
}

void read_benchmark(const Table& table, EngineStack& stack) {
  for (const std::string& size : table.texts_or("benchmark_graphs"))
    stack.benchmark_graphs.push_back(std::strtod(size.c_str(), nullptr));
  const auto rises = [](double before, double next) { return before < next; };
  const std::vector<double>& sizes = stack.benchmark_graphs;
  if (std::ranges::adjacent_find(sizes, std::not_fn(rises)) != sizes.end() ||
      (!sizes.empty() && sizes.front() < 1))
    table.problem("benchmark_graphs",
                  "expected sizes of batches from 1, each above the one before it");
}

EngineStack::Mixers read_engine_mixers(const Table& table) {
  EngineStack::Mixers mixers;
  mixers.small = table.constant<Seconds>("small");
  mixers.kernels = table.constant<Ratio>("kernels");
  mixers.states = read_word<StatePlace>(table, "states", state_place_names);
  const bool pool = mixers.states == StatePlace::pool;
  if (pool || table.has("share")) mixers.share = table.constant<Ratio>("share");
  if (pool && mixers.share.number() >= 1)
    table.problem("share", "expected a share of the cache's memory, below 1");
  mixers.found = table.constant<Ratio>("found");
  mixers.padded = table.constant<Ratio>("padded");
  mixers.wide = table.flag_or("wide", false);
  return mixers;
}

}  // namespace

EngineStack::Limits EngineStack::served_on(const Gpu& gpu) const {
  for (const Served& served : scheduler.served) {
    const bool other = !served.not_on.empty() && gpu.name.starts_with(served.not_on);
    if (!other && gpu.memory.capacity.number() >= served.memory) return served;
  }
  return {};
}

EngineStack read_engine_stack(const Table& table) {
  EngineStack stack;
  stack.name = table.text("name");
  stack.title = table.text("title");
  const Table kernels = table.table("kernels");
  stack.kernels = read_kernels(kernels);
  stack.mixed_reads = read_word<MixedReads>(kernels, "mixed_reads", mixed_reads_names);
  stack.attention_by_sequence = kernels.flag_or("attention_by_sequence", false);
  stack.cache_follows_weights = kernels.flag_or("cache_follows_weights", false);
  const Table reduction = table.table("reduction");
  stack.reduction = {.start = reduction.constant<Seconds>("start"),
                     .largest = reduction.constant<Bytes>("largest")};
  stack.copies_cache = kernels.flag_or("copies_cache", false);
  stack.repeats_heads = kernels.flag_or("repeats_heads", false);
  stack.unexplained = table.constant<Ratio>("unexplained");
  stack.own_weights = table.flag_or("own_weights", false);
  const Table graphs = table.table("graphs");
  stack.graphs = {.step = graphs.constant<Ratio>("step"),
                  .largest = graphs.constant<Ratio>("largest")};
  const Table eager = table.table("eager");
  stack.eager = {.kernels = eager.constant<Ratio>("kernels"),
                 .experts = eager.constant<Ratio>("experts"),
                 .latent = eager.constant<Ratio>("latent"),
                 .python = eager.constant<Seconds>("python"),
                 .reduction = eager.constant<Seconds>("reduction")};
  stack.scheduler = read_scheduler(table.table("scheduler"));
  const Table host = table.table("host");
  stack.host = {.iteration = host.constant<Seconds>("iteration"),
                .sequence = host.constant<Seconds>("sequence"),
                .nodes = host.constant<Seconds>("nodes"),
                .request = host.constant<Seconds>("request")};
  if (stack.own_weights) stack.host.pass = host.constant<Ratio>("pass");
  const Table memory = table.table("memory");
  stack.memory = {.overhead = memory.constant<Bytes>("overhead"),
                  .block = memory.constant<Ratio>("block"),
                  .of_free = memory.flag_or("of_free", false),
                  .profiled = memory.flag_or("profiled", false),
                  .communication = memory.constant<Bytes>("communication"),
                  .logits = memory.constant<Bytes>("logits"),
                  .graphs = memory.constant<Bytes>("graphs")};
  read_benchmark(table, stack);
  stack.mixers = read_engine_mixers(table.table("mixers"));
  stack.sync = read_sync(table.table("sync"));
  const Table sleep = table.table("sleep");
  stack.sleep = {.level = sleep.integer("level", 1, 2),
                 .fixed = sleep.constant<Seconds>("fixed"),
                 .map = sleep.constant<BytesPerSecond>("map"),
                 .page = sleep.constant<BytesPerSecond>("page")};
  const Table start = table.table("start");
  stack.start = {.load = start.constant<BytesPerSecond>("load"),
                 .fixed = start.constant<Seconds>("fixed"),
                 .pairs = start.constant<Seconds>("pairs"),
                 .rank = start.constant<Seconds>("rank")};
  return stack;
}

}  // namespace stepsim
