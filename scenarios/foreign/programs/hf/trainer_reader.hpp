// Reads what the trainer of transformers is told. Several programs hand their arguments to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/programs/accelerate/accelerate.hpp"
#include "scenarios/foreign/programs/hf/trl_grpo.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"

namespace stepsim {

inline constexpr std::string_view hf_rows_key = "per_device_train_batch_size",
                                  hf_batches_key = "gradient_accumulation_steps";

// `alone` learns from pairs without a reference model.
enum class HfTraining : std::uint8_t {
  sft,
  dpo,
  kto,
  alone,
  grpo,
  reward,
  classify,
  classify_tokens,
  embed,
  mlm
};

// This is what a program over the trainer says in words of its own.
struct TrainerProgram {
  // A model whose trainer shares out nothing is kept in 16 bits. Or it is kept in what `dtype`
  // says, which is 32 bits unless it says otherwise (github.com/huggingface/trl
  // trl/trainer/model_config.py: no dtype). Or what is trained is kept in 32 bits unless pure_bf16
  // (github.com/hiyouga/LLaMA-Factory src/llamafactory/model/adapter.py: trainable parameters are
  // cast).
  enum class Loads : std::uint8_t { half, by_dtype, raised };

  std::string_view name, table;
  HfTraining training = HfTraining::sft;
  std::string_view method_key{}, length_key{};
  std::string_view answer_key{};  // of an answer that is cut by itself; empty: rows are cut whole
  std::int64_t length = 1024;
  std::string_view model_key = "model_name_or_path";
  std::int64_t rows = 8, batches = 1;  // of a micro-batch, and of a step
  bool packs = false;                  // unless it is told otherwise
  std::string_view packing_key = "packing", padding_free_key{};
  std::string_view samples_key{};  // the most rows of each data set; empty: there is no such key
  Loads loads = Loads::half;
  std::string_view prompt_key = "max_prompt_length";
  // "zero2" is a file that the program comes with, "fsdp2" likewise.
  bool deepspeed_by_name = false;
  // A command that hands keys on to Accelerate brings files for it, which lie in this folder below
  // scenarios/foreign/. Where this is empty it hands on nothing.
  std::string_view accelerate_files{};
  bool leave_one_out = false;  // GRPO's trainer as RLOO
  // The trainer of transformers, or a loop over PyTorch: in 32 bits unless it is told otherwise.
  bool plain = false;
  // Tables of the program's facts with the stacks that run it, plainly and with Liger's kernels.
  std::string_view stacks = "stacks", stacks_with_liger = "stacks_with_liger";
  // Programs whose releases decide, its own first.
  std::vector<std::string> releases{"transformers", "peft", "deepspeed"};
};

// This is what it calls the length of the run, and whether it stores what the reference finds.
struct RunWords {
  std::string_view steps = "max_steps", epochs = "num_train_epochs";
  double usual_epochs = 3;
  bool stores_reference = false;
};

class TrainerReader {
 public:
  TrainerReader(const SourceQuestion& question, const Document& source,
                const TrainerProgram& program);

  MappedSource& source() { return source_; }
  bool grpo() const { return program_.training == HfTraining::grpo; }
  bool packed() const { return packed_; }
  // Pairs, or answers that were liked or not.
  bool pairs() const {
    return program_.training != HfTraining::sft && program_.training < HfTraining::classify;
  }
  // Its head has no loss over the vocabulary, or there is none.
  bool wordless() const {
    return program_.training >= HfTraining::reward && program_.training <= HfTraining::embed;
  }
  // Where rows are cut that nobody says.
  std::int64_t usual_length() const;

  // Reads model, machine and stack.
  void read_surroundings(bool liger, std::string_view liger_key);
  void read_job(const RunWords& run = {});
  // A step of GRPO, which the trainer is told in rows of a GPU, and their number.
  void read_grpo() { put_trl_grpo(source_, grpo_words()); }
  void read_sharding();
  void read_narrow_gather(std::string_view key) { put_narrow_gather(source_, key, sharding_); }
  void read_checkpointing(std::string_view key, bool full);
  void read_saves();
  // Passes over rows held back; those of GRPO generate, and are left out.
  void read_evaluation();
  Translation finish() { return source_.finish(); }

 private:
  std::string_view method() const;
  void put_texts();
  void read_loaded();
  bool frozen_in_32_bits(bool loaded_so);
  TrlGrpoWords grpo_words();
  ShardingFacts put_own_fsdp(const std::string& strategy);
  ShardingFacts put_switched_deepspeed();
  ShardingFacts put_deepspeed_block();
  bool hands_on() const;
  GpusOfSource own_processes();
  void find_named_accelerate();
  void find_accelerate();
  void find_told_accelerate();
  void read_length(const RunWords& run);
  bool read_samples();

  const SourceQuestion& question_;
  TrainerProgram program_;
  MappedSource source_;
  std::optional<AccelerateFile> accelerate_{};
  GpusOfSource launched_{};
  ShardingFacts sharding_{};
  bool packed_ = false, checkpoints_inside_ = false;
  bool switched_ = false;  // DeepSpeed's settings are the program's own
};

}  // namespace stepsim
