#include "scenarios/foreign/programs/hf/trainer_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

constexpr std::string_view prepares_key = "prepares_for_kbit";

}  // namespace

TrainerReader::TrainerReader(const SourceQuestion& question, const Document& source,
                             const TrainerProgram& program)
    : question_(question),
      program_(program),
      source_(question, source, program.name, program.table) {
  source_.take_releases(program_.releases);
}

void TrainerReader::read_surroundings(bool liger, std::string_view liger_key) {
  source_.put_model(program_.model_key);
  find_accelerate();
  GpusOfSource gpus = gpus_of(question_);
  const bool launcher_counts = question_.launch != nullptr && question_.launch->gpus;
  if (accelerate_ && accelerate_->gpus.gpus > 0 && !launcher_counts) gpus = accelerate_->gpus;
  // Nobody asks for several nodes for one process.
  const bool several = std::ranges::any_of(question_.settings, [](const auto& setting) {
    return setting.first == "cluster.nodes" ||
           (setting.first == "cluster" && setting.second.find("nodes:") != std::string::npos);
  });
  const bool alone =
      question_.launch != nullptr && question_.launch->alone && !launcher_counts && !several;
  if (const GpusOfSource said = own_processes(); said.gpus > 0)
    gpus = said;
  else if (alone && (gpus.gpus == 0 || !accelerate_))  // whatever nodes the queue is asked for
    gpus = {1, 1, "no launcher starts more than one process", 1};
  gpus.alone = !accelerate_ && !grpo();
  launched_ = gpus;
  if (grpo()) gpus = with_server(source_, grpo_words(), gpus);
  assume_machine(question_, source_.root(), source_.result(), gpus);
  source_.look_around();
  const bool fsdp =
      (accelerate_ && in_small_letters(accelerate_->sharding) == "fsdp") || source_.says("fsdp");
  const std::string_view stacks = fsdp    ? "stacks_with_fsdp"
                                  : liger ? program_.stacks_with_liger
                                          : program_.stacks;
  put_stack_of(source_, stacks, liger ? liger_key : "",
               fmt::format("{}{}", program_.name, fsdp ? " with PyTorch's own sharding" : ""));
  if (fsdp && liger)
    source_.without(liger_key, "no stack has Liger's kernels beside PyTorch's own sharding");
}

std::string_view TrainerReader::method() const {
  constexpr std::array<std::string_view, 10> names{
      "sft", "dpo", "kto", "dpo", "grpo", "reward", "classify", "classify_tokens", "embed", "mlm"};
  return names[static_cast<std::size_t>(program_.training)];
}

void TrainerReader::read_job(const RunWords& run) {
  const bool kto = program_.training == HfTraining::kto;
  source_.put("job.method", std::string(method()), program_.method_key);
  const bool classifies =
      program_.training == HfTraining::classify || program_.training == HfTraining::classify_tokens;
  if (const std::string_view key = "num_labels"; classifies && source_.says(key))
    source_.put("job.labels", source_.whole(key, 2, 1, 1'000'000), key);
  if (pairs() && !wordless()) {
    const bool stored = source_.on("precompute_ref_log_probs", run.stores_reference);
    source_.put("job.reference_model", (program_.training == HfTraining::dpo || kto) && !stored,
                stored ? "precompute_ref_log_probs" : program_.method_key);
    if (stored)
      source_.without("precompute_ref_log_probs",
                      "the pass that stores the reference's results comes before the first step");
  }
  std::int64_t longest = source_.whole(program_.length_key, usual_length(), 1, most_tokens);
  constexpr std::int64_t usual_answer = 512;
  if (const std::string_view answer = program_.answer_key; !answer.empty())
    longest += source_.whole(answer, usual_answer, 1, most_tokens);
  source_.put("job.sequence", longest, program_.length_key);
  packed_ =
      program_.training == HfTraining::sft && source_.on(program_.packing_key, program_.packs);
  source_.put("job.packing", packed_, program_.packing_key);
  if (program_.training == HfTraining::embed) put_texts();
  std::int64_t rows = source_.whole(hf_rows_key, program_.rows, 1, most_rows),
               batches = source_.whole(hf_batches_key, program_.batches, 1, most_rows);
  std::string_view rows_key = hf_rows_key;
  // A loss that caches runs a batch in pieces, each forward twice.
  if (const std::int64_t piece = source_.whole("mini_batch_size", 32, 1, most_rows);
      source_.on("cached_loss") && piece < rows) {
    if (rows % piece != 0)
      source_.problem("mini_batch_size",
                      fmt::format("{} does not divide the {} rows of {}", piece, rows, rows_key));
    batches *= rows / piece;
    rows = piece;
    rows_key = "mini_batch_size";
  }
  source_.put("job.micro_batch", rows, rows_key);
  source_.put("job.gradient_accumulation", batches, hf_batches_key);
  read_length(run);
}

// sentence_transformers/trainer.py: each column of the data set is a text of the example.
void TrainerReader::put_texts() {
  const bool triplets = source_.says("texts");
  source_.put("job.texts", source_.whole("texts", 2, 2, 64), triplets ? "texts" : "");
  if (source_.on("cached_loss")) source_.put("job.cached_loss", true, "cached_loss");
  if (!triplets)
    source_.result().assumptions.push_back({"texts of an example", "2, a pair",
                                            "the data set says how many columns there are",
                                            "--set job.texts=3"});
}

// Encoders are cut where their positions end, and long ones where most are.
std::int64_t TrainerReader::usual_length() const {
  const auto& model = source_.around().model;
  constexpr std::int64_t usual = 512;
  return model && model->encoder ? std::min(model->longest_sequence, usual) : program_.length;
}

void TrainerReader::read_sharding() {
  const std::string deepspeed = source_.text("deepspeed"), fsdp = source_.text("fsdp");
  std::int64_t threads = 0;
  // training_args.py of transformers @v4.57.6, __post_init__: its own deepspeed comes first.
  const bool own = !deepspeed.empty() || source_.root().is_mapping("deepspeed");
  if (accelerate_ && own)
    source_.note("deepspeed of the arguments decides on the sharding, not the file of Accelerate");
  if (accelerate_ && !own) {
    if (!fsdp.empty())
      source_.note("the file of Accelerate decides on the sharding, not the arguments");
    const AcceleratePut put = put_accelerate(source_, *accelerate_);
    sharding_ = put.sharding;
    checkpoints_inside_ = put.checkpointing;
    threads = put.threads;
  } else if (const std::string named = source_.text("deepspeed_config"); !named.empty()) {
    sharding_ = put_deepspeed_file(source_, "deepspeed_config", named);
  } else if (source_.root().is_mapping("deepspeed")) {
    sharding_ = put_deepspeed_block();
  } else if (in_small_letters(deepspeed) == "true" ||
             (deepspeed.empty() && fsdp.empty() && source_.says("zero_stage"))) {
    sharding_ = put_switched_deepspeed();
  } else if (!deepspeed.empty() && !fsdp.empty()) {
    source_.problem("deepspeed", "stands beside fsdp: the trainer takes one of them");
  } else if (!deepspeed.empty()) {
    const bool by_name = program_.deepspeed_by_name && deepspeed.find('.') == std::string::npos;
    sharding_ = put_deepspeed_file(source_, "deepspeed", by_name ? deepspeed + ".json" : deepspeed);
  } else if (fsdp == "fsdp2" && program_.deepspeed_by_name) {
    sharding_ = put_fsdp(source_, {.key = "fsdp", .strategy = "full_shard", .version = "2"});
    checkpoints_inside_ = true;
  } else if (!fsdp.empty() && fsdp != "false") {
    sharding_ = put_own_fsdp(fsdp);
  } else {
    sharding_ = put_replicas(source_, "deepspeed");
    const bool several = !source_.around().cluster || source_.around().cluster->ranks() > 1;
    if (question_.launch == nullptr && !program_.accelerate_files.empty() && several)
      source_.result().assumptions.push_back(
          {"sharding", "none: each GPU has everything",
           "neither deepspeed nor fsdp is said; a file of Accelerate may", "--accelerate FILE"});
  }
  const std::string optimizer = in_small_letters(source_.text("optim", "adamw_torch_fused"));
  put_optimizer(source_, "optim", optimizer, sharding_);
  put_host_threads(source_, sharding_, threads);
  const bool whole = put_types(source_, program_.plain && !sharding_.sharded && !accelerate_);
  const bool as_loaded = !sharding_.sharded || source_.on("shards_as_loaded");
  if (as_loaded && !switched_ && !whole) read_loaded();
}

void TrainerReader::read_checkpointing(std::string_view key, bool full) {
  const bool refused = full && !checkpoints_inside_ && never_checkpoints(source_);
  if (refused) source_.note(fmt::format("{}: the model's own code refuses it", key));
  full = full && !refused;
  source_.put("strategy.checkpointing", full || checkpoints_inside_ ? "full" : "none",
              full || !checkpoints_inside_ ? key : std::string_view("--config_file"));
  if (full || checkpoints_inside_) put_reentrant(source_);
  if (source_.on("torch_compile")) source_.put("strategy.compile", true, "torch_compile");
  put_experts(source_, "");
}

void TrainerReader::read_saves() {
  const std::string when = in_small_letters(source_.text("save_strategy", "steps"));
  if (switched_) return;  // it saves at its end
  const double steps = source_.number("save_steps", 500, 0, 1e12);
  const auto& cluster = source_.around().cluster;
  if (when != "steps" || steps < 1 || (cluster && cluster->node.count(PartKind::nvme) == 0)) return;
  source_.put("job.save.every", fmt::format("{:.0f}", steps), "save_steps");
  if (source_.on("save_only_model")) source_.put("job.save.states", false, "save_only_model");
}

void TrainerReader::read_evaluation() {
  const std::string_view key =
      source_.says("eval_strategy") ? "eval_strategy" : "evaluation_strategy";
  const std::string when = in_small_letters(source_.text(key, "no"));
  const double steps =
      source_.number("eval_steps", source_.number("logging_steps", 500, 0, 1e12), 0, 1e12);
  // 8 rows a device are the trainer's own default (transformers/training_args.py).
  const std::int64_t rows = source_.whole("per_device_eval_batch_size", 8, 1, 1 << 20);
  if (when == "no" || when == "false") return;
  if (grpo() || switched_)
    return source_.without(key, "passes over data held back come on top of the training");
  source_.put("job.evaluation.micro_batch", rows, "per_device_eval_batch_size");
  if (when == "steps" && steps >= 1)
    source_.put("job.evaluation.every", fmt::format("{:.0f}", steps), "eval_steps");
  if (const double held = source_.number("val_size", 0, 0, 1e12); held > 0)
    source_.put("job.evaluation.rows", fmt::format("{}", held), "val_size");
}

void TrainerReader::read_loaded() {
  if (program_.loads == TrainerProgram::Loads::raised)
    return put_loaded(source_, source_.on("pure_bf16") ? Loaded::in_16_bits : Loaded::in_32_bits,
                      "pure_bf16");
  if (program_.loads == TrainerProgram::Loads::half)
    return put_loaded(source_, Loaded::in_16_bits, "deepspeed");
  const std::string_view key = source_.says("dtype") ? "dtype" : "torch_dtype";
  const std::string said = source_.text(key);
  // Unsloth takes bf16 where it is told nothing (unsloth/models/llama.py: dtype is None), and 8
  // bits leave the other tensors in 16.
  const bool half = said == "auto" || is_half(said) || source_.on("load_in_8bit") ||
                    (said.empty() && source_.root().has("unsloth"));
  const bool adapters = source_.on("use_peft"),
             few_bits = source_.on("load_in_4bit") || !source_.on("autocast_adapter_dtype", true);
  // peft keeps adapters in 32 bits, and TRL in 16 beside 4.
  put_loaded(source_, (adapters ? few_bits : half) ? Loaded::in_16_bits : Loaded::in_32_bits,
             adapters ? "load_in_4bit" : key);
  const bool few = source_.on("load_in_4bit") || source_.on("load_in_8bit");
  const bool wide = source_.says(prepares_key) && few ? frozen_in_32_bits(!said.empty() && !half)
                                                      : !half || source_.on("casts_loaded");
  if (adapters && wide)
    source_.put("strategy.lora.frozen", "fp32",
                source_.on(prepares_key) ? prepares_key : std::string_view(key));
}

// Beside matrices of 4 bits the others are in 16 where no type is said (transformers,
// quantizer_bnb_4bit.py, update_torch_dtype), until peft's prepare_model_for_kbit_training casts
// them; trainers of older releases of TRL call that themselves where they make the adapters, and
// cast them back for bf16.
bool TrainerReader::frozen_in_32_bits(bool loaded_so) {
  const std::string_view key = pairs() ? "casts_frozen_of_pairs" : "casts_frozen";
  const bool by_trainer = source_.text(prepares_key) == "trainer";
  if (!program_.plain && source_.on(key))
    return (by_trainer || source_.on(prepares_key)) && !source_.on("bf16", !source_.on("fp16"));
  return loaded_so || source_.on(prepares_key);
}

TrlGrpoWords TrainerReader::grpo_words() {
  std::int64_t rows = source_.whole(hf_rows_key, program_.rows, 1, most_rows);
  const bool leaves = program_.leave_one_out;
  const std::int64_t usual = leaves ? 2 : 8,
                     samples = source_.whole("num_generations", usual, 2, most_rows),
                     batches = source_.whole(hf_batches_key, program_.batches, 1, most_rows);
  // Unsloth takes as many rows as a group has where a step has no whole groups
  // (unsloth/models/rl.py).
  if (source_.root().has("unsloth") && rows * batches % samples != 0) rows = samples;
  if (source_.on("rows_are_prompts")) rows *= samples;
  return {.samples = usual,
          .leave_one_out = leaves,
          .rows = rows,
          .accumulation = batches,
          .longest_prompt = source_.whole(program_.prompt_key, 512, 1, most_tokens),
          .prompt_key = std::string(program_.prompt_key),
          .rows_key = std::string(hf_rows_key),
          .launched = launched_};
}

// The block's keys may begin with "fsdp_", which the trainer takes off.
ShardingFacts TrainerReader::put_own_fsdp(const std::string& strategy) {
  const auto said = [&](std::string_view name) {
    return source_.text(fmt::format("fsdp_config.fsdp_{}", name),
                        source_.text(fmt::format("fsdp_config.{}", name)));
  };
  if (source_.says("fsdp_config"))
    source_.without("fsdp_config", "keys of a file of their own are not read; a block of them is");
  checkpoints_inside_ = is_yes(said("activation_checkpointing"));
  return put_fsdp(source_, {.key = "fsdp",
                            .strategy = strategy,
                            .version = said("version"),
                            .version_key = "fsdp_config",
                            .reshard = said("reshard_after_forward"),
                            .reshard_key = "fsdp_config",
                            .offload = is_yes(said("offload_params")),
                            .offload_key = "fsdp_config"});
}

// A program that makes DeepSpeed's settings itself, as DeepSpeed-Chat does (its ds_utils.py).
ShardingFacts TrainerReader::put_switched_deepspeed() {
  switched_ = true;
  const std::int64_t stage = source_.whole("zero_stage", 0, 0, 3);
  const bool offload = source_.on("offload");
  source_.put("strategy.zero", stage, "zero_stage");
  if (stage > 0)
    source_.put("strategy.zero_optimization.overlap_comm", true, "deepspeed",
                "the program's own settings");
  if (stage == 0 && offload)
    source_.without("offload", "stage 0 keeps all on the GPU");
  else if (offload)
    source_.put("strategy.offload.optimizer", "cpu", "offload");
  if (stage == 3 && offload) source_.put("strategy.offload.parameters", "cpu", "offload");
  return {.sharded = stage > 0, .stage_3 = stage == 3, .optimizer_on_host = offload && stage > 0};
}

// DeepSpeed's settings in place of the name of a file.
ShardingFacts TrainerReader::put_deepspeed_block() {
  constexpr std::string_view zero = "deepspeed.zero_optimization.stage",
                             overlap = "deepspeed.zero_optimization.overlap_comm",
                             optimizer = "deepspeed.zero_optimization.offload_optimizer.device",
                             parameters = "deepspeed.zero_optimization.offload_param.device";
  const std::int64_t stage = source_.whole(zero, 0, 0, 3);
  source_.put("strategy.zero", stage, zero);
  if (stage > 0)
    source_.put("strategy.zero_optimization.overlap_comm", source_.on(overlap, stage == 3),
                overlap);
  const auto on_host = [&](std::string_view key, std::string_view path) {
    const std::string place = source_.text(key, "none");
    if (place != "none" && stage > 0) source_.put(path, place, key);
    return place != "none" && stage > 0;
  };
  const bool host = on_host(optimizer, "strategy.offload.optimizer");
  if (stage == 3) on_host(parameters, "strategy.offload.parameters");
  return {.sharded = stage > 0,
          .stage_3 = stage == 3,
          .optimizer_on_host = host,
          .replaces_optimizer = true};
}

// `trl sft` hands keys on to Accelerate, as arguments and from its file.
bool TrainerReader::hands_on() const {
  return !program_.accelerate_files.empty() &&
         (question_.launch == nullptr || question_.launch->program.starts_with("trl "));
}

GpusOfSource TrainerReader::own_processes() {
  if (!hands_on() || !source_.says("num_processes")) return {};
  const std::int64_t gpus = source_.whole("num_processes", 0, 1, most_ranks),
                     nodes = source_.whole("num_machines", 1, 1, most_ranks);
  if (gpus == 0 || gpus % nodes == 0)
    return {gpus, nodes, fmt::format("num_processes: {}", gpus), gpus / nodes};
  source_.problem("num_processes",
                  fmt::format("{} machines cannot share {} processes alike", nodes, gpus));
  return {};
}

// The file that `accelerate_config` names: one that the program comes with, or a path.
void TrainerReader::find_named_accelerate() {
  if (!hands_on() || accelerate_) return;
  const std::string said = source_.text("accelerate_config");
  if (said.empty()) return;
  const std::string folder =
      question_.data.file(fmt::format("scenarios/foreign/{}", program_.accelerate_files));
  std::vector<std::string> known;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    known.push_back(entry.path().stem().string());
  std::sort(known.begin(), known.end());
  const auto file =
      holds(known, said) ? fmt::format("{}/{}.yaml", folder, said) : find_beside(question_, said);
  if (file) {
    accelerate_ = read_accelerate(question_.data, *file);
    return;
  }
  source_.problem("accelerate_config",
                  fmt::format("expected {}, or a file beside this one, found \"{}\"{}",
                              one_of(known), said, did_you_mean(said, known)));
}

void TrainerReader::find_accelerate() {
  find_told_accelerate();
  find_named_accelerate();
}

void TrainerReader::find_told_accelerate() {
  std::string said;
  for (const auto& [key, value] : question_.settings)
    if (key == accelerate_setting) said = value;
  const bool launched = question_.launch != nullptr && !question_.launch->file.text.empty();
  // The trainer's own arguments about sharding take precedence over the launcher's options.
  if (said.empty() && !launched && question_.launch != nullptr &&
      source_.text("deepspeed").empty() && source_.text("fsdp").empty())
    accelerate_ = accelerate_of_options(*question_.launch, question_.file);
  if (said.empty() && launched) said = question_.launch->file.text;
  if (said.empty()) return;
  if (const ShellFile* written =
          question_.shell == nullptr ? nullptr : written_file(*question_.shell, said)) {
    accelerate_ = read_accelerate(question_.data, parse_document(written->text, question_.script),
                                  question_.script);
    if (launched) lay_options_over(*accelerate_, *question_.launch);
    return;
  }
  const auto file = find_beside(question_, said);
  if (!file)
    throw UserError({{question_.file, launched ? question_.launch->file.line : 0, "",
                      fmt::format("no file of Accelerate {}, neither beside this file nor from "
                                  "here",
                                  said)}});
  accelerate_ = read_accelerate(question_.data, *file);
  if (launched) lay_options_over(*accelerate_, *question_.launch);
}

// The most rows of each data set are how many there are, as far as the file says. Returns whether
// it does, and nothing else counts more.
bool TrainerReader::read_samples() {
  const std::string_view key = program_.samples_key;
  const double most = key.empty() ? 0 : source_.number(key, 0, 0, 1e12);
  const bool told = question_.set_samples > 0 || question_.set_tokens > 0 ||
                    std::ranges::any_of(std::array{"job.samples", "job.tokens", "job.iterations",
                                                   "job.optimizer_steps"},
                                        [&](const char* path) { return question_.decides(path); });
  if (most <= 0 || told) return false;
  if (packed_) {
    source_.without(key, "how many rows that makes when packed hangs on their length");
    return false;
  }
  const std::size_t sets = std::max<std::size_t>(words_at(source_, "dataset").size(), 1);
  source_.put("job.samples", fmt::format("{}", most * static_cast<double>(sets)), key);
  source_.result().assumptions.push_back(
      {"size of the data set", fmt::format("{:.0f} rows", most * static_cast<double>(sets)),
       fmt::format("{}; the data set may be smaller", key), "--samples-in-set N"});
  return true;
}

void TrainerReader::read_length(const RunWords& run) {
  const double steps = source_.number(run.steps, -1, -1, 1e12);
  DataOfSource data{.packed = packed_,
                    .pairs = pairs(),
                    .padding = source_.on("pads_rows") ? Padding::row : Padding::longest};
  if (const auto key = program_.padding_free_key; !key.empty() && source_.on(key)) {
    data.padding = Padding::none;
    data.padding_key = key;
  }
  data.epochs = source_.number(run.epochs, run.usual_epochs, 0.001, 1e6);
  data.steps_said = steps > 0;
  if (data.steps_said)
    source_.put("job.optimizer_steps", fmt::format("{:.0f}", steps), run.steps);
  else
    source_.put("job.epochs", fmt::format("{}", data.epochs), run.epochs);
  if (!data.steps_said) data.steps_said = read_samples();
  assume_data(question_, data, source_.result());
}

}  // namespace stepsim
