// A whole GRPO step: costs from replays, sync against the number of engines, the trace's times.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analysis/studies/grpo/grpo_trace.hpp"
#include "analysis/studies/outcome/metrics.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/engine/own/replay.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/step/step.hpp"

using namespace stepsim;

namespace {

Scenario with(std::vector<Setting> settings) {
  return load_scenario(source_data(), "grpo-32b-production", settings);
}

double broadcast_seconds(const std::string& shape, std::uint32_t nodes) {
  const Scenario scenario = with({{"job.broadcast", shape},
                                  {"cluster.nodes", std::to_string(nodes)},
                                  {"job.learners_per_node", "[4, 4]"}});
  return replay_sync(scenario, place(scenario.cluster, *scenario.grpo)).broadcasts;
}

}  // namespace

TEST_CASE("a pipelined broadcast does not mind more engines, a flat one takes as much longer",
          "[grpo]") {
  // 2, 6 and 14 nodes with two engines of two GPUs each.
  const double few = broadcast_seconds("pipelined", 4);
  CHECK(broadcast_seconds("pipelined", 8) == Approx(few).epsilon(0.1));
  CHECK(broadcast_seconds("pipelined", 16) == Approx(few).epsilon(0.25));
  const double flat = broadcast_seconds("flat", 4);
  // With one call for all tensors nothing else depends on them, but for that call.
  const auto sync = [](const char* nodes) {
    const Scenario scenario = with({{"job.sync_protocol", "v2"},
                                    {"cluster.nodes", nodes},
                                    {"job.learners_per_node", "[4, 4]"}});
    const SyncReplay replay = replay_sync(scenario, place(scenario.cluster, *scenario.grpo));
    return replay.cost.gather.value + replay.cost.send.value;
  };
  CHECK(sync("16") == Approx(sync("4")).epsilon(0.05));
  CHECK(flat > 4 * few);
  CHECK(broadcast_seconds("flat", 8) == Approx(3 * flat).epsilon(0.05));
  CHECK(broadcast_seconds("flat", 16) == Approx(7 * flat).epsilon(0.05));
}

TEST_CASE("gathers and broadcasts of a sync are bounded by one NIC", "[grpo]") {
  const Scenario scenario = with({{"job.gather_whole_model", "true"}});
  const SyncReplay sync = replay_sync(scenario, place(scenario.cluster, *scenario.grpo));
  const double bytes = 2.0 * 32233522176;
  const double port = scenario.cluster.network->port.value.value;
  CHECK(sync.broadcasts > bytes / port);
  CHECK(sync.broadcasts < 1.5 * bytes / port);
  CHECK(sync.cost.gather.value > bytes * 19 / 20 / port);
  CHECK(sync.cost.gather.value < 1.5 * bytes / port);
}

TEST_CASE("the phases of a step add up to it", "[grpo]") {
  for (const char* learners : {"[1]", "[4, 4, 4, 4]"}) {
    const GrpoPrediction p = predict_grpo(with({{"job.learners_per_node", learners}}));
    double sum = 0;
    for (const PhaseSpec& phase : phase_specs()) sum += p.phases.*phase.seconds;
    CHECK(sum == Approx(p.step_time.value).epsilon(1e-9));
    CHECK(p.most_cached <= p.memory.cache_tokens);
  }
}

TEST_CASE("a second copy inside a node spares its cards the gathers of the backward pass",
          "[grpo]") {
  const auto training = [](const char* sharers) {
    return predict_grpo(with({{"cluster.node", "isambard-ai-tcp"},
                              {"job.learners_per_node", "[4, 4, 4, 4]"},
                              {"job.deepspeed_zpg", sharers}}));
  };
  const GrpoPrediction one = training("1"), four = training("4");
  CHECK(four.phases.communication < 0.8 * one.phases.communication);
  CHECK(four.memory.learner.start > one.memory.learner.start);
}

TEST_CASE("a second copy is divided among learners that share states, not those of a tensor",
          "[grpo]") {
  const auto divided = [](const char* sharers) {
    return with({{"job.learners_per_node", "[4, 4, 4, 4]"},
                 {"strategy.tensor_parallel.size", "4"},
                 {"job.deepspeed_zpg", sharers}});
  };
  CHECK(predict_grpo(divided("4")).step_time.value > 0);
  CHECK_THROWS_WITH(divided("8"),
                    Catch::Contains("8 does not divide 4 learners that share states"));
}

TEST_CASE("twelve nodes with packed learners beat twenty with one learner each", "[grpo]") {
  const double packed =
      predict_grpo(with({{"cluster.nodes", "12"}, {"job.learners_per_node", "[4, 4, 4, 4]"}}))
          .step_time.value;
  CHECK(packed < predict_grpo(with({})).step_time.value);
}

TEST_CASE("the trace of a GRPO run plays at the scheduled times", "[grpo]") {
  const Scenario scenario = with({});
  const GrpoPrediction p = predict_grpo(scenario);
  const Run run = grpo_trace(scenario, p);
  CHECK(run.trace.makespan.value >= p.run.steps[p.run.steps.size() - 2].end * (1 - 1e-9));
  CHECK(run.trace.makespan.value <= p.run.end * (1 + 1e-6));
  double generating = 0, scheduled = 0;
  for (std::size_t i = 0; i < run.graph.size(); ++i)
    if (run.graph.ops()[i].cause == Cause::generation)
      generating += run.trace.finish[i] - run.trace.start[i];
  for (const Engine& engine : p.run.engines) scheduled += engine.totals().busy;
  CHECK(generating == Approx(scheduled).epsilon(1e-6));
}

TEST_CASE("a sweep sees a GRPO scenario by its own figures", "[grpo]") {
  const std::vector<Setting> oom{{"job.gather_whole_model", "true"}, {"cluster.nodes", "12"}};
  const Outcome cannot = evaluate(source_data(), "grpo-32b-production", oom);
  CHECK(!cannot.feasible);
  CHECK(cannot.reason.find("gathers the whole model") != std::string::npos);
  const Outcome can = evaluate(source_data(), "grpo-32b-production", {});
  CHECK(can.feasible);
  CHECK(*can.of("step_time") > *can.of("sync_time"));
  const std::vector<Setting> rule{{"job.vllm_tensor_parallel_size", "4"}};
  CHECK(evaluate(source_data(), "grpo-32b-production", rule).reason ==
        "job.vllm_tensor_parallel_size: no node has 4 GPUs left beside its learners");
}

TEST_CASE("learners that share sequences hold less and train on fewer packs at once", "[grpo]") {
  const Scenario alone = with({}), shared = with({{"job.sequence_parallel_size", "4"}});
  CHECK(packers_of(alone) == 20);
  CHECK(packers_of(shared) == 5);
  const GrpoMemory one = grpo_memory(alone), four = grpo_memory(shared);
  CHECK(four.learner.start == Approx(one.learner.start));
  CHECK(four.learner.training < one.learner.training);
}

TEST_CASE("nodes may hold unequal numbers of learners", "[grpo]") {
  const auto run = [](const char* list) {
    return predict_grpo(with({{"job.learners_per_node", list}}));
  };
  const GrpoPrediction even = run("[4, 4]"), uneven = run("[4, 3, 1]"), less = run("[4, 2]");
  CHECK(uneven.placement.learners.size() == 8);
  CHECK(uneven.memory.learner.start == Approx(even.memory.learner.start));
  CHECK(less.placement.learners.size() == 6);
  CHECK(less.memory.learner.start == Approx(even.memory.learner.start * 8 / 6).epsilon(0.05));
  // One learner alone on its node has one card for all that passes it.
  CHECK(uneven.phases.communication > even.phases.communication);
}

TEST_CASE("parked learners make room for the engine, and pay for two copies", "[grpo]") {
  const auto run = [](const char* parked) {
    const std::vector<Setting> settings{{"job.park_learners", parked}};
    return predict_grpo(load_scenario(source_data(), "colocated-8b", settings));
  };
  const GrpoPrediction here = run("false"), parked = run("true");
  const double bytes = (here.memory.host.sync - parked.memory.host.sync) / -8;  // of one GPU
  CHECK(bytes > 1e9);
  CHECK(here.memory.learner.sync - parked.memory.learner.sync >= bytes);
  CHECK(parked.memory.learner.training == here.memory.learner.training);
  CHECK(here.phases.parking == 0);
  // PCIe 5 carries 64 GB/s at most, each way.
  CHECK(parked.phases.parking > 2 * bytes / 64e9);
  CHECK(parked.phases.parking < 2 * bytes / 10e9);
  CHECK(parked.step_time.value ==
        Approx(here.step_time.value + parked.phases.parking).epsilon(1e-6));
  double sum = 0;
  for (const PhaseSpec& phase : phase_specs()) sum += parked.phases.*phase.seconds;
  CHECK(sum == Approx(parked.step_time.value).epsilon(1e-9));
}

TEST_CASE("a parked reference model costs one copy a batch and no memory while others learn",
          "[grpo]") {
  const auto run = [](const char* parked) {
    const std::vector<Setting> settings{{"job.load_ref_policy", "true"},
                                        {"job.park_reference", parked}};
    return predict_grpo(load_scenario(source_data(), "colocated-8b", settings));
  };
  const GrpoPrediction here = run("false"), parked = run("true");
  const double bytes = here.memory.learner.start - parked.memory.learner.start;  // of one GPU
  CHECK(bytes > 1e9);
  CHECK(here.memory.learner.training - parked.memory.learner.training >= bytes);
  CHECK(parked.memory.host.training - here.memory.host.training == Approx(8 * bytes));
  CHECK(parked.phases.reference > bytes / 64e9);
  CHECK(parked.phases.reference < bytes / 10e9);
  CHECK(parked.training == Approx(here.training + parked.phases.reference).epsilon(1e-6));
}

TEST_CASE("a policy that gives its place to the reference is copied out and in", "[grpo]") {
  const auto reference = [](const char* swapped, const char* memory) {
    const std::vector<Setting> settings{{"job.park_reference", "true"},
                                        {"job.swap_reference", swapped},
                                        {"job.park_memory", memory}};
    return predict_grpo(load_scenario(source_data(), "colocated-8b", settings)).phases.reference;
  };
  CHECK(reference("true", "pinned") == Approx(3 * reference("false", "pinned")).epsilon(0.05));
  CHECK(reference("false", "pageable") > reference("false", "pinned"));
}

TEST_CASE("states that go to new pages go as fast as one thread fills these", "[grpo]") {
  const auto run = [](const char* memory, const char* pages) {
    const std::vector<Setting> settings{
        {"job.park_learners", "true"}, {"job.park_memory", memory}, {"engine.sleep.page", pages}};
    return predict_grpo(load_scenario(source_data(), "colocated-8b", settings));
  };
  const GrpoPrediction slow = run("pageable", "1 GB/s"), fast = run("pageable", "2 GB/s"),
                       pinned = run("pinned", "1 GB/s");
  const double states = 2e9 * (slow.phases.parking - fast.phases.parking);  // bytes of a GPU
  CHECK(states > 1e9);
  CHECK(states < 1.001 * pinned.memory.learner.start);
  CHECK(slow.phases.parking > states / 1e9 + pinned.phases.parking / 2);
}

TEST_CASE("an engine that keeps its weights while it sleeps pays for two copies of them",
          "[grpo]") {
  const auto run = [](const char* level, const char* share) {
    const std::vector<Setting> settings{{"job.vllm_sleep_level", level},
                                        {"job.park_learners", "true"},
                                        {"job.vllm_gpu_memory_utilization", share}};
    return predict_grpo(load_scenario(source_data(), "colocated-8b", settings)).phases.pause;
  };
  const double weights = 2 * 8.03e9;  // bytes
  CHECK(run("1", "0.6") - run("2", "0.6") > 2 * weights / 64e9);
  CHECK(run("1", "0.6") - run("2", "0.6") < 2 * weights / 40e9);
  // A tenth of the memory is given back and mapped again.
  CHECK(run("2", "0.7") - run("2", "0.6") == Approx(2 * 0.1 * 85.9e9 / 100e9).epsilon(0.01));
}

TEST_CASE("an engine that stays awake costs no turns, and its memory adds up with the learner's",
          "[grpo]") {
  const auto run = [](const char* level, const char* share) {
    const std::vector<Setting> settings{{"job.vllm_sleep_level", level},
                                        {"job.vllm_gpu_memory_utilization", share}};
    return predict_grpo(load_scenario(source_data(), "colocated-8b", settings));
  };
  const GrpoPrediction asleep = run("2", "0.3"), awake = run("0", "0.3");
  CHECK(asleep.phases.pause > 1);
  CHECK(awake.phases.pause == 0);
  CHECK(asleep.step_time.value - awake.step_time.value ==
        Approx(asleep.phases.pause).epsilon(0.01));
  CHECK(asleep.memory.engine.training == 0);
  CHECK(awake.memory.engine.training == Approx(0.3 * 85.9e9).epsilon(0.01));
  CHECK(!awake.memory.failure);
  CHECK(!run("2", "0.8").memory.failure);
  CHECK_THAT(run("0", "0.8").memory.failure.value_or(""),
             Catch::Contains("engines stay awake while GPUs learn"));
}

namespace {

Scenario in_stages(const std::string& stages) {
  const std::vector<Setting> settings{{"strategy.zero", "1"},
                                      {"strategy.pipeline_parallel.size", stages},
                                      {"stack", "megatron"},
                                      {"job.park_learners", "true"},
                                      {"job.num_mini_batches", "4"}};
  return load_scenario(source_data(), "colocated-8b", settings);
}

}  // namespace

TEST_CASE("micro-batches of learners in stages add up to their replay", "[grpo]") {
  const Scenario scenario = in_stages("4");
  TrainingReplays replays(scenario);
  const std::vector<double> packs(11, 4096);
  Scenario learner = learners_of(scenario);
  learner.job.accumulation = 11;
  learner.job.sequence = 4096;
  const StepInput input{learner.cluster, learner.model, learner.stack, learner.strategy,
                        learner.job};
  const double replayed = in_worker([&] {
                            const StepProgram program = build_step(input, Folding::automatic);
                            return replay(program.traffic.folded.platform, program.graph).makespan;
                          }).value;
  CHECK(replays.parts(packs).seconds == Approx(replayed).epsilon(0.01));
}

TEST_CASE("stages share out what learners hold, and wait for each other", "[grpo]") {
  const GrpoPrediction one = predict_grpo(in_stages("1")), two = predict_grpo(in_stages("2"));
  // Sixteen GPUs share the states either way, but half of the layers stand on each.
  CHECK(two.memory.learner.start < 0.8 * one.memory.learner.start);
  CHECK(two.placement.learners.size() == 16);
  CHECK(two.training > one.training);
  CHECK(two.training < 1.5 * one.training);
  double sum = 0;
  for (const PhaseSpec& phase : phase_specs()) sum += two.phases.*phase.seconds;
  CHECK(sum == Approx(two.step_time.value).epsilon(1e-9));
}

TEST_CASE("short packs take less time than long ones, however short they are", "[grpo]") {
  TrainingReplays replays(load_scenario(source_data(), "colocated-8b"));
  std::vector<double> seconds;
  for (double tokens = 256; tokens <= 8192; tokens *= 2) {
    const std::array<double, 1> pack{tokens};
    seconds.push_back(replays.parts(pack).seconds);
  }
  // Between what launches cost, whatever the length, and what grows with it.
  for (std::size_t i = 1; i < seconds.size(); ++i) {
    CAPTURE(i);
    CHECK(seconds[i] > seconds[i - 1]);
    CHECK(seconds[i] < 2.2 * seconds[i - 1]);
  }
  CHECK(seconds.back() > 1.5 * seconds.front());
}

TEST_CASE("a call for each tensor takes longer the more engines there are to call", "[grpo]") {
  const auto overhead = [](const char* protocol, const char* nodes) {
    const Scenario scenario = with({{"job.sync_protocol", protocol},
                                    {"cluster.nodes", nodes},
                                    {"job.learners_per_node", "[4, 4]"}});
    return replay_sync(scenario, place(scenario.cluster, *scenario.grpo)).overhead;
  };
  // 707 tensors; 4 and 12 engines.
  const Scenario scenario = with({});
  const double each = scenario.engine->sync.engine.value.value;
  CHECK(overhead("v1", "8") - overhead("v1", "4") == Approx(707 * 8 * each));
  CHECK(overhead("v2", "8") - overhead("v2", "4") == Approx(8 * each));
}

// 18867 tensors: one after the other each has its call, its gather and its copies; packed they
// share them. Published: 90 s tensor by tensor, 2.5 to 12 s in buckets.
TEST_CASE("a model with many experts is handed over in buckets in a tenth of the time", "[grpo]") {
  const auto seconds = [](const char* protocol, const char* layout) {
    std::vector<Setting> settings{{"model", "qwen3-30b-a3b"},
                                  {"cluster", "{node: h100-8, nodes: 4}"},
                                  {"constants", "{}"},
                                  {"job.sync_protocol", protocol},
                                  {"job.layout", layout}};
    if (std::string_view(layout) == "colocated") {
      settings.push_back({"job.async_steps", "0"});
    } else {
      settings.push_back({"job.num_learners_per_node", "[8, 8]"});
    }
    const Scenario scenario = load_scenario(source_data(), "colocated-8b", settings);
    const SyncReplay sync = replay_sync(scenario, place(scenario.cluster, *scenario.grpo));
    return sync.cost.gather.value + sync.cost.send.value;
  };
  const double each = seconds("v1", "separate"), buckets = seconds("buckets", "separate");
  CHECK(each > 60);
  CHECK(buckets < 40);
  CHECK(buckets < each / 5);
  CHECK(seconds("buckets", "colocated") < 40);
  CHECK(seconds("host_buckets", "separate") < buckets);
  // 61 GB pass two kinds of new pages and are read again.
  const double files = seconds("files", "separate");
  CHECK(files > 3 * 61e9 / 2e9);
  CHECK(files < each);
}

TEST_CASE("a checkpoint is written at the rate of a file", "[grpo]") {
  const auto written = [](const char* protocol) {
    const Scenario scenario = load_scenario(source_data(), "colocated-8b",
                                            std::vector<Setting>{{"job.sync_protocol", protocol}});
    return replay_sync(scenario, place(scenario.cluster, *scenario.grpo)).written;
  };
  CHECK(written("files") == Approx(2.0 * 8030261248 / 2e9).epsilon(1e-6));
  CHECK(written("buckets") == 0);
}

// A replay that is kept answers for the same learners alone.
TEST_CASE("learners that differ in one constant are replayed anew", "[grpo]") {
  const auto training = [](const std::vector<Setting>& settings) {
    return predict_grpo(with(settings)).training;
  };
  const double first = training({});
  CHECK(training({{"cluster.gemm.rate", "100 TFLOP/s"}}) > 1.05 * first);
  CHECK(training({{"stack.host.forward_launch", "5 ms"}}) > 1.05 * first);
  CHECK(training({{"strategy.checkpointing", "none"}}) < first);
  CHECK(training({{"job.total_episodes", "20000"}}) == first);
  CHECK(training({}) == first);
}

// Engines load a bucket while the next one is broadcast: the longer of both counts, and of the
// other its first or last bucket.
TEST_CASE("buckets out of host memory are loaded beside the next broadcast", "[grpo]") {
  const auto sync = [](const char* load, const char* bucket) {
    const Scenario scenario =
        load_scenario(source_data(), "colocated-8b",
                      std::vector<Setting>{{"job.sync_protocol", "host_buckets"},
                                           {"job.sync_bucket", bucket},
                                           {"engine.sync.load", load}});
    return replay_sync(scenario, place(scenario.cluster, *scenario.grpo)).cost.send.value;
  };
  const double tensors = 291, bytes = 2.0 * 8030261248;
  const double sent = sync("0 s", "1 GiB"), both = sync("1 ms", "1 GiB"),
               slow = sync("100 ms", "1 GiB");
  CHECK(sent < both);
  CHECK(both < sent + tensors * 1e-3);
  CHECK(slow > tensors * 0.1);
  CHECK(slow < sent + tensors * 0.1);
  CHECK(sent > bytes / 450e9);  // what NVLink moves
}

TEST_CASE("a checkpoint is written before it is read, each as fast as its file system", "[grpo]") {
  const auto sync = [](const char* constant, const char* rate) {
    std::vector<Setting> settings{{"job.sync_protocol", "files"},
                                  {"engine.sync.write", "4 GB/s"},
                                  {"engine.sync.read", "8 GB/s"}};
    settings.push_back({constant, rate});
    const Scenario scenario = load_scenario(source_data(), "colocated-8b", settings);
    return replay_sync(scenario, place(scenario.cluster, *scenario.grpo)).cost;
  };
  const double bytes = 2.0 * 8030261248;
  const SyncCost usual = sync("engine.sync.write", "4 GB/s"),
                 slow = sync("engine.sync.write", "1 GB/s"),
                 far = sync("engine.sync.read", "1 GB/s");
  CHECK(usual.gather.value > bytes / 4e9);
  CHECK(slow.gather.value - usual.gather.value == Approx(bytes * 0.75e-9));
  CHECK(slow.send.value == Approx(usual.send.value));
  CHECK(far.send.value - usual.send.value == Approx(bytes * 0.875e-9));
}

TEST_CASE("adapters alone are handed over in a fraction of the time", "[grpo]") {
  const auto sync = [](const char* adapters) {
    const Scenario scenario = load_scenario(source_data(), "grpo-32b-lora-r16",
                                            std::vector<Setting>{{"job.sync_adapters", adapters}});
    const SyncCost cost = replay_sync(scenario, place(scenario.cluster, *scenario.grpo)).cost;
    return cost.gather.value + cost.send.value;
  };
  CHECK(sync("true") < sync("false") / 20);
}

TEST_CASE("a critic is trained beside the policy, and a reward model runs along", "[grpo]") {
  const auto p = [](const char* critic, const char* reward) {
    return predict_grpo(
        load_scenario(source_data(), "colocated-8b",
                      std::vector<Setting>{{"job.critic", critic}, {"job.reward_model", reward}}));
  };
  const GrpoPrediction alone = p("false", "false"), critic = p("true", "false"),
                       both = p("true", "true");
  CHECK(alone.phases.critic == 0);
  CHECK(critic.phases.critic > 0.5 * alone.training);
  CHECK(critic.phases.critic < 1.5 * alone.training);
  CHECK(critic.training == Approx(alone.training + critic.phases.critic).epsilon(1e-3));
  CHECK(both.phases.critic > critic.phases.critic);
  CHECK(critic.memory.learner.start > 1.5 * alone.memory.learner.start);
  double sum = 0;
  for (const PhaseSpec& phase : phase_specs()) sum += both.phases.*phase.seconds;
  CHECK(sum == Approx(both.step_time.value).epsilon(1e-9));
}

TEST_CASE("memory is the same figure with and without a replay", "[grpo]") {
  for (const char* name : {"grpo-32b-packed", "grpo-7b-two-nodes", "colocated-8b"}) {
    const Scenario scenario = load_scenario(source_data(), name);
    const GrpoMemory alone = grpo_memory(scenario), beside = predict_grpo(scenario).memory;
    CAPTURE(name);
    CHECK(alone.learner.start == beside.learner.start);
    CHECK(alone.learner.training == beside.learner.training);
    CHECK(alone.learner.sync == beside.learner.sync);
    CHECK(alone.engine.most() == beside.engine.most());
    CHECK(alone.host.most() == beside.host.most());
    CHECK(alone.failure == beside.failure);
  }
}

// What a person waits for does not grow by minutes with the GPUs of an engine.
TEST_CASE("engines of more GPUs start a minute later, not ten", "[grpo]") {
  const auto start = [](const char* gpus) {
    return predict_grpo(with({{"job.vllm_tensor_parallel_size", gpus},
                              {"job.num_learners_per_node", "[4, 4]"}}))
        .start_up.value;
  };
  const double one = start("1"), two = start("2"), four = start("4");
  CHECK(two - one > 30);
  CHECK(four - one < 120);
}

// Measured 158 s and 95 s, 1.66 times; between 1.3 and 1.7 is what is asked for.
TEST_CASE("over sockets packed learners hand their weights over in less time", "[grpo]") {
  const auto sync = [](const char* run) {
    return predict_grpo(load_scenario(source_data(), run)).sync;
  };
  const std::string seeds = STEPSIM_SOURCE_DATA "/scenarios/seeds/";
  const double ratio = sync((seeds + "grpo-32b-sync-spread.yaml").c_str()) /
                       sync((seeds + "grpo-32b-sync-packed.yaml").c_str());
  CHECK(ratio > 1.3);
  CHECK(ratio < 1.7);
}

TEST_CASE("a card is never busy for longer than the step, and less where neighbours are near",
          "[grpo]") {
  const auto busy = [](std::vector<Setting> settings) {
    const GrpoPrediction p = predict_grpo(with(std::move(settings)));
    CHECK(p.card_busy <= 1);
    CHECK(p.card_busy * p.step_time.value >=
          p.phases.communication + p.phases.gather + p.phases.broadcast - 1e-6);
    return p.card_busy * p.step_time.value;
  };
  const double alone = busy({});
  CHECK(busy({{"job.learners_per_node", "[4, 4, 4, 4]"}}) < alone);
  // Colocated learners on one node have no neighbours beyond it, and send nothing.
  const std::vector<Setting> settings{{"cluster.nodes", "1"}};
  CHECK(predict_grpo(load_scenario(source_data(), "colocated-8b", settings)).card_busy == 0);
}

TEST_CASE("packs too short to hide traffic are warned about, unless there is only one each",
          "[grpo]") {
  const auto warned = [](std::vector<Setting> settings) {
    settings.emplace_back("cluster.node", "isambard-ai-tcp");
    const GrpoPrediction p = predict_grpo(with(std::move(settings)));
    return std::any_of(p.warnings.begin(), p.warnings.end(), [](const std::string& text) {
      return text.find("too short to hide") != std::string::npos;
    });
  };
  CHECK(warned({}));
  CHECK_FALSE(warned({{"job.num_unique_prompts_rollout", "8"}}));
}
