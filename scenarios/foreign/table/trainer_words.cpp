#include "scenarios/foreign/table/trainer_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "scenarios/foreign/text/near_files.hpp"
#include "scenarios/foreign/text/relaxed_json.hpp"
#include "scenarios/rules/rules.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

const std::string& program_of(MappedSource& source) {
  return source.result().program;
}

// The scenario's word for it, or that it is one without a word there; nothing: no list has it.
struct OptimizerWord {
  std::string kind{};
  bool other = false;
};
OptimizerWord optimizer_word(const Table& words, const std::string& name,
                             std::vector<std::string>& names) {
  OptimizerWord found;
  names = words.texts("other_optimizers");
  found.other = holds(names, name);
  const Table known = words.table("optimizers");
  for (const std::string& kind : known.keys()) {
    const std::vector<std::string> spellings = known.texts(kind);
    if (holds(spellings, name)) found.kind = kind;
    names.insert(names.end(), spellings.begin(), spellings.end());
  }
  return found;
}

// Returns where a trainer would look for a file that its settings name, and where people leave it.
std::vector<std::string> places_beside(const SourceQuestion& question, const std::string& said) {
  const fs::path folder = fs::path(question.file).parent_path(), path(said);
  std::vector<fs::path> all{folder / path, path, folder / path.filename(),
                            folder / "deepspeed_configs" / path.filename()};
  // A script names files from where it stands.
  if (!question.script.empty()) all.push_back(fs::path(question.script).parent_path() / path);
  std::vector<std::string> places;
  for (const fs::path& place : all)
    if (std::string text = place.lexically_normal().string(); !holds(places, text))
      places.push_back(std::move(text));
  return places;
}

// Files of DeepSpeed that a program comes with, and people name as if they were beside their own.
std::string shipped_file(const MappedSource& source, const std::string& name) {
  return source.question().data.file(
      fmt::format("scenarios/foreign/{}/{}", source.facts().text("deepspeed_files"), name));
}
std::vector<std::string> shipped_files(const MappedSource& source) {
  std::vector<std::string> names;
  if (!source.facts().has("deepspeed_files")) return names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(shipped_file(source, ""), failed))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Puts the size of images: that of COCO's, which many data sets are made of, unless the file lets
// through smaller ones alone.
void put_pixels(MappedSource& source, const ImageWords& words) {
  const double most =
      words.pixels_key.empty() ? 0 : source.number(words.pixels_key, words.most_pixels, 0, 1e9);
  const double usual = Job{}.pixels, pixels = most > 0 ? std::min(most, usual) : usual;
  if (!source.question().decides("job.pixels"))
    source.put("job.pixels",
               fmt::format("{{value: {}, low: {}, high: {}, source: sizes of images are not in the "
                           "file}}",
                           pixels, std::min(pixels, 224.0 * 224), most > 0 ? most : 4 * usual),
               pixels < usual ? words.pixels_key : "", "taken");
  if (!source.question().decides("job.images"))
    source.result().assumptions.push_back(
        {"images of a row",
         fmt::format("1 of {:.0f} pixels, {:.0f} tokens", pixels,
                     picture_of(*source.around().model->tower, pixels).tokens),
         "the file does not say", "--set job.images=0 (text alone), --set job.pixels=N"});
}

// Accelerate counts PyTorch's strategies from 1.
std::string strategy_word(const std::string& said) {
  constexpr std::array<std::string_view, 5> counted{"full_shard", "shard_grad_op", "no_shard",
                                                    "hybrid_shard", "hybrid_shard_zero2"};
  const bool is_count = said.size() == 1 && said.front() >= '1' && said.front() <= '5';
  return is_count ? std::string(counted.at(static_cast<std::size_t>(said.front() - '1')))
                  : in_small_letters(said);
}

bool lacks_bf16(const MappedSource& source) {
  const auto& cluster = source.around().cluster;
  if (!cluster || !is_on(source.question().data, gpu_shelf, cluster->gpu.name)) return false;
  const Document gpu = open_entry(source.question().data, gpu_shelf, cluster->gpu.name);
  return holds(gpu.root().texts_or("lacks"), "bf16");
}

}  // namespace

Document shared_words(const MappedSource& source) {
  return read_document(source.question().data.file("scenarios/foreign/table/trainers.yaml"));
}

bool has_experts(const MappedSource& source) {
  return source.around().model && source.around().model->experts;
}

std::vector<std::string> words_at(MappedSource& source, std::string_view key) {
  const std::string text = source.text(key);
  const std::string_view between = text.starts_with('[') ? ", []'\"" : ", ";
  std::vector<std::string> words(1);
  for (const char c : text)
    if (between.find(c) == std::string_view::npos)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  if (words.back().empty()) words.pop_back();
  return words;
}

bool is_yes(std::string word) {
  word = in_small_letters(std::move(word));
  return word == "true" || word == "yes" || word == "on" || word == "1";
}

GpusOfSource gpus_of(const SourceQuestion& question) {
  if (question.launch == nullptr) return {};
  const Launch& launch = *question.launch;
  if (!launch.gpus && !launch.nodes) return {};
  const std::int64_t nodes = launch.nodes.value_or(1);
  if (!launch.gpus) return {8 * nodes, nodes, fmt::format("the launcher says {} nodes", nodes)};
  const std::string said =
      nodes > 1
          ? fmt::format("the launcher says {} nodes of {} GPUs", nodes, *launch.gpus)
          : fmt::format("the launcher says {} GPU{}", *launch.gpus, *launch.gpus == 1 ? "" : "s");
  return {*launch.gpus * nodes, nodes, launch.why_gpus.empty() ? said : launch.why_gpus,
          *launch.gpus};
}

void put_stack_of(MappedSource& source, std::string_view table, std::string_view key,
                  const std::string& remark) {
  const std::string vendor =
      source.around().cluster ? source.around().cluster->gpu.vendor : "nvidia";
  const Table stacks = source.facts().table(table);
  const std::vector<std::string> known = stacks.keys();
  source.put("stack",
             first_stack(source.question().data,
                         stacks.texts(holds(known, vendor) ? vendor : known.front())),
             key, fmt::format("{} on {} GPUs", remark, vendor));
}

void put_optimizer(MappedSource& source, std::string_view key, const std::string& name,
                   const ShardingFacts& sharding) {
  const Document words = shared_words(source);
  std::vector<std::string> names;
  OptimizerWord word = optimizer_word(words.root(), name, names);
  if (word.kind.empty() && !word.other)
    return source.problem(key, fmt::format("{} has no optimizer \"{}\"{}", program_of(source), name,
                                           did_you_mean(name, names)));
  if (word.kind.empty()) source.without(key, fmt::format("{}: AdamW is taken", name));
  if (word.kind.empty()) word.kind = "adamw";
  if (sharding.optimizer_on_host && !sharding.replaces_optimizer &&
      name.find("fused") == std::string::npos)
    put_unfused_on_host(source, key);
  if (sharding.optimizer_on_host && sharding.replaces_optimizer && word.kind != "adamw") {
    source.put("strategy.optimizer", "adamw", key, "offload replaces it");
    return source.note(fmt::format(
        "{}: {} is replaced: with its states on the host the optimizer is DeepSpeed's own AdamW, "
        "with states in 32 bits",
        key, name));
  }
  source.put("strategy.optimizer", word.kind, key, word.kind == name || word.other ? "" : name);
  if (name == "adamw_torch" && !sharding.optimizer_on_host)
    source.put("strategy.optimizer_kernels", "foreach", key, "PyTorch's own choice");
  if (name.starts_with("paged_"))
    source.without(key, fmt::format("{}: pages that move to the host when memory ends", name));
}

void put_attention(MappedSource& source, std::string_view key, const std::string& name,
                   bool masked) {
  const Document words = shared_words(source);
  const Table known = words.root().table("attention");
  const std::vector<std::string> names = known.keys();
  if (!holds(names, name))
    return source.problem(key, fmt::format("transformers has no attention \"{}\"{}; expected {}",
                                           name, did_you_mean(name, names), one_of(names)));
  const std::string kernel = known.text(name);
  const bool wants_mask = kernel == "sdpa" && masked;
  source.put("strategy.attention", wants_mask ? "sdpa_efficient" : kernel, key,
             wants_mask ? "packed rows need a mask" : "");
}

void put_images(MappedSource& source, const ImageWords& words) {
  std::vector<std::string_view> keys(words.others);
  for (const std::string_view key : {words.tower_key, words.projector_key, words.pixels_key})
    if (!key.empty()) keys.push_back(key);
  std::erase_if(keys, [&](std::string_view key) { return !source.says(key); });
  const auto& model = source.around().model;
  if (!model || !model->tower) {
    for (const std::string_view key : keys)
      source.without_memory(key,
                            "images are not counted: with them the real step is slower, 1.3 to "
                            "2 times, and needs more memory");
    return;
  }
  const Document shared = shared_words(source);
  const bool called = std::ranges::any_of(
      shared.root().texts("names_that_see"),
      [&](const std::string& word) { return model->name.find(word) != std::string::npos; });
  if (keys.empty() && !called) return;
  const std::string_view cause = keys.empty() ? std::string_view() : keys.front();
  const bool said = source.question().decides("job.images");
  if (!said) source.put("job.images", "1", cause, "taken");
  put_pixels(source, words);
  const auto frozen = [&](std::string_view key, bool trains) {
    return key.empty() ? !trains : source.on(key, !trains);
  };
  if (!frozen(words.tower_key, words.trains_tower))
    source.put("strategy.vision.train_tower", true, words.tower_key);
  if (!frozen(words.projector_key, words.trains_projector))
    source.put("strategy.vision.train_projector", true, words.projector_key);
}

void put_experts(MappedSource& source, std::string_view key) {
  if (!has_experts(source)) return;
  const Document shared = shared_words(source);
  source.put("strategy.moe.kernel",
             holds(shared.root().texts("runs_all_experts"), source.around().model->architecture)
                 ? "all_experts"
                 : "loop",
             key, "as the model's own code runs experts");
}

void put_leaf_modules(MappedSource& source, bool at_once, std::string_view key,
                      std::string remark) {
  if (has_experts(source))
    source.put("strategy.zero_optimization.leaf_modules", at_once, key, std::move(remark));
}

std::optional<std::string> find_beside(const SourceQuestion& question, const std::string& said) {
  const std::vector<std::string> places = places_beside(question, said);
  std::error_code failed;
  const auto place = std::find_if(places.begin(), places.end(), [&](const std::string& each) {
    return fs::is_regular_file(each, failed);
  });
  return place == places.end() ? find_above(question.file, said) : std::optional(*place);
}

ShardingFacts put_deepspeed_file(MappedSource& source, std::string_view key,
                                 const std::string& said) {
  ShardingFacts facts{.sharded = true};
  std::string remark;
  auto file = find_beside(source.question(), said);
  const std::vector<std::string> shipped = shipped_files(source);
  const std::string name = fs::path(said).filename().string();
  if (!file && holds(shipped, name)) {
    file = shipped_file(source, name);
    remark = fmt::format("{} as {} comes with it", name, program_of(source));
  }
  if (!file) {
    const std::vector<std::string> places = places_beside(source.question(), said);
    std::string none = fmt::format("no file {}", fmt::join(places, " or "));
    if (!shipped.empty())
      none += fmt::format(", and {} is none of those that {} comes with: {}", name,
                          program_of(source), fmt::join(shipped, ", "));
    source.problem(key, none);
    return facts;
  }
  source.put("strategy.deepspeed", yaml_quoted(*file), key, remark);
  const Document json = parse_document(without_comments(read_text(*file), *file), *file);
  const Table root = json.root();
  if (!root.is_mapping("zero_optimization")) return facts;
  const Table zero = root.table("zero_optimization");
  facts.replaces_optimizer = !root.has("zero_force_ds_cpu_optimizer") ||
                             is_yes(root.text_or("zero_force_ds_cpu_optimizer", ""));
  facts.stage_3 = zero.has("stage") && zero.text_or("stage", "") == "3";
  facts.optimizer_on_host = zero.has("cpu_offload") && is_yes(zero.text_or("cpu_offload", ""));
  if (zero.is_mapping("offload_optimizer")) {
    const std::string device = zero.table("offload_optimizer").text_or("device", "none");
    facts.optimizer_on_host = device == "cpu" || device == "nvme";
  }
  return facts;
}

void put_fsdp_offload(MappedSource& source, std::string_view key) {
  source.put("strategy.offload.parameters", "cpu", key);
  source.put("strategy.offload.optimizer", "cpu", key);
}

void put_unfused_on_host(MappedSource& source, std::string_view key) {
  source.put("strategy.offload.cpu_adam", "operators", key, "PyTorch's own on the host");
}

ShardingFacts put_fsdp(MappedSource& source, const FsdpWords& words) {
  const std::string strategy = strategy_word(words.strategy),
                    reshard = strategy_word(words.reshard);
  // The second version has no such strategy, and shards all the same.
  const bool alone = words.version != "2" && (strategy.find("no_shard") != std::string::npos ||
                                              reshard.find("no_shard") != std::string::npos);
  if (alone) {
    source.note(fmt::format(
        "{}: NO_SHARD leaves everything on each GPU, as DistributedDataParallel does", words.key));
    return put_replicas(source, words.key);
  }
  const bool hybrid =
      strategy.find("hybrid") != std::string::npos || reshard.find("hybrid") != std::string::npos;
  const bool keeps = strategy.find("grad_op") != std::string::npos ||
                     strategy.find("zero2") != std::string::npos ||
                     reshard.find("grad_op") != std::string::npos || reshard == "false";
  const auto or_key = [&](std::string_view key) { return key.empty() ? words.key : key; };
  if (!words.version.empty() && words.version != "1" && words.version != "2")
    source.problem(or_key(words.version_key),
                   fmt::format("FSDP has versions 1 and 2, found \"{}\"", words.version));
  source.put("strategy.zero", hybrid || words.replicas > 1 ? "hsdp" : "fsdp", words.key);
  source.put("strategy.fsdp.version", words.version == "2" ? "2" : "1", or_key(words.version_key));
  if (keeps) source.put("strategy.fsdp.reshard_after_forward", false, or_key(words.reshard_key));
  if (words.replicas > 1) source.put("strategy.fsdp.replicate", words.replicas, words.replicas_key);
  const bool offload = words.offload || strategy.find("offload") != std::string::npos;
  if (offload) put_fsdp_offload(source, or_key(words.offload_key));
  return {.sharded = true,
          .fsdp = true,
          .fsdp2 = words.version == "2",
          .optimizer_on_host = offload,
          .replaces_optimizer = false};
}

void put_narrow_gather(MappedSource& source, std::string_view key, const ShardingFacts& sharding) {
  if (sharding.fsdp2)
    source.put("strategy.fsdp.narrow_gather", true, key);
  else
    source.note(fmt::format("{} does nothing here: only version 2 of FSDP gathers 8 bits", key));
}

bool is_half(std::string_view type) {
  return type == "half" || type.find("16") != std::string_view::npos;
}

bool never_checkpoints(MappedSource& source) {
  const auto& model = source.around().model;
  return model && source.on("trust_remote_code") &&
         holds(shared_words(source).root().texts("never_checkpoints"), model->architecture);
}

bool put_types(MappedSource& source, bool plain) {
  const bool tf32 = source.on("tf32"), sixteen = source.on("fp16");
  bool loaded = false;  // in 16 bits, whatever else is said
  for (const std::string_view key : {"dtype", "torch_dtype"})
    loaded = is_half(source.text(key)) || source.text(key) == "auto" || loaded;
  const bool few_bits = source.on("load_in_4bit") || source.on("load_in_8bit");
  const bool off = in_small_letters(source.text("bf16")) == "false" ||
                   (plain && !source.says("bf16") && !few_bits);
  // bitsandbytes casts inputs of its matrices to this type, under autocast to another one as well.
  constexpr std::string_view compute = "bnb_4bit_compute_dtype";
  const std::string type = source.text(compute);
  const bool half_products =
      few_bits && (type == "half" || type.ends_with("float16")) && !type.ends_with("bfloat16");
  // unsloth/models/_utils.py: is_bfloat16_supported() asks for compute capability 8.
  const bool old = source.root().has("unsloth") && lacks_bf16(source);
  if (sixteen || half_products || old)
    source.put("strategy.precision", "fp16",
               sixteen         ? "fp16"
               : half_products ? compute
                               : "unsloth",
               old && !sixteen ? "Unsloth takes fp16 where the GPU has no bf16" : "");
  if (old || half_products) return false;
  const bool whole = !sixteen && off && !loaded && !few_bits;
  if (!whole && !sixteen && off && !loaded)
    source.without("bf16", "matrices in 4 bits are multiplied in 16 bits whatever it says");
  if (whole)
    source.put("strategy.precision", tf32 ? "tf32" : "fp32", "bf16", "16 bits are not asked for");
  return whole;
}

void put_reentrant(MappedSource& source) {
  constexpr std::string_view block = "gradient_checkpointing_kwargs",
                             inside = "gradient_checkpointing_kwargs.use_reentrant";
  const bool is_block = !source.keys_below(block).empty();
  const std::string_view key = is_block ? inside : block;
  const std::string text = source.text(key);
  std::string said = in_small_letters(text);
  if (!is_block) {  // JSON of a command line
    constexpr std::string_view name = "use_reentrant";
    const std::size_t at = said.find(name);
    if (at == std::string::npos) return;
    said = said.substr(at + name.size(), said.find_first_of(",}", at) - at - name.size());
  }
  if (said.empty()) return;
  const bool yes = said.find("true") != std::string::npos;
  if (yes || said.find("false") != std::string::npos)
    source.put("strategy.reentrant", yes, key);
  else
    source.problem(key, fmt::format("expected true or false, found \"{}\"", text));
}

void put_host_threads(MappedSource& source, const ShardingFacts& sharding, std::int64_t by_file) {
  if (!sharding.optimizer_on_host) return;
  const auto put = [&](std::string_view threads, std::string_view key) {
    source.put("strategy.offload.threads", std::string(threads), key);
  };
  constexpr std::string_view option = "num_cpu_threads_per_process", variable = "OMP_NUM_THREADS";
  const Launch* launch = source.question().launch;
  const auto said = [&](const std::map<std::string, ShellWord>& words, std::string_view name) {
    const auto place = words.find(std::string(name));
    const bool number = place != words.end() && !place->second.text.empty() &&
                        std::ranges::all_of(place->second.text, is_digit);
    return number && place->second.text != "0" ? place->second.text : std::string();
  };
  if (launch != nullptr)
    if (const std::string threads = said(launch->options, option); !threads.empty())
      return put(threads, option);
  if (by_file > 0) return put(std::to_string(by_file), option);
  if (launch != nullptr)
    if (const std::string threads = said(launch->environment, variable); !threads.empty())
      put(threads, variable);
}

void put_contiguous_ring(MappedSource& source, std::int64_t ranks, std::string_view key) {
  source.put("strategy.sequence_parallel.ring", ranks, key);
  source.put("strategy.sequence_parallel.slices", "contiguous", key,
             "each GPU has one slice of a row, and the last sees the most keys");
}

void put_loaded(MappedSource& source, Loaded loaded, std::string_view key) {
  source.put("strategy.master_weights", loaded == Loaded::in_32_bits, key,
             loaded == Loaded::in_32_bits ? "what is trained is kept in 32 bits"
                                          : "parameters are trained as they are loaded");
}

ShardingFacts put_replicas(MappedSource& source, std::string_view key) {
  source.put("strategy.zero", "0", key, "each GPU has everything");
  if (!source.around().cluster || source.around().cluster->ranks() > 1) {
    constexpr std::int64_t bucket = 25 << 20, bytes_of_number = 2;
    source.put("strategy.zero_optimization.reduce_bucket_size", bucket / bytes_of_number, key,
               "25 MiB of DistributedDataParallel, in elements");
    source.put("strategy.zero_optimization.overlap_comm", true, key,
               "DistributedDataParallel reduces beside the backward pass");
  }
  return {};
}

}  // namespace stepsim
