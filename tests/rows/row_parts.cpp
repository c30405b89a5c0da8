// This says what parts of a GRPO job take by themselves, as somebody measured them alone: an engine
// that serves a load, a weight sync, and an update of the policy. measure/rows.py asks it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/entries.hpp"
#include "sim/base/error.hpp"
#include "sim/base/record.hpp"
#include "tests/support/serving.hpp"
#include "workloads/grpo/decode.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/step/model_flops.hpp"

using namespace stepsim;

namespace {

// A load is what is served, as an engine sees it.
struct EngineLoad {
  Grpo engine;                   // its width and precision, and how long answers are
  Grpo prompts;                  // how long prompts are
  double input = 0, output = 0;  // tokens of a request, mean
  double asked = 0;              // tokens that an answer may have; 0: what it has
  std::int64_t requests = 0;
};

EngineBits bits_in(const Table& table, std::string_view key) {
  const bool narrow = table.has(key) && table.choice(key, {"bf16", "fp8"}) == "fp8";
  return narrow ? EngineBits::fp8 : EngineBits::half;
}

// All requests are as long as said, or as conversations are whose mean that is.
void set_lengths(bool varied, EngineLoad& load) {
  ResponseLengths& answers = load.engine.lengths;
  ResponseLengths& prompts = load.prompts.lengths;
  prompts = {.kind = LengthKind::fixed, .mean = load.input, .sigma = 0, .list = {}, .seed = 2};
  answers = {.kind = LengthKind::fixed, .mean = load.output, .sigma = 0, .list = {}, .seed = 1};
  load.prompts.response_limit = std::llround(load.input);
  load.engine.response_limit = std::llround(load.asked);
  if (!varied) return;
  // These are the prompts that vllm/benchmarks/datasets.py keeps of ShareGPT: up to 1024 tokens.
  constexpr std::int64_t longest = 1024;
  constexpr double prompt_sigma = 1.3, answer_sigma = 1.1;
  load.prompts.response_limit = std::max<std::int64_t>(longest, std::llround(load.input));
  load.engine.response_limit = std::max<std::int64_t>(longest, std::llround(load.output));
  prompts = lengths_with_mean(load.input, prompt_sigma, load.prompts.response_limit, 2);
  answers = lengths_with_mean(load.output, answer_sigma, load.engine.response_limit, 1);
  load.asked = 0;
}

EngineLoad load_of(const Table& table) {
  constexpr double longest = 1e7;
  constexpr std::int64_t most = 1 << 24, widest = 1 << 16;
  EngineLoad load;
  load.engine.tensor_parallel =
      static_cast<std::uint32_t>(table.integer_or("tensor_parallel", 1, 1, widest));
  load.engine.weights = bits_in(table, "weights");
  load.engine.cache = bits_in(table, "cache");
  load.engine.enforce_eager = table.flag_or("eager", false);
  load.engine.prefix_caching = true;
  load.input = table.number("prompt", 1, longest);
  load.output = table.number("answer", 1, longest);
  load.asked = table.number_or("asked", load.output, 1, longest);
  load.requests = table.integer("requests", 1, most);
  set_lengths(table.has("lengths") && table.choice("lengths", {"fixed", "varied"}) == "varied",
              load);
  return load;
}

EngineStack engine_of(const Catalogue& data, const Model& model, const Table& table,
                      const MaybeDraw& draw) {
  Document document = open_entry(data, engine_shelf, table.text_or("engine", "vllm"));
  if (draw) document.draw_constants(*draw, "engine");
  EngineStack stack = read_engine_stack(document.root());
  if (table.flag_or("own_benchmark", false)) stack.graphs.answers = stack.benchmark_graphs;
  if (model.mixer && attention_layers(model) == 0)
    throw UserError(
        fmt::format("an engine of {}, none of whose layers attend, is not modelled", model.name));
  if (model.mixer) load_mixers(data, draw, stack);
  return stack;
}

Records engine(const Catalogue& data, const std::string& file, const MaybeDraw& draw) {
  const Document document = read_document(file);
  const Table table = document.root();
  EngineLoad load = load_of(table);
  const Cluster cluster =
      load_cluster(data, {.name = table.text("node"), .nodes = 1, .network = ""}, draw);
  const Model model = load_model(data, table.text("model"));
  const EngineStack stack = engine_of(data, model, table, draw);
  const EngineStack::Limits served = stack.served_on(cluster.gpu);
  constexpr std::int64_t most = 1 << 24;
  const std::int64_t sequences = table.integer_or("sequences", 0, 0, most);
  const std::int64_t at_once = table.integer_or("at_once", 0, 0, most);
  const bool http = table.flag_or("over_http", false);
  document.finish();
  load.engine.batched_tokens = served.tokens;
  load.engine.batched_sequences = sequences > 0 ? sequences : served.sequences;
  load.engine.memory_utilization = served.share;
  for (const std::string& problem : unshared(model, load.engine.tensor_parallel))
    throw UserError(fmt::format("tp: {}", problem));
  const DecodeModel decode(cluster, model, stack, load.engine);
  const double needed = decode.taken_by(load.input + load.output);
  if (decode.capacity() < needed)
    throw UserError(fmt::format("an engine's cache holds {:.0f} tokens, a request needs {:.0f}",
                                decode.capacity(), needed));
  EngineLimits limits = limits_of(decode, stack, load.engine);
  limits.admitted = load.requests;
  const auto tokens = [](const Grpo& of) {
    return [&of](std::uint64_t n) { return response_tokens(of, n, 0); };
  };
  const Served s = serve(decode, limits,
                         {.count = load.requests,
                          .at_once = at_once,
                          .prompt = tokens(load.prompts),
                          .answer = tokens(load.engine),
                          .asked = std::llround(load.asked),
                          .front = http ? stack.host.request.number() : 0});
  return {{"requests", "", load.requests},    {"seconds", "", s.seconds},
          {"prompted", "", s.prompted},       {"generated", "", s.generated},
          {"first_token", "", s.first_token}, {"per_token", "", s.per_token},
          {"latency", "", s.latency}};
}

Scenario job_of(const Catalogue& data, const std::string& file, const MaybeDraw& draw) {
  Scenario scenario = load_scenario(data, file, {}, draw);
  if (!scenario.grpo) throw UserError("job.method: expected grpo");
  return scenario;
}

// Engines wait for what is sent, learners for what they gather; what nobody waits for may be
// written to no file.
Records weight_sync(const Catalogue& data, const std::string& file, const MaybeDraw& draw) {
  const Scenario scenario = job_of(data, file, draw);
  const SyncReplay sync = replay_sync(scenario, place(scenario.cluster, *scenario.grpo));
  return {{"send", "", sync.cost.send.value},
          {"gather", "", sync.cost.gather.value},
          {"written", "", sync.written}};
}

// Returns the seconds of learners without what they score: the update of the policy alone.
double update_seconds(Scenario scenario) {
  scenario.grpo->reference_model = scenario.grpo->park_reference = false;
  scenario.grpo->swap_reference = scenario.grpo->always_scores = false;
  scenario.grpo->engine_logprobs = true;
  return predict_grpo(scenario).training;
}

// Says which share of the learners' peak an update of the policy reaches.
Records update(const Catalogue& data, const std::string& file, const MaybeDraw& draw) {
  const Scenario scenario = job_of(data, file, draw);
  const GrpoPrediction p = predict_grpo(scenario);
  Scenario learner = learners_of(scenario);
  learner.job.micro_batch = learner.job.accumulation = 1;
  learner.job.reference_model = false;
  learner.job.scoring_passes = 0;
  const double ranks = learner.cluster.ranks();
  const double rows =
      static_cast<double>(packers_of(scenario)) * static_cast<double>(learner.job.sequence);
  const double each = model_flops(step_input(learner)).total() * ranks / rows;
  const double tokens = p.trained_per_second * p.step_time.value;
  return {{"utilisation", "",
           each * tokens / update_seconds(scenario) /
               (ranks * learner.cluster.gpu.peak.bf16.number())}};
}

using Answer = Records (*)(const Catalogue&, const std::string&, const MaybeDraw&);

// Prints the part with stated constants, then as often with drawn ones.
int answer(const Catalogue& data, Answer part, const std::string& file, std::uint32_t samples) {
  std::string text = to_json(part(data, file, {}));
  for (std::uint32_t sample = 0; sample < samples; ++sample)
    text += ", " + to_json(part(data, file, Draw{.seed = 1, .sample = sample, .of = samples}));
  fmt::print("[{}]\n", text);
  return 0;
}

}  // namespace

int main(int count, char** words) try {
  std::vector<std::string> folders{STEPSIM_SOURCE_DATA};
  std::vector<std::string> said(words + 1, words + count);
  for (; said.size() > 2 && said.front() == "--data"; said.erase(said.begin(), said.begin() + 2))
    folders.push_back(said[1]);
  if (said.size() != 3) throw UserError("row_parts [--data DIR] engine|sync|update FILE SAMPLES");
  const Answer part = said[0] == "engine" ? engine : said[0] == "sync" ? weight_sync : update;
  return answer(Catalogue(folders), part, said[1],
                static_cast<std::uint32_t>(std::strtoul(said[2].c_str(), nullptr, 10)));
} catch (const UserError& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
