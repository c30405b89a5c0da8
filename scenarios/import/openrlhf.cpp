#include "scenarios/import/openrlhf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/import/trainer_words.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

// A program of it, and what a step of it does in the words of a scenario.
struct OpenRlhfTraining {
  std::string_view program, method;
  bool reference = false;
  int epochs = 1;  // its default
  std::string_view remark{};
};
constexpr std::array trainings{OpenRlhfTraining{"openrlhf.cli.train_sft", "sft", false, 2},
                               OpenRlhfTraining{"openrlhf.cli.train_dpo", "dpo", true},
                               OpenRlhfTraining{"openrlhf.cli.train_rm", "dpo", false, 1,
                                                "pairs, as dpo runs them, without a reference"}};

class OpenRlhfReader {
 public:
  OpenRlhfReader(const SourceQuestion& question, const Document& source)
      : question_(question), source_(question, source, "OpenRLHF", "openrlhf") {}

  Translation read(const OpenRlhfTraining& training) {
    pairs_ = training.method == "dpo";
    assume_model(question_, source_.root(), key("pretrain"), source_.result());
    assume_machine(question_, source_.root(), source_.result(), gpus_of(question_));
    source_.look_around();
    const bool liger = on("use_liger_kernel");
    put_stack_of(source_, liger ? "stacks_with_liger" : "stacks", key("use_liger_kernel"),
                 liger ? "OpenRLHF with Liger's kernels" : "OpenRLHF");
    read_job(training);
    read_sharding();
    read_kernels(liger);
    read_adapter();
    read_parallel();
    read_saves();
    return source_.finish();
  }

 private:
  // The name of an argument in this file: releases before and after the names with dots.
  std::string key(std::string_view old) {
    const Table renamed = source_.facts().table("renamed");
    if (source_.says(old) || !renamed.has(old)) return std::string(old);
    std::string other = renamed.text(old);
    return source_.says(other) ? other : std::string(old);
  }
  bool on(std::string_view old) { return source_.on(key(old)); }
  std::int64_t whole(std::string_view old, std::int64_t fallback, std::int64_t most) {
    return source_.whole(key(old), fallback, 1, most);
  }

  void read_job(const OpenRlhfTraining& training) {
    source_.put("job.method", std::string(training.method), "", std::string(training.remark));
    if (pairs_) source_.put("job.reference_model", training.reference ? "true" : "false", "");
    if (training.program.ends_with("rm"))
      source_.note("the head of a reward model has one number; that of the model is counted");
    source_.put("job.sequence", std::to_string(whole("max_len", 2048, 1 << 24)), key("max_len"));
    source_.put("job.micro_batch", std::to_string(whole("micro_train_batch_size", 8, most_rows)),
                key("micro_train_batch_size"));
    source_.put("job.global_batch", std::to_string(whole("train_batch_size", 128, 1 << 30)),
                key("train_batch_size"));
    const bool packs = on("packing_samples");
    source_.put("job.packing", "false", key("packing_samples"),
                packs ? "rows stand behind each other without padding; none is filled up" : "");
    const double epochs = source_.number(key("max_epochs"), training.epochs, 0.001, 1e6);
    source_.put("job.epochs", fmt::format("{}", epochs), key("max_epochs"));
    assume_data(question_, {.packed = false, .pairs = pairs_, .epochs = epochs}, source_.result());
    if (packs && !question_.decides("job.sequence"))
      source_.without(key("packing_samples"),
                      "rows are counted as long as max_len allows; --set job.sequence=MEAN counts "
                      "shorter ones without padding");
  }

  // As get_train_ds_config() tells DeepSpeed.
  void read_sharding() {
    const std::string stage_key = key("zero_stage");
    std::string stage = source_.text(stage_key, "2");
    if (stage == "2moe") {
      source_.note(
          "zero_stage: 2moe is stage 2 with a moe block, which models of Hugging Face do not heed: "
          "experts run as the model's code has them");
      stage = "2";
    }
    const std::vector<std::string> stages{"0", "1", "2", "3"};
    if (std::find(stages.begin(), stages.end(), stage) == stages.end())
      return source_.problem(stage_key,
                             fmt::format("expected 0, 1, 2, 2moe or 3, found \"{}\"", stage));
    sharding_ = {.sharded = stage != "0", .stage_3 = stage == "3"};
    source_.put("strategy.zero", stage, stage_key);
    if (on("overlap_comm"))
      source_.put("strategy.zero_optimization.overlap_comm", "true", key("overlap_comm"));
    const std::int64_t group = whole("zpg", 1, 1 << 20);
    const auto& cluster = source_.around().cluster;
    if (group > 1 && sharding_.stage_3 && cluster && cluster->ranks() < group)
      source_.note(fmt::format("zpg: {} of {} GPUs are no group, and there is no second copy",
                               group, std::uint32_t{cluster->ranks()}));
    else if (group > 1 && sharding_.stage_3)
      source_.put("strategy.zero_optimization.zero_hpz_partition_size", std::to_string(group),
                  key("zpg"));
    else if (group > 1)
      source_.note("zpg works with stage 3 only; DeepSpeed does not look at it below");
    if (sharding_.stage_3)
      put_leaf_modules(source_, true, stage_key, "blocks of experts are marked as leaf modules");
    sharding_.optimizer_on_host = on("adam_offload");
    if (sharding_.optimizer_on_host)
      source_.put("strategy.offload.optimizer", "cpu", key("adam_offload"));
    put_optimizer(source_, key("optimizer"),
                  in_small_letters(source_.text(key("optimizer"), "adamw")), sharding_);
    const std::string type = source_.text(key("grad_accum_dtype"));
    if (type == "fp32" || type == "bf16" || type == "fp16")
      source_.put("strategy.gradient_dtype", type == "fp32" ? "fp32" : "bf16",
                  key("grad_accum_dtype"));
    else if (!type.empty())
      source_.problem(key("grad_accum_dtype"),
                      fmt::format("expected fp32, bf16 or fp16, found \"{}\"", type));
  }

  void read_kernels(bool liger) {
    const bool full = on("gradient_checkpointing");
    source_.put("strategy.checkpointing", full ? "full" : "none", key("gradient_checkpointing"));
    const std::string named = source_.text(key("attn_implementation"));
    const bool flash = source_.on("flash_attn");
    if (!named.empty())
      put_attention(source_, key("attn_implementation"), named, false);
    else
      source_.put("strategy.attention", flash || on("packing_samples") ? "flash" : "eager",
                  flash || !on("packing_samples") ? "flash_attn" : key("packing_samples"),
                  flash                   ? ""
                  : on("packing_samples") ? "needs it"
                                          : "the usual one");
    source_.put("strategy.cross_entropy", "logits", "",
                "log-probabilities are taken from logits in 32 bits");
    if (liger)
      source_.note("the trainer takes logits, so that Liger's kernel of the loss is not called");
    put_experts(source_, "");
  }

  void read_adapter() {
    const std::int64_t rank = source_.whole(key("lora_rank"), 0, 0, most_lora_rank);
    if (rank == 0) return;
    std::vector<std::string> modules = words_at(source_, key("target_modules"));
    if (modules.empty()) modules = {"all-linear"};
    put_adapter(source_, {.rank_key = "lora_rank",
                          .modules_key = "target_modules",
                          .rank = rank,
                          .modules = modules,
                          .quantised = on("load_in_4bit"),
                          .quantised_key = "load_in_4bit"});
  }

  void read_parallel() {
    if (const std::int64_t ring = whole("ring_attn_size", 1, most_ranks); ring > 1)
      source_.put("strategy.sequence_parallel.ring", std::to_string(ring), key("ring_attn_size"));
    if (const std::int64_t tensor = whole("ds_tensor_parallel_size", 1, most_ranks); tensor > 1) {
      source_.put("strategy.tensor_parallel.size", std::to_string(tensor),
                  key("ds_tensor_parallel_size"));
      source_.put("strategy.tensor_parallel.sequence", "false", key("ds_tensor_parallel_size"),
                  "DeepSpeed divides matrices, not tokens");
    }
  }

  void read_saves() {
    const double steps = source_.number(key("save_steps"), -1, -1, 1e12);
    const auto& cluster = source_.around().cluster;
    if (steps < 1 || (cluster && cluster->node.count(PartKind::nvme) == 0)) return;
    const bool weights = on("save_hf_ckpt"), states = !on("disable_ds_ckpt");
    if (!weights && !states) return;
    source_.put("job.save.every", fmt::format("{:.0f}", steps), key("save_steps"));
    source_.put("job.save.weights", weights ? "true" : "false", key("save_hf_ckpt"));
    source_.put("job.save.states", states ? "true" : "false", key("disable_ds_ckpt"));
  }

  const SourceQuestion& question_;
  MappedSource source_;
  ShardingFacts sharding_{};
  bool pairs_ = false;
};

}  // namespace

Translation translate_openrlhf(const SourceQuestion& question, const Document& source) {
  const std::string program =
      question.launch == nullptr ? "openrlhf.cli.train_sft" : question.launch->program;
  for (const OpenRlhfTraining& each : trainings)
    if (each.program == program) return OpenRlhfReader(question, source).read(each);
  std::vector<std::string> known;
  known.reserve(trainings.size());
  for (const OpenRlhfTraining& each : trainings) known.emplace_back(each.program);
  throw UserError({{question.file, question.launch->line, "",
                    fmt::format("{} is not read yet; expected {}", program, one_of(known))}});
}

}  // namespace stepsim
