#include "scenarios/rows/engine_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "scenarios/rows/machine_cells.hpp"
#include "scenarios/rows/step_row.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "workloads/grpo/lengths.hpp"

namespace stepsim {
namespace {

constexpr std::array engine_texts{
    std::pair{"source", &EngineRow::source},     std::pair{"hardware", &EngineRow::hardware},
    std::pair{"model", &EngineRow::model},       std::pair{"dtype", &EngineRow::dtype},
    std::pair{"engine", &EngineRow::engine},     std::pair{"input_len", &EngineRow::input},
    std::pair{"output_len", &EngineRow::output}, std::pair{"command", &EngineRow::command},
    std::pair{"notes", &EngineRow::notes},       std::pair{"why", &EngineRow::why},
};

constexpr std::array engine_numbers{
    std::pair{"gpus", &EngineRow::gpus},
    std::pair{"tp", &EngineRow::tensor},
    std::pair{"num_prompts", &EngineRow::prompts},
    std::pair{"max_concurrency", &EngineRow::concurrency},
    std::pair{"total_tok_s", &EngineRow::total_rate},
    std::pair{"output_tok_s", &EngineRow::output_rate},
    std::pair{"request_s", &EngineRow::request_rate},
    std::pair{"duration_s", &EngineRow::duration},
    std::pair{"mean_ttft_ms", &EngineRow::first_token_ms},
    std::pair{"mean_tpot_ms", &EngineRow::per_token_ms},
    std::pair{"latency_s", &EngineRow::latency},
};

// The engine whose name the row's has in it.
void read_engine(const EngineRow& row, const RowCatalog& catalog, ExpressedEngineRow& made) {
  constexpr std::string_view usual = "vllm";
  for (const RowCatalog::EngineName& engine : catalog.engines)
    if (contains(in_small_letters(row.engine), engine.name)) made.load.stack = engine.name;
  if (!made.load.stack.empty()) return;
  made.load.stack = usual;
  made.assumed.push_back(
      fmt::format("{} works as {} does", row.engine, catalog.engine(usual)->title));
}

void read_bits(const EngineRow& row, const RowCatalog& catalog, ExpressedEngineRow& made) {
  const std::string type = in_small_letters(row.dtype);
  if (contains(type, "fp8")) {
    made.load.engine.weights = EngineBits::fp8;
    // The vendors' own figures keep keys and values in 8 bits as well.
    const bool both = catalog.engine(made.load.stack)->stack.cache_follows_weights;
    if (both) made.load.engine.cache = EngineBits::fp8;
    made.assumed.emplace_back(both ? "keys and values in 8 bits" : "keys and values in 16 bits");
  } else if (type.empty()) {
    made.assumed.emplace_back("weights in 16 bits");
  } else if (!contains(type, "bf16") && !contains(type, "fp16") && !contains(type, "bfloat16")) {
    made.missing.push_back(fmt::format("weights as {}", row.dtype));
  }
}

void read_machine(const EngineRow& row, const RowCatalog& catalog, ExpressedEngineRow& made) {
  const NamedNode named = named_node(catalog, {row.hardware, "", {}});
  const RowCatalog::NodeSize* node = named.node;
  if (node == nullptr) {
    made.missing.push_back(named.why);
    return;
  }
  const double gpus = row.gpus.value_or(row.tensor.value_or(1));
  const double width = row.tensor.value_or(gpus);
  made.family = fmt::format("engine {}{}", node->gpu,
                            made.load.engine.weights == EngineBits::fp8 ? " fp8" : "");
  made.load.engine.tensor_parallel = static_cast<std::uint32_t>(std::max(1.0, width));
  made.load.cluster = {.name = node->name, .nodes = 1, .network = ""};
  if (width > node->gpus) made.missing.push_back(fmt::format("{:g} GPUs in a node", width));
  if (gpus > width)
    made.missing.push_back(fmt::format("{:g} GPUs for an engine of {:g}", gpus, width));
}

// Reads a batch: what the engine's server takes by default, or what the row says.
void read_batch(const EngineRow& row, const RowCatalog& catalog, ExpressedEngineRow& made) {
  constexpr std::string_view said = "max num seqs ", said_too = "max-num-seqs ";
  const RowCatalog::NodeSize* node = catalog.node(made.load.cluster.name);
  if (node == nullptr) return;
  const EngineStack::Limits limits =
      catalog.engine(made.load.stack)->stack.served_on(catalog.gpus.at(node->gpu));
  Grpo& engine = made.load.engine;
  engine.batched_tokens = limits.tokens;
  engine.batched_sequences = limits.sequences;
  engine.memory_utilization = limits.share;
  engine.prefix_caching = true;
  const std::string command = in_small_letters(row.command);
  engine.enforce_eager =
      contains(command, "--enforce-eager") || contains(command, "--disable-cuda-graph");
  const std::string notes = in_small_letters(row.notes);
  std::size_t place = notes.find(said);
  if (place == std::string::npos) place = notes.find(said_too);
  if (place != std::string::npos)
    engine.batched_sequences = std::max(1, std::atoi(notes.c_str() + place + said.size()));
  else
    made.assumed.push_back(
        fmt::format("{} sequences in a batch at most", engine.batched_sequences));
}

Cell one_number(const std::string& text) {
  std::vector<std::string> unreadable;
  return number_in(text, "", unreadable);
}

void read_lengths(const EngineRow& row, ExpressedEngineRow& made) {
  Cell input = one_number(row.input), output = one_number(row.output);
  // A set of conversations has the lengths that the rates say.
  if (!output && row.output_rate && row.request_rate && *row.request_rate > 0)
    output = *row.output_rate / *row.request_rate;
  if (!input && row.total_rate && row.output_rate && row.request_rate && *row.request_rate > 0)
    input = (*row.total_rate - *row.output_rate) / *row.request_rate;
  if (!input || !output || *input < 1 || *output < 1)
    made.missing.emplace_back("the lengths of prompts and answers");
  EngineLoad& load = made.load;
  load.input = std::max(1.0, input.value_or(1));
  load.asked = load.output = std::max(1.0, output.value_or(1));
  const bool varied = !one_number(row.output);  // conversations, not answers of one length
  // Answers may end before what was asked for.
  if (!varied && row.output_rate && row.duration && row.prompts && *row.prompts > 0)
    load.output = std::clamp(*row.output_rate * *row.duration / *row.prompts, 1.0, load.asked);
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

// Returns as many requests as the engine's own benchmark sends at once for such lengths; 0: it has
// none.
std::int64_t benchmark_requests(const EngineStack& stack, const EngineLoad& load) {
  for (const EngineStack::Benchmark& own : stack.benchmark)
    if (own.prompt == std::llround(load.input) && own.answer == std::llround(load.output))
      return own.requests;
  return 0;
}

void read_requests(const EngineRow& row, const RowCatalog& catalog, ExpressedEngineRow& made) {
  made.load.at_once = std::llround(row.concurrency.value_or(0));
  made.load.chat = row.first_token_ms && made.load.at_once == 0;
  if (row.prompts) {
    made.load.requests = std::max<std::int64_t>(1, std::llround(*row.prompts));
  } else if (made.load.at_once > 0) {
    made.load.requests = 4 * made.load.at_once;
  } else if (const std::int64_t own =
                 benchmark_requests(catalog.engine(made.load.stack)->stack, made.load)) {
    made.load.requests = own;
    made.load.benchmark = true;
    made.assumed.emplace_back("as many requests as the engine's own benchmark sends at once");
  } else {
    made.load.requests = 3 * made.load.engine.batched_sequences;
    made.assumed.push_back(
        fmt::format("{} requests, all there from the start", made.load.requests));
  }
}

}  // namespace

bool holds_engine_rows(const CsvTable& table) {
  return table.column("output_tok_s") || table.column("mean_tpot_ms");
}

std::vector<std::string> engine_columns() {
  return columns_of(engine_texts, engine_numbers);
}

std::vector<EngineRow> engine_rows(const CsvTable& table) {
  return rows_from<EngineRow>(table, engine_texts, engine_numbers);
}

ExpressedEngineRow express(const EngineRow& row, const RowCatalog& catalog) {
  ExpressedEngineRow made{row.id, "engine " + row.hardware, {}, row.unreadable, {}};
  made.load.model = same_model(catalog, row.model);
  if (made.load.model.empty()) made.missing.push_back(fmt::format("the model \"{}\"", row.model));
  read_engine(row, catalog, made);
  read_bits(row, catalog, made);
  read_machine(row, catalog, made);
  read_batch(row, catalog, made);
  read_lengths(row, made);
  read_requests(row, catalog, made);
  const bool measured = row.total_rate || row.output_rate || row.request_rate || row.duration ||
                        row.per_token_ms || row.latency;
  if (!measured) made.missing.emplace_back(row.why.empty() ? "a rate or a time" : row.why);
  return made;
}

}  // namespace stepsim
