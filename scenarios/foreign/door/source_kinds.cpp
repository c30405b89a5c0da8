#include "scenarios/foreign/door/source_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "scenarios/foreign/programs/megatron/megatron.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/programs/verl/verl.hpp"
#include "scenarios/keys/head_keys.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// Returns the kinds of programs whose settings are read by tables.
std::vector<SourceKind> kinds_of_settings() {
  return {
      {.name = "slime",
       .title = "arguments of slime",
       .table = "programs/slime/slime",
       .translate = translate_slime,
       .arguments = {"rollout-num-gpus-per-engine", "actor-num-gpus-per-node", "hf-checkpoint"}},
      {.name = "megatron",
       .title = "a Megatron file",
       .table = "programs/megatron/megatron",
       .marks = {"num-layers", "tensor-model-parallel-size", "train"},
       .beside = {"micro-batch-size", "seq-length", "ddp", "scheduler", "dataset", "checkpoint"},
       .translate = translate_megatron,
       .programs = {"*pretrain_gpt.py", "*pretrain_mamba.py", "*run_pretrain*.py",
                    "*finetune_gpt.py"},
       .never = {"pipe_parallel_size", "pipe-parallel-size", "model_parallel_size",
                 "model-parallel-size", "train_micro_batch_size_per_gpu",
                 "train-micro-batch-size-per-gpu"},
       .arguments = {"num-layers"},
       .told_beside = {"micro-batch-size", "tensor-model-parallel-size"}},
      {.name = "verl",
       .title = "a verl file",
       .table = "programs/verl/verl",
       .marks = {"actor_rollout_ref"},
       .translate = translate_verl,
       // These match all of verl's main_* but main_generation and main_eval.
       .programs = {"verl.trainer.main_[!ge]*", "verl.trainer.main_g[!e]*", "recipe.*.main_[!ge]*",
                    "recipe.*.main_g[!e]*"},
       .sets_keys = true,
       .arguments = {"actor_rollout_ref.model.path"},
       .no_programs = {"*main_gen*", "*main_eval*"}},
      {.name = "verl-sft",
       .title = "settings of verl's supervised training",
       .table = "programs/verl/verl-sft",
       .marks = {"optim"},
       .beside = {"use_remove_padding", "ulysses_sequence_parallel_size", "trainer"},
       .translate = translate_verl_sft,
       .programs = {"verl.trainer.*sft_trainer*"},
       .sets_keys = true},
      {.name = "nemo-rl",
       .title = "a NeMo-RL file",
       .table = "programs/nemo_rl/nemo-rl",
       .marks = {"policy", "grpo"},
       .beside = {"defaults", "loss_fn", "cluster", "data", "env", "logger", "checkpointing"},
       .translate = translate_nemo_rl,
       .programs = {"*run_grpo*.py"},
       .takes_file = true,
       .sets_keys = true,
       .file_option = "config",
       .goes_on = true}};
}

std::vector<SourceKind> kinds_of_open_instruct() {
  return {{.name = "open-instruct-tuning",
           .title = "arguments of open-instruct's supervised training",
           .table = "programs/open_instruct/open-instruct-tuning",
           .translate = translate_open_instruct_tuning,
           .programs = {"*open_instruct/finetune*.py", "*open_instruct/dpo_tune_cache*.py",
                        "open_instruct.finetune*", "open_instruct.dpo_tune_cache*"},
           .takes_file = true,
           .low_lines = true},
          {.name = "open-instruct",
           .title = "settings of open-instruct's GRPO",
           .table = "programs/open_instruct/open-instruct",
           .marks = {"num_learners_per_node", "num_unique_prompts_rollout"},
           .translate = translate_open_instruct,
           .programs = {"*grpo_fast.py", "open_instruct.grpo_fast", "*open_instruct/finetune*.py",
                        "*open_instruct/dpo*.py", "*open_instruct/reward_modeling.py",
                        "*open_instruct/ppo*.py", "*open_instruct/grpo.py",
                        "*open_instruct/olmo_core_finetune.py"},
           .low_lines = true}};
}

// Returns the kinds of programs with a file for each recipe.
std::vector<SourceKind> kinds_of_recipes() {
  return {{.name = "automodel",
           .title = "a file of NeMo AutoModel",
           .table = "programs/automodel/automodel",
           .marks = {"step_scheduler"},
           .beside = {"dist_env", "distributed", "recipe"},
           .translate = translate_automodel},
          {.name = "gpt-neox",
           .title = "a file of gpt-neox",
           .table = "programs/gpt_neox/gpt-neox",
           .marks = {"pipe_parallel_size", "pipe-parallel-size", "model_parallel_size",
                     "model-parallel-size", "num_layers", "num-layers"},
           .beside = {"num_layers", "num-layers", "hidden_size", "hidden-size"},
           .translate = translate_gpt_neox,
           .never = {"tensor_model_parallel_size", "tensor-model-parallel-size", "micro_batch_size",
                     "micro-batch-size", "pipeline-model-parallel-size",
                     "pipeline_model_parallel_size", "cluster", "strategy"}},
          {.name = "llm-foundry",
           .title = "a file of LLM Foundry",
           .table = "programs/llm_foundry/llm-foundry",
           .marks = {"device_train_microbatch_size", "global_train_batch_size"},
           .beside = {"model"},
           .translate = translate_llm_foundry,
           .programs = {"train/train.py", "*/train/train.py"},
           .takes_file = true,
           .never = {"base_model", "policy", "model_name_or_path"},
           .sets_keys = true,
           .by_file = true},
          {.name = "torchtune",
           .title = "a torchtune file",
           .table = "programs/torchtune/torchtune",
           .marks = {"checkpointer"},
           .beside = {"tokenizer", "model", "loss"},
           .translate = translate_torchtune,
           .programs = {"full_finetune_*", "lora_finetune_*", "full_dpo_*", "lora_dpo_*", "qat_*",
                        "ppo_full_finetune_*", "knowledge_distillation_*", "grpo_full_finetune_*",
                        "*recipes/full_finetune_*.py", "*recipes/lora_finetune_*.py",
                        "*recipes/full_dpo_*.py", "*recipes/lora_dpo_*.py"},
           .takes_file = true,
           .sets_keys = true,
           .file_option = "config"},
          {.name = "torchtitan",
           .title = "a TorchTitan file",
           .table = "programs/torchtitan/torchtitan",
           .marks = {"training"},
           .beside = {"model", "parallelism", "activation_checkpoint", "metrics", "checkpoint"},
           .translate = translate_torchtitan,
           .programs = {"torchtitan.train", "*torchtitan/train.py"},
           .takes_file = true,
           .toml = true,
           .file_option = "job.config_file",
           .low_lines = true}};
}

// Returns the kinds of programs over the trainer of transformers.
std::vector<SourceKind> kinds_of_trainers() {
  return {{.name = "llama-factory",
           .title = "a LLaMA-Factory file",
           .table = "programs/llama_factory/llama-factory",
           .marks = {"finetuning_type", "cutoff_len", "stage"},
           .beside = {"model_name_or_path", "template", "dataset"},
           .translate = translate_llama_factory,
           .programs = {"llamafactory-cli train", "lmf train"},
           .takes_file = true,
           .sets_keys = true,
           .arguments = {"finetuning_type", "cutoff_len"},
           .told_beside = {"stage", "do_train", "per_device_train_batch_size", "learning_rate"},
           .low_lines = true},
          {.name = "llama-factory-v1",
           .title = "a file of LLaMA-Factory's second trainer",
           .table = "programs/llama_factory/llama-factory-v1",
           .marks = {"dist_config", "model_class", "kernel_config", "peft_config"},
           .beside = {"model"},
           .translate = translate_llama_factory_v1,
           .programs = {"llamafactory-cli sft", "llamafactory-cli dpo"},
           .takes_file = true,
           .low_lines = true},
          {.name = "ms-swift",
           .title = "arguments of ms-swift",
           .table = "programs/ms_swift/ms-swift",
           .marks = {"tuner_type", "train_type", "rlhf_type"},
           .beside = {"per_device_train_batch_size", "dataset", "max_length"},
           .translate = translate_ms_swift,
           .programs = {"swift sft", "swift pt", "swift rlhf", "*swift/cli/sft.py",
                        "*swift/cli/rlhf.py", "*swift/cli/pt.py"},
           .takes_file = true,
           .low_lines = true},
          {.name = "megatron-swift",
           .title = "arguments of Megatron-SWIFT",
           .table = "programs/megatron/megatron-swift",
           .marks = {"micro_batch_size"},
           .beside = {"tuner_type", "train_type", "max_length"},
           .translate = translate_megatron_swift,
           .programs = {"megatron sft", "megatron pt", "megatron rlhf"},
           .takes_file = true,
           .never = {"base_model", "per_device_train_batch_size"},
           .low_lines = true},
          {.name = "trl",
           .title = "arguments of TRL",
           .table = "programs/trl/trl",
           .marks = {"model_name_or_path"},
           .beside = {"per_device_train_batch_size", "output_dir", "dataset_name", "learning_rate",
                      "num_train_epochs", "use_peft"},
           .translate = translate_trl,
           .programs = {"trl [!vec]*", "trl cpo*", "trl.scripts.*", "*Trainer"},
           .takes_file = true,
           .never = {"finetuning_type", "cutoff_len", "stage", "template",
                     "num_unique_prompts_rollout", "micro_train_batch_size"},
           .file_option = "config",
           .arguments = {"model_name_or_path"},
           .told_beside = {"per_device_train_batch_size", "gradient_accumulation_steps",
                           "learning_rate", "num_train_epochs", "max_steps", "deepspeed",
                           "use_peft", "do_train", "bf16"},
           .low_lines = true}};
}

// Files that people try, and that hold no training.
struct Other {
  std::string_view key, title;
};
constexpr std::string_view gpt_neox_title =
    "a part of what gpt-neox reads, without the widths of the model: what its files say goes into "
    "one";
constexpr std::string_view areal_title =
    "a file of AReaL, which is not read; reinforcement by verl, NeMo-RL, OpenRLHF, slime, TRL, "
    "ms-swift and open-instruct is";
constexpr std::array other_files{
    Other{"infer_backend", "a file of LLaMA-Factory for inference, which trains nothing"},
    Other{"export_dir", "a file of LLaMA-Factory that merges adapters, which trains nothing"},
    Other{"merge_method", "a recipe of mergekit, which trains nothing"},
    Other{"compute_environment",
          "a file of Accelerate, which trains nothing by itself: --accelerate takes it beside a "
          "file of arguments"},
    Other{"pipe_parallel_size", gpt_neox_title},
    Other{"pipe-parallel-size", gpt_neox_title},
    Other{"model_parallel_size", gpt_neox_title},
    Other{"model-parallel-size", gpt_neox_title},
    Other{"lr_decay_style", gpt_neox_title},
    Other{"lr-decay-style", gpt_neox_title},
    Other{"allocation_mode", areal_title},
    Other{"gconfig", areal_title},
    Other{"rollout", "settings of rollouts alone, which train nothing"},
    Other{"claims", "a file of claims, for `stepsim check`"},
    Other{"services", "a file of Docker, which starts no training"}};

template <class Words>
std::string first_in(const std::vector<std::string>& keys, const Words& words) {
  for (const std::string& key : keys)
    if (std::find(words.begin(), words.end(), key) != words.end()) return key;
  return "";
}

// A name of a configuration alone, as Hydra takes it, is none of a file.
bool goes_on(const Document& document) {
  const Table root = document.root();
  const std::string said = root.has("defaults") ? root.one_line("defaults") : "";
  return said.ends_with(".yaml") || said.ends_with(".yaml]");
}

std::string mark_of(const SourceKind& kind, const Document& document,
                    const std::vector<std::string>& keys) {
  if (kind.goes_on && goes_on(document)) return "defaults";
  const std::string mark = first_in(keys, kind.marks);
  return kind.beside.empty() || !first_in(keys, kind.beside).empty() ? mark : "";
}

std::string none_of_these(const std::vector<std::string>& keys) {
  for (const Other& other : other_files)
    if (std::find(keys.begin(), keys.end(), other.key) != keys.end())
      return fmt::format("is {}", other.title);
  std::vector<std::string> titles;
  for (const SourceKind& kind : known_kinds())
    if (!kind.marks.empty()) titles.emplace_back(kind.title);
  return fmt::format(
      "looks like nothing that is read here: a scenario has cluster, stack, job and strategy; also "
      "read are {}, of AutoTrain, NeMo 1 and Primus, a notebook, a Python file, a shell script, a "
      "Makefile, a Dockerfile, a task of SkyPilot, a job of Kubernetes and a run of Weights & "
      "Biases; settings of a program of your own are read with it: give the program, or the script "
      "that starts it",
      fmt::join(titles.begin() + 1, titles.end(), ", "));
}

}  // namespace

const std::vector<SourceKind>& known_kinds() {
  static const std::vector<SourceKind> all = [] {
    std::vector<SourceKind> kinds{
        {.name = "scenario",
         .title = "a scenario",
         .marks = {"cluster", "stack", "job", "strategy"},
         .never = {"policy", "grpo", "defaults", "allocation_mode", "gconfig"}},
        {.name = "axolotl",
         .title = "an Axolotl file",
         .table = "programs/axolotl/axolotl",
         .marks = {"base_model"},
         .beside = {"sequence_len", "micro_batch_size", "gradient_accumulation_steps", "datasets",
                    "adapter", "sample_packing", "num_epochs", "val_set_size",
                    "dataset_prepared_path"},
         .translate = translate_axolotl,
         .programs = {"axolotl.cli.train", "axolotl train", "scripts/finetune.py"},
         .takes_file = true,
         .never = {"use_lora", "lora_config", "mixed_precision", "model_max_length"},
         .low_lines = true},
        {.name = "deepspeed",
         .title = "a DeepSpeed file",
         .marks = {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size",
                   "zero_allow_untested_optimizer"},
         .translate = translate_deepspeed,
         .never = {"model_name_or_path", "log_history", "pipe_parallel_size", "pipe-parallel-size",
                   "model_parallel_size", "model-parallel-size", "num_layers", "num-layers",
                   "lr_decay_style", "lr-decay-style"}},
        {.name = "openrlhf",
         .title = "OpenRLHF",
         .table = "programs/openrlhf/openrlhf",
         .translate = translate_openrlhf,
         .programs = {"openrlhf.cli.train_*"}},
        {.name = "autotrain",
         .title = "arguments of AutoTrain",
         .table = "programs/trl/trl",
         .translate = translate_autotrain,
         .programs = {"autotrain llm", "autotrain"},
         .takes_file = true,
         .file_option = "config",
         .low_lines = true}};
    for (SourceKind& kind : kinds_of_settings()) kinds.push_back(std::move(kind));
    for (SourceKind& kind : kinds_of_open_instruct()) kinds.push_back(std::move(kind));
    for (SourceKind& kind : kinds_of_recipes()) kinds.push_back(std::move(kind));
    for (SourceKind& kind : kinds_of_trainers()) kinds.push_back(std::move(kind));
    return kinds;
  }();
  return all;
}

std::vector<std::string> source_kinds() {
  std::vector<std::string> names;
  for (const SourceKind& kind : known_kinds()) names.emplace_back(kind.name);
  return names;
}

const SourceKind& kind_of(const Document& document, std::string_view asked) {
  const std::vector<SourceKind>& all = known_kinds();
  if (!asked.empty()) {
    const auto place = std::find_if(all.begin(), all.end(),
                                    [&](const SourceKind& kind) { return kind.name == asked; });
    if (place != all.end()) return *place;
    const std::vector<std::string> names = source_kinds();
    throw UserError(fmt::format("--from: expected {}, found \"{}\"{}", one_of(names), asked,
                                did_you_mean(asked, names)));
  }
  const Table root = document.root();
  const std::vector<std::string> keys = root.keys();
  std::vector<std::pair<const SourceKind*, std::string>> found;
  const bool toml = document.file().ends_with(".toml");
  for (const SourceKind& kind : all)
    if (std::string mark = mark_of(kind, document, keys);
        !mark.empty() && toml == kind.toml && first_in(keys, kind.never).empty())
      found.emplace_back(&kind, mark);
  if (found.size() == 1) return *found.front().first;
  // A file that has little of a scenario is a scenario with mistakes, and its reader names them. A
  // file that has much else is none.
  const auto heads = std::count_if(keys.begin(), keys.end(), [](const std::string& key) {
    return std::ranges::find(scenario_heads, key) != scenario_heads.end();
  });
  if (found.empty() && !toml &&
      (keys.empty() || 2 * heads >= static_cast<std::ptrdiff_t>(keys.size())))
    return all.front();
  if (found.empty()) throw UserError({{document.file(), 0, "", none_of_these(keys)}});
  const auto& [one, one_mark] = found[0];
  const auto& [other, other_mark] = found[1];
  throw UserError(
      {{document.file(), 0, "",
        fmt::format("looks like {} ({}, line {}) and like {} ({}, line {}) at once: "
                    "--from {} or --from {} says which",
                    one->title, one_mark, root.origin(one_mark)->line, other->title, other_mark,
                    root.origin(other_mark)->line, one->name, other->name)}});
}

bool is_called(const SourceKind& kind, const Launch& launch) {
  const auto is_file = [](const ShellWord& word) {
    return word.text.ends_with(".yaml") || word.text.ends_with(".yml");
  };
  if (kind.by_file && (launch.arguments.empty() || !is_file(launch.arguments.front())))
    return false;
  return std::any_of(kind.programs.begin(), kind.programs.end(), [&](const char* program) {
    return fnmatch(program, launch.program.c_str(), 0) == 0;
  });
}

bool is_told(const SourceKind& kind, const Launch& launch) {
  const auto any_of = [&](const auto& names) {
    return std::ranges::any_of(launch.arguments, [&](const ShellWord& word) {
      return std::ranges::any_of(names, [&](auto name) {
        const std::string option = fmt::format("--{}", name);
        const std::string said = kind.low_lines ? low_lined(word).text : word.text;
        return said == option || said.starts_with(option + "=") ||
               (kind.sets_keys && said.starts_with(fmt::format("{}=", name)));
      });
    });
  };
  const auto is_it = [&](const char* program) {
    return fnmatch(program, launch.program.c_str(), 0) == 0;
  };
  if (std::ranges::any_of(kind.no_programs, is_it)) return false;
  return any_of(kind.arguments) && (kind.told_beside.empty() || any_of(kind.told_beside));
}

// Finds the kind by the program's name, else by its arguments.
const SourceKind* kind_of(const Launch& launch, const std::string& asked) {
  for (const bool by_name : {true, false})
    for (const SourceKind& kind : known_kinds())
      if ((asked.empty() || asked == kind.name) &&
          (by_name ? is_called(kind, launch) : is_told(kind, launch)))
        return &kind;
  return nullptr;
}

std::string known_programs() {
  std::vector<std::string> names;
  for (const SourceKind& kind : known_kinds())
    if (!kind.programs.empty() || !kind.arguments.empty()) names.emplace_back(kind.name);
  return one_of(names);
}

const SourceKind* python_kind() {
  const auto place = std::find_if(known_kinds().begin(), known_kinds().end(),
                                  [](const SourceKind& kind) { return kind.name == "trl"; });
  return &*place;
}

}  // namespace stepsim
