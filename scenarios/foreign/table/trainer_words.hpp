// Trainers over Hugging Face's models share these: their words for optimizers and attention
// (scenarios/foreign/table/trainers.yaml), the files they name, and what their launchers say.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/table/assumed.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"

namespace stepsim {

// These facts are known of the sharding before the optimizer is read.
struct ShardingFacts {
  bool sharded = false;
  bool stage_3 = false;  // of ZeRO
  bool fsdp = false, fsdp2 = false, optimizer_on_host = false;
  bool replaces_optimizer = true;  // DeepSpeed puts its own in place of one on the host
};

// Returns what trainers.yaml says for all of them.
Document shared_words(const MappedSource& source);
// Returns whether the model is known and has experts.
bool has_experts(const MappedSource& source);

// GPUs that the launcher of a script asks for; nothing where there is no script.
GpusOfSource gpus_of(const SourceQuestion& question);

// Puts the stack. `remark` says what it stands for. The stacks are in the table of this name:
// "stacks".
void put_stack_of(MappedSource& source, std::string_view table, std::string_view key,
                  const std::string& remark);

// Puts the optimizer called `name` at `key`. One that no list has is an error.
void put_optimizer(MappedSource& source, std::string_view key, const std::string& name,
                   const ShardingFacts& sharding);

// Puts how attention is run, said at `key`; `masked`: packed rows whose documents need a mask.
void put_attention(MappedSource& source, std::string_view key, const std::string& name,
                   bool masked);

// These say something of images: keys that freeze parts of a model that sees, and the largest
// image.
struct ImageWords {
  std::string_view tower_key{}, projector_key{}, pixels_key{};
  bool trains_tower = false, trains_projector = false;  // where nothing is said
  double most_pixels = 0;                               // likewise; 0: no bound
  std::initializer_list<std::string_view> others{};     // keys that only rows with images have
};
// Puts an image in each row where the file or the name of the model says that there are any. The
// keys are told as not modelled where the model's tower is not.
void put_images(MappedSource& source, const ImageWords& words);

// One expert after the other, or all of them, as the model's own code does it.
void put_experts(MappedSource& source, std::string_view key);
// Puts whether stage 3 gathers a block of experts at once.
void put_leaf_modules(MappedSource& source, bool at_once, std::string_view key, std::string remark);

// Finds a file beside the source, from here, or by its name alone; nothing where it is nowhere.
std::optional<std::string> find_beside(const SourceQuestion& question, const std::string& said);
// The DeepSpeed file that `key` names. One that is not there is an error at `key`.
ShardingFacts put_deepspeed_file(MappedSource& source, std::string_view key,
                                 const std::string& said);

// These words say PyTorch's own sharding as Accelerate and transformers do.
struct FsdpWords {
  std::string_view key;
  std::string strategy{};  // "FULL_SHARD", "hybrid_shard auto_wrap"
  std::string version{};
  std::string_view version_key{};  // if not `key`
  std::string reshard{};           // "true", or a strategy of older releases
  std::string_view reshard_key{};
  std::int64_t replicas = 1;  // copies of all shards
  std::string_view replicas_key{};
  bool offload = false;
  std::string_view offload_key{};  // if not `key`
  bool checkpointing = false;
};
ShardingFacts put_fsdp(MappedSource& source, const FsdpWords& words);
// Parameters, gradients and the optimizer on the host, where PyTorch's own AdamW takes an operator
// at a time unless it is fused.
void put_fsdp_offload(MappedSource& source, std::string_view key);
void put_unfused_on_host(MappedSource& source, std::string_view key);
// Shards are gathered in 8 bits, which only the second version does.
// A ring of ring-flash-attention's functions for rows of many documents: each rank has one slice.
void put_contiguous_ring(MappedSource& source, std::int64_t ranks, std::string_view key);
void put_narrow_gather(MappedSource& source, std::string_view key, const ShardingFacts& sharding);
// Puts "bf16", "fp16" and "tf32" of the trainer of transformers. Without a word it is taken to be
// bf16, or 32 bits where it is `plain`. Returns whether all is in 32 bits.
bool put_types(MappedSource& source, bool plain = false);
// Returns whether a word for a type means 16 bits: "bfloat16", "half".
bool is_half(std::string_view type);
// Returns whether the model's own code knows no checkpointing, whatever it is told.
bool never_checkpoints(MappedSource& source);
// `gradient_checkpointing_kwargs`, a block or what a command line says instead: {"use_reentrant":
// false}.
void put_reentrant(MappedSource& source);
// Each GPU has everything.
ShardingFacts put_replicas(MappedSource& source, std::string_view key);
// Threads of each process, which an update on the host runs on, as a launcher or a variable says;
// `by_file`: as a file of Accelerate does, 0: it does not.
inline constexpr std::int64_t most_host_threads = 1 << 12;
void put_host_threads(MappedSource& source, const ShardingFacts& sharding,
                      std::int64_t by_file = 0);
// This says how what is trained is kept, where each GPU has everything and PyTorch casts for
// products.
enum class Loaded : std::uint8_t { in_16_bits, in_32_bits };
void put_loaded(MappedSource& source, Loaded loaded, std::string_view key);

// Reads a list, or a text with commas or blanks between its words.
std::vector<std::string> words_at(MappedSource& source, std::string_view key);
// Returns whether the word means yes; yes, On and True do.
bool is_yes(std::string word);

}  // namespace stepsim
