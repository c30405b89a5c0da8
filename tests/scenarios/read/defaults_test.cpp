// What a scenario does not say, its recipes and its stack do.
#include "scenarios/read/defaults.hpp"

#include <fmt/format.h>

#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/strategy/defaults.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const Catalogue& data = source_data();

std::string text_of(std::string_view stack, std::string_view strategy,
                    std::string_view model = "llama-3.1-8b", std::string_view rest = "") {
  return fmt::format(
      "name: a run\nmodel: {}\ncluster: {{node: h100-8}}\nstack: {}\njob: {{sequence: 4096, "
      "gradient_accumulation: 8}}\nstrategy: {}\n{}",
      model, stack, strategy, rest);
}

Strategy strategy_of(std::string_view stack, std::string_view strategy,
                     std::string_view model = "llama-3.1-8b", std::string_view rest = "") {
  return parse_scenario(data, text_of(stack, strategy, model, rest), "run.yaml").strategy;
}

std::string problems_of(const std::string& text) {
  try {
    parse_scenario(data, text, "run.yaml");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// `defaults` under a scenario whose strategy is `strategy`.
Document laid(std::string_view defaults, std::string_view strategy) {
  const Document file = parse_document(defaults, "stack.yaml");
  Document scenario = parse_document(fmt::format("strategy: {}\n", strategy), "run.yaml");
  lay_under(scenario, read_defaults(file.root(), "stack a"), [&](std::string_view fact) {
    if (fact == experts_fact) return std::optional<std::string>();
    return fact == gpus_fact ? std::optional<std::string>("8") : scenario.peek(fact);
  });
  file.finish();
  return scenario;
}

std::string problem_in(std::string_view entry) {
  const Document file = parse_document(fmt::format("defaults: [{}]\n", entry), "stack.yaml");
  read_defaults(file.root(), "stack a");
  try {
    file.finish();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("of two defaults the first that applies says a key", "[scenarios]") {
  const std::string_view defaults =
      "defaults:\n"
      "  - {when: {strategy.zero: 1}, set: {strategy: {load: replica}}, source: x}\n"
      "  - {set: {strategy: {load: sharded, zero: 1}}, source: x}\n";
  // The first entry asks for what the second sets, and goes before it where it says a key.
  CHECK(laid("defaults: [{when: {strategy.zero: 1}, set: {strategy: {load: replica}}, source: x},"
             " {set: {strategy: {zero: 1}}, source: x}, {set: {strategy: {load: sharded}}, "
             "source: x}]\n",
             "{compile: true}")
            .peek("strategy.load") == "replica");
  CHECK(laid(defaults, "{zero: 1}").peek("strategy.load") == "replica");
  CHECK(laid(defaults, "{zero: 2}").peek("strategy.load") == "sharded");
  CHECK(laid(defaults, "{zero: 1, load: sharded}").peek("strategy.load") == "sharded");
  CHECK(laid(defaults, "{zero: 1}").origin_of("strategy.load") == "stack a");
  CHECK(laid(defaults, "{zero: 1}").origin_of("strategy.zero").empty());
  CHECK(laid(defaults, "{zero: 1}").taken_from("stack a") ==
        std::vector<std::string>{"strategy.load: replica"});
}

TEST_CASE("a default waits for its condition", "[scenarios]") {
  const auto when = [](std::string_view condition, std::string_view strategy) {
    return laid(fmt::format("defaults: [{{when: {{{}}}, set: {{strategy: {{compile: true}}}}, "
                            "source: x}}]\n",
                            condition),
                strategy)
        .peek("strategy.compile")
        .has_value();
  };
  CHECK(when("strategy.lora: present", "{lora: {}}"));
  CHECK_FALSE(when("strategy.lora: present", "{zero: 1}"));
  CHECK(when("strategy.lora: absent", "{zero: 1}"));
  CHECK(when("strategy.tensor_parallel.size: [absent, 1]", "{zero: 1}"));
  CHECK(when("strategy.tensor_parallel.size: [absent, 1]", "{tensor_parallel: {size: 1}}"));
  CHECK_FALSE(when("strategy.tensor_parallel.size: [absent, 1]", "{tensor_parallel: {size: 2}}"));
  CHECK(when("strategy.tensor_parallel.size: above 1", "{tensor_parallel: {size: 2}}"));
  CHECK_FALSE(when("strategy.tensor_parallel.size: above 1", "{zero: 1}"));
  CHECK(when("gpus: above 4, strategy.zero: [1, 2]", "{zero: 2}"));
  CHECK_FALSE(when("gpus: 1, strategy.zero: [1, 2]", "{zero: 2}"));
  CHECK(when("experts: absent", "{zero: 2}"));
  // Of a value that nobody knows for sure the stated one counts.
  CHECK(when("strategy.zero: 1", "{zero: {value: 1, any_of: [1, 2], source: x}}"));
}

TEST_CASE("defaults that nobody can read are named", "[scenarios]") {
  CHECK_THAT(problem_in("{set: {strategy: {zero: 1}}}"),
             Contains("stack.yaml:1: defaults[0].source: is missing"));
  CHECK_THAT(problem_in("{source: x}"), Contains("stack.yaml:1: defaults[0].set: is missing"));
  CHECK_THAT(problem_in("{set: {cluster: {nodes: 2}}, source: x}"),
             Contains("defaults[0].set.cluster: a default is a key of job, strategy or releases"));
  CHECK_THAT(problem_in("{when: {gpu: 1}, set: {strategy: {zero: 1}}, source: x}"),
             Contains("defaults[0].when.gpu: expected a key of a scenario such as strategy.zero, "
                      "or gpus or experts"));
  CHECK_THAT(problem_in("{when: {gpus: above one}, set: {strategy: {zero: 1}}, source: x}"),
             Contains("defaults[0].when.gpus: expected a number behind \"above\", found \"above "
                      "one\""));
  CHECK_THAT(problem_in("{whn: {gpus: 1}, set: {strategy: {zero: 1}}, source: x}"),
             Contains("defaults[0].whn: unknown key (did you mean \"when\"?)"));
}

TEST_CASE("a typed scenario has what its stack's code does", "[scenarios]") {
  const Strategy kept = strategy_of("megatron", "{tensor_parallel: {size: 2}}");
  CHECK(kept.sharding == Sharding::zero1);
  CHECK(kept.gradients == GradientType::fp32);
  CHECK(kept.distributed.used);
  const Strategy own = strategy_of("megatron", "{zero: 2, gradient_dtype: bf16}");
  CHECK(own.gradients == GradientType::bf16);
  CHECK_FALSE(own.distributed.used);
  CHECK(strategy_of("fsdp2-eager", "{}").sharding == Sharding::fsdp);
  CHECK(strategy_of("llm-foundry", "{}").fsdp.version == 1);
  CHECK(strategy_of("fms-fsdp", "{}").fsdp.reduce == FsdpDtype::bf16);
  CHECK(strategy_of("prime-rl", "{lora: {}}").lora.targets == LoraTargets::all);
  CHECK(strategy_of("prime-rl", "{lora: {rank: 4, targets: linear}}").lora.rank == 4);
  CHECK(strategy_of("fsdp2-eager", "{}", "qwen3-30b-a3b").experts.kernel == MoeKernel::grouped);
  CHECK(strategy_of("deepspeed-hf", "{zero: 3}", "qwen3-30b-a3b").experts.kernel ==
        MoeKernel::loop);
}

TEST_CASE("a list of defaults goes before that of the stack it is like", "[scenarios]") {
  const Strategy whole = strategy_of("kempnerforge", "{}");  // like fsdp2-eager
  CHECK(whole.sharding == Sharding::fsdp);                   // said there
  CHECK(whole.fsdp.reshard_root);                            // said here, and hangs on it
  CHECK_FALSE(whole.master_weights);
  CHECK(whole.load == Loading::replica);
  const Strategy divided = strategy_of("kempnerforge", "{tensor_parallel: {size: 4}}");
  CHECK(divided.load == Loading::sharded);
  CHECK(divided.tensor_parallel.gathers_logits);
  CHECK(strategy_of("kempnerforge", "{}", "qwen3-30b-a3b").experts.kernel == MoeKernel::padded);
}

TEST_CASE("a recipe stands between the file and the stack", "[scenarios]") {
  const std::string_view asks = "recipe: megatron-swift\n";
  const Strategy swift = strategy_of("megatron", "{}", "llama-3.1-8b", asks);
  CHECK(swift.distributed.used);  // its condition is met by what the stack says
  CHECK_FALSE(swift.distributed.overlap_reduce);
  CHECK(swift.gradients == GradientType::fp32);
  CHECK(strategy_of("megatron", "{distributed_optimizer: {overlap_grad_reduce: true}}",
                    "llama-3.1-8b", asks)
            .distributed.overlap_reduce);
  CHECK(
      strategy_of("megatron", "{}", "llama-3.1-8b", "recipe: [megatron-2205.05198]\n").attention ==
      AttentionKernel::eager);
}

TEST_CASE("a recipe that there is not is named with the nearest one", "[scenarios]") {
  CHECK(problems_of(text_of("megatron", "{}", "llama-3.1-8b", "recipe: megatron-swif\n")) ==
        "run.yaml:7: recipe: no recipe \"megatron-swif\" (did you mean \"megatron-swift\"?)");
}

TEST_CASE("what a recipe filled in wrongly is said to be from there", "[scenarios]") {
  CHECK_THAT(problems_of(text_of("megatron", "{pipeline_parallel: {size: 2}}", "llama-3.1-8b",
                                 "recipe: bridge-qwen3-235b-h100\n")),
             Contains("(from recipe bridge-qwen3-235b-h100)"));
}

TEST_CASE("a scenario's text is its own, without what was filled in", "[scenarios]") {
  const Scenario scenario = parse_scenario(data, text_of("megatron", "{zero: 1}"), "run.yaml");
  CHECK_THAT(scenario.text, !Contains("distributed_optimizer"));
}
