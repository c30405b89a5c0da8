// The tables of keys: what is made of them, and where a value comes from.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/keys/key_pages.hpp"
#include "scenarios/keys/key_tables.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/resolved.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/whole_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/catalog.hpp"
#include "workloads/grpo/lengths.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();
constexpr std::string_view head =
    "name: a run\nmodel: llama-3.2-1b\ncluster: {node: h100-8}\nstack: deepspeed-hf\n";

Scenario parse(const std::string& rest) {
  return parse_scenario(data, fmt::format("{}{}", head, rest), "run.yaml");
}

std::string problem_of(const std::string& rest) {
  try {
    parse(rest);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

ResolvedKey key_of(const Scenario& scenario, std::string_view path) {
  for (ResolvedKey& key : resolved_keys(scenario))
    if (key.path() == path) return key;
  FAIL("no key " << path);
  return {};
}

// "value, origin".
std::string said_of(const Scenario& scenario, std::string_view path) {
  const ResolvedKey key = key_of(scenario, path);
  return fmt::format("{}, {}", value_text(key), origin_text(key));
}

template <class Subject>
std::vector<std::string> paths_of(std::string_view name, std::span<const Block<Subject>> blocks) {
  std::vector<std::string> paths;
  for (const Block<Subject>& block : blocks)
    for (const Key<Subject>& key : block.keys)
      paths.push_back(block.name.empty()
                          ? fmt::format("{}.{}", name, key.facts.name)
                          : fmt::format("{}.{}.{}", name, block.name, key.facts.name));
  return paths;
}

}  // namespace

TEST_CASE("the template and the page of keys are what the tables print", "[keys]") {
  INFO("print them anew: stepsim list keys --template sft, --template grpo, --markdown");
  CHECK(read_file(data.file("scenarios/template.yaml")) == template_text(Method::sft));
  CHECK(read_file(data.file("scenarios/grpo/template-grpo.yaml")) == template_text(Method::grpo));
  CHECK(read_file(data.file("docs/keys.md")) == key_page());
}

TEST_CASE("no key stands twice, and each has a sentence", "[keys]") {
  std::set<std::string> seen;
  for (const KeyGroup& group : key_groups())
    for (const KeyRow& row : group.rows) {
      const std::string path = fmt::format("{}.{}", group.block, row.name);
      CAPTURE(path);
      CHECK(seen.insert(path).second);
      CHECK(row.sentence.size() > 4);
      CHECK_FALSE(row.sentence.ends_with('.'));
      CHECK_FALSE(row.usual.empty());
    }
  CHECK(seen.size() > 150);
}

TEST_CASE("every key of the tables is resolved, of every kind of job", "[keys]") {
  for (const std::string name : {"template", "template-grpo", "llama4-scout-qlora-1xh100"}) {
    const Scenario scenario = load_scenario(data, name);
    std::vector<std::string> expected = paths_of("strategy", strategy_blocks());
    const auto expect = [&](const std::vector<std::string>& more) {
      expected.insert(expected.end(), more.begin(), more.end());
    };
    expect(paths_of("cluster", cluster_blocks()));
    expect(scenario.grpo ? paths_of("job", grpo_blocks()) : paths_of("job", job_blocks()));
    if (scenario.measured) expect(paths_of("measured", observation_blocks()));
    std::set<std::string> found;
    for (const ResolvedKey& key : resolved_keys(scenario)) found.insert(key.path());
    for (const std::string& path : expected) {
      CAPTURE(name, path);
      CHECK(found.count(path) == 1);
    }
  }
  CHECK(said_of(load_scenario(data, "llama4-scout-qlora-1xh100"), "strategy.lora.quantised")
            .starts_with("nf4, line "));
}

TEST_CASE("a default of the tables is what the reader makes of a file without the key", "[keys]") {
  const Scenario scenario = parse("job: {sequence: 128}\nstrategy: {zero: 3}\n");
  const Strategy defaults;
  for (const Block<Strategy>& block : strategy_blocks())
    for (const Key<Strategy>& key : block.keys) {
      if (key.text == nullptr || key.prepare != nullptr) continue;
      CAPTURE(block.name, key.facts.name);
      CHECK(key.text(key.facts, scenario.strategy) == key.text(key.facts, defaults));
    }
  CHECK(scenario.strategy.zero.overlap_comm);
  CHECK_FALSE(parse("job: {sequence: 128}\nstrategy: {zero: 2}\n").strategy.zero.overlap_comm);
}

TEST_CASE("a misspelt key of any block is named with the nearest one", "[keys]") {
  // A name without its first letter is near to nothing else.
  const auto check = [](std::string_view block, const auto& keys) {
    for (const auto& key : keys) {
      // deepspeed_except is known next to deepspeed alone.
      if (key.facts.name.size() < 6 || key.facts.name == "deepspeed_except") continue;
      const std::string wrong(key.facts.name.substr(1));
      const std::string inner = fmt::format("{}: 1", wrong);
      const std::string text = block.empty()
                                   ? fmt::format("strategy: {{{}}}\n", inner)
                                   : fmt::format("strategy: {{{}: {{{}}}}}\n", block, inner);
      CAPTURE(block, wrong);
      const std::string said = problem_of("job: {sequence: 128}\n" + text);
      CHECK_THAT(said, Catch::Contains(fmt::format("{}: unknown key (did you mean \"{}\"?)", wrong,
                                                   key.facts.name)));
    }
  };
  for (const Block<Strategy>& block : strategy_blocks()) check(block.name, block.keys);
}

TEST_CASE("a value outside its limits or words is refused by every key", "[keys]") {
  const auto refused = [](const std::string& path, std::string_view value) {
    const std::size_t dot = path.find('.');
    const std::string block = path.substr(0, dot), name = path.substr(dot + 1);
    const std::size_t inner = name.find('.');
    const std::string entry =
        inner == std::string::npos
            ? fmt::format("{}: {}", name, value)
            : fmt::format("{}: {{{}: {}}}", name.substr(0, inner), name.substr(inner + 1), value);
    return problem_of(block == "job"
                          ? fmt::format("job: {{sequence: 128, {}}}\nstrategy: {{}}\n", entry)
                          : fmt::format("job: {{sequence: 128}}\nstrategy: {{{}}}\n", entry));
  };
  const auto check = [&](std::string_view name, const auto& blocks) {
    for (const auto& block : blocks)
      for (const auto& key : block.keys) {
        if (key.facts.name == "sequence" || key.read == nullptr) continue;
        const std::string path = block.name.empty()
                                     ? fmt::format("{}.{}", name, key.facts.name)
                                     : fmt::format("{}.{}.{}", name, block.name, key.facts.name);
        CAPTURE(path);
        if (key.facts.kind == KeyKind::flag)
          CHECK_THAT(refused(path, "perhaps"),
                     Catch::Contains(path + ": expected true or false, found \"perhaps\""));
        if (key.facts.kind == KeyKind::word)
          CHECK_THAT(refused(path, "zzzzzz"), Catch::Contains(path + ": expected ") &&
                                                  Catch::Contains(", found \"zzzzzz\""));
        if (key.facts.kind == KeyKind::whole || key.facts.kind == KeyKind::number)
          CHECK_THAT(refused(path, "-1"), Catch::Contains(path + ": expected a number from ") &&
                                              Catch::Contains(", found -1"));
      }
  };
  check("strategy", strategy_blocks());
  check("job", job_blocks());
}

TEST_CASE("where a value comes from is named", "[keys]") {
  const TemporaryFolder folder;
  put_bytes(folder.file("ds.json"),
            "{\n\"zero_optimization\": {\n\"stage\": 2,\n\"reduce_bucket_size\": \"auto\"},\n"
            "\"gradient_accumulation_steps\": 4,\n\"train_micro_batch_size_per_gpu\": \"auto\"}\n");
  put_bytes(folder.file("run.yaml"),
            fmt::format("{}job: {{sequence: 128, micro_batch: 2}}\n"
                        "strategy:\n  zero: 3\n  deepspeed: ds.json\n  checkpointing: none\n",
                        head));
  const Scenario scenario = load_scenario(data, folder.file("run.yaml"),
                                          std::array{Setting{"strategy.optimizer", "adamw_8bit"}});
  CHECK(said_of(scenario, "strategy.zero") == "2, ds.json:3");
  CHECK(said_of(scenario, "strategy.zero_optimization.reduce_bucket_size") == "4194304, ds.json:4");
  CHECK(said_of(scenario, "job.gradient_accumulation") == "4, ds.json:5");
  CHECK(said_of(scenario, "strategy.checkpointing") == "none, line 9");
  CHECK(said_of(scenario, "strategy.optimizer") == "adamw_8bit, --set");
  CHECK(said_of(scenario, "strategy.gradient_dtype") == "bf16, default");
  CHECK(said_of(scenario, "strategy.fsdp.shard") ==
        "not set: ranks / replicate, or those of a node, default");
  const Scenario set =
      load_scenario(data, folder.file("run.yaml"), std::array{Setting{"strategy.zero", "3"}});
  CHECK(said_of(set, "strategy.zero") == "3, --set");
}

TEST_CASE("what a stack fills in says so, and gives way to the file", "[keys]") {
  const auto load = [](std::string_view strategy) {
    return parse_scenario(
        data,
        fmt::format("name: a run\nmodel: llama-3.2-1b\ncluster: {{node: h100-8}}\n"
                    "stack: kempnerforge\njob: {{sequence: 128}}\nstrategy: {}\n",
                    strategy),
        "run.yaml");
  };
  const Scenario filled = load("{zero: fsdp}");
  CHECK(said_of(filled, "strategy.master_weights") == "false, stack kempnerforge");
  CHECK(said_of(filled, "strategy.fsdp.root_group") == "true, stack kempnerforge");
  const Scenario own = load("{zero: fsdp, master_weights: true}");
  CHECK(said_of(own, "strategy.master_weights") == "true, line 6");
}

TEST_CASE("a switch of a GRPO job is the origin of the key that it decides on", "[keys]") {
  const Scenario scenario = load_scenario(data, "template-grpo");
  CHECK(said_of(scenario, "strategy.zero") == "3, job.deepspeed_stage");
  CHECK(said_of(scenario, "strategy.checkpointing") == "full, job.gradient_checkpointing");
}

TEST_CASE("a batch over all GPUs is shared out in micro-batches", "[keys]") {
  const auto job = [](const std::string& keys, std::string_view strategy = "{zero: 3}") {
    return fmt::format("job: {{sequence: 128, {}}}\nstrategy: {}\n", keys, strategy);
  };
  const Scenario scenario = parse(job("micro_batch: 2, global_batch: 96"));
  CHECK(scenario.job.accumulation == 6);
  CHECK(said_of(scenario, "job.global_batch") == "96, line 5");
  CHECK(said_of(scenario, "job.gradient_accumulation") == "6, job.global_batch");
  // Ranks that share a layer work on the same rows.
  CHECK(parse(job("micro_batch: 2, global_batch: 96", "{zero: 1, tensor_parallel: {size: 4}}"))
            .job.accumulation == 24);
  // A batch of DPO counts pairs.
  CHECK(parse(job("method: dpo, micro_batch: 2, global_batch: 96")).job.accumulation == 6);
  CHECK(problem_of(job("micro_batch: 2, global_batch: 100")) ==
        "run.yaml:5: job.global_batch: 100 is no multiple of micro_batch 2 x 8 ranks = 16; the "
        "nearest are 96 and 112");
  CHECK(problem_of(job("micro_batch: 2, global_batch: 9")) ==
        "run.yaml:5: job.global_batch: 9 is no multiple of micro_batch 2 x 8 ranks = 16; the "
        "nearest is 16");
  CHECK(problem_of(job("global_batch: 16, gradient_accumulation: 2")) ==
        "run.yaml:5: job.gradient_accumulation: follows from global_batch: say one of them");
  CHECK(problem_of(job("global_batch: 0")) ==
        "run.yaml:5: job.global_batch: expected a number from 1 to 1073741824, found 0");
}

TEST_CASE("a batch over all GPUs has to agree with DeepSpeed's file", "[keys]") {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& file) {
    put_bytes(folder.file("ds.json"), file);
    put_bytes(folder.file("run.yaml"),
              fmt::format("{}job: {{sequence: 128, micro_batch: 2, global_batch: 64}}\n"
                          "strategy: {{deepspeed: ds.json}}\n",
                          head));
    return load_scenario(data, folder.file("run.yaml"));
  };
  CHECK(load(R"({"gradient_accumulation_steps": 4})").job.accumulation == 4);
  CHECK(load(R"({"gradient_accumulation_steps": "auto"})").job.accumulation == 4);
  CHECK_THROWS_WITH(load(R"({"gradient_accumulation_steps": 2})"),
                    Catch::EndsWith("run.yaml:5: job.global_batch: ds.json makes 32 of it: "
                                    "micro_batch 2 x 8 ranks x gradient accumulation 2"));
}

TEST_CASE("keys of a block that is not used do not matter", "[keys]") {
  const Scenario scenario = parse("job: {sequence: 128}\nstrategy: {zero: 2}\n");
  CHECK_FALSE(key_of(scenario, "strategy.fsdp.version").matters);
  CHECK_FALSE(key_of(scenario, "strategy.moe.kernel").matters);
  CHECK_FALSE(key_of(scenario, "strategy.zero_optimization.sub_group_size").matters);
  CHECK(key_of(scenario, "strategy.zero_optimization.reduce_bucket_size").matters);
}

TEST_CASE("a scenario that is written from its values says the same", "[keys]") {
  for (const std::string& name : scenario_names(data)) {
    CAPTURE(name);
    const Scenario scenario = load_scenario(data, name);
    const std::string yaml = scenario_yaml(scenario);
    CAPTURE(yaml);
    const Scenario again = parse_scenario(data, yaml, "again.yaml");
    const std::vector<ResolvedKey> before = resolved_keys(scenario), after = resolved_keys(again);
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      CAPTURE(before[i].path());
      if (before[i].facts->name.starts_with("deepspeed")) continue;
      CHECK(before[i].value == after[i].value);
    }
  }
}

TEST_CASE("a scenario that chooses nothing of its strategy can be read again", "[keys]") {
  const std::string yaml = scenario_yaml(parse("job: {sequence: 128}\nstrategy: {}\n"));
  CAPTURE(yaml);
  CHECK_NOTHROW(parse_scenario(data, yaml, "again.yaml"));
}

TEST_CASE("a mean behind the limit is written as it was said, with its range", "[keys]") {
  for (const std::string mean :
       {"800", "{value: 800, low: 600, high: 1500, grade: guess, source: \"a log\"}"}) {
    CAPTURE(mean);
    const Scenario scenario =
        load_scenario(data, "colocated-8b",
                      std::vector<Setting>{{"job.response_lengths.mean", mean},
                                           {"job.response_lengths.behind_limit", "true"}});
    const std::string yaml = scenario_yaml(scenario);
    CAPTURE(yaml);
    const Scenario again = parse_scenario(data, yaml, "again.yaml");
    CHECK(again.grpo->lengths.behind_limit);
    CHECK(again.grpo->lengths.mean == scenario.grpo->lengths.mean);
    CHECK(mean_response(*again.grpo) == Approx(800).epsilon(1e-6));
    REQUIRE(again.constants.size() == scenario.constants.size());
    for (std::size_t i = 0; i < again.constants.size(); ++i) {
      CHECK(again.constants[i].value == scenario.constants[i].value);
      CHECK(again.constants[i].high == scenario.constants[i].high);
    }
  }
}

TEST_CASE("numbers are written as short as they read back", "[keys]") {
  CHECK(number_text(5e8) == "5e8");
  CHECK(number_text(100000) == "1e5");
  CHECK(number_text(15099494) == "15099494");
  CHECK(number_text(0) == "0");
  CHECK(number_text(1.25) == "1.25");
  CHECK(number_text(1200) == "1200");
}

TEST_CASE("a key is read by its older name for a while, and a note says its name", "[scenarios]") {
  struct Planted {
    double speed = 1;
  };
  static constexpr std::array keys{number<&Planted::speed>("speed", 0, 10).formerly("velocity")};
  static constexpr std::array blocks{Block<Planted>{.name = "way", .sentence = "", .keys = keys}};
  const auto read = [](std::string_view text) {
    Planted planted;
    std::vector<std::string> notes;
    const RenameNotes renames{"car", notes};
    const Document document = parse_document(text, "car.yaml");
    read_blocks<Planted>(document.root(), blocks, planted, &renames);
    document.finish();
    return std::pair(planted.speed, notes);
  };
  CHECK(read("way: {speed: 3}") == std::pair(3.0, std::vector<std::string>{}));
  CHECK(read("way: {velocity: 4}") ==
        std::pair(4.0, std::vector<std::string>{"car.way.velocity is car.way.speed now"}));
  CHECK_THROWS_WITH(read("way: {speed: 3, velocity: 4}"),
                    "car.yaml:1: way.velocity: is an older name of speed, which is there as well");
  CHECK_THROWS_WITH(read("way: {velocity: 40}"),
                    "car.yaml:1: way.velocity: expected a number from 0 to 10, found 40");
}
