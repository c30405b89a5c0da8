#include "scenarios/rows/engine_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/config.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/grpo/lengths.hpp"

namespace stepsim {
namespace {

constexpr std::array<NumberColumn<EngineRow>, 8> engine_numbers{{
    {"num_prompts", &EngineRow::prompts},
    {"total_tok_s", &EngineRow::total_rate},
    {"output_tok_s", &EngineRow::output_rate},
    {"request_s", &EngineRow::request_rate},
    {"duration_s", &EngineRow::duration},
    {"mean_ttft_ms", &EngineRow::first_token_ms},
    {"mean_tpot_ms", &EngineRow::per_token_ms},
    {"latency_s", &EngineRow::latency},
}};

EngineBits bits_in(const Table& table, std::string_view key) {
  const bool narrow = table.has(key) && table.choice(key, {"bf16", "fp8"}) == "fp8";
  return narrow ? EngineBits::fp8 : EngineBits::half;
}

// All requests are as long as said, or as conversations are whose mean that is.
void read_lengths(bool varied, EngineLoad& load) {
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

EngineLoad load_of(std::string_view cell, const std::string& id) {
  constexpr double longest = 1e7;
  constexpr std::int64_t most = 1 << 24, widest = 1 << 16;
  const Document document = parse_document(cell, id);
  const Table table = document.root();
  EngineLoad load;
  load.model = table.text("model");
  load.stack = table.text_or("engine", "vllm");
  load.cluster = {.name = table.text("node"), .nodes = 1, .network = ""};
  load.engine.tensor_parallel =
      static_cast<std::uint32_t>(table.integer_or("tensor_parallel", 1, 1, widest));
  load.engine.weights = bits_in(table, "weights");
  load.engine.cache = bits_in(table, "cache");
  load.engine.enforce_eager = table.flag_or("eager", false);
  load.engine.prefix_caching = true;
  load.sequences = table.integer_or("sequences", 0, 0, most);
  load.input = table.number("prompt", 1, longest);
  load.output = table.number("answer", 1, longest);
  load.asked = table.number_or("asked", load.output, 1, longest);
  load.requests = table.integer("requests", 1, most);
  load.at_once = table.integer_or("at_once", 0, 0, most);
  load.chat = table.flag_or("over_http", false);
  load.benchmark = table.flag_or("own_benchmark", false);
  const bool varied =
      table.has("lengths") && table.choice("lengths", {"fixed", "varied"}) == "varied";
  document.finish();
  read_lengths(varied, load);
  return load;
}

EngineRow engine_row(const CsvTable& table, const CsvTable::Row& line) {
  EngineRow row = row_of<EngineRow>(table, line, engine_numbers);
  const std::string_view load = trimmed(table.cell(line, "load"));
  if (row.missing.empty() && load.empty()) row.missing.emplace_back("what was served (load)");
  if (row.missing.empty()) try {
      row.load = load_of(load, row.id);
    } catch (const UserError& error) {
      row.missing.emplace_back(error.what());
    }
  if (row.family.empty()) row.family = "engine " + row.load.cluster.name;
  return row;
}

}  // namespace

bool holds_engine_rows(const CsvTable& table) {
  return table.column("load").has_value();
}

std::vector<std::string> engine_columns() {
  std::vector<std::string> names{"id", "family", "load", "taken", "not_expressed"};
  for (const auto& [column, member] : engine_numbers) names.emplace_back(column);
  return names;
}

std::vector<EngineRow> engine_rows(const CsvTable& table) {
  require_columns(table, {"id"});
  return mapped(table.rows, [&](const CsvTable::Row& line) { return engine_row(table, line); });
}

}  // namespace stepsim
