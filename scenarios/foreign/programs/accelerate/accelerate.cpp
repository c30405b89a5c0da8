#include "scenarios/foreign/programs/accelerate/accelerate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr std::string_view config_option = "--config_file";

// Accelerate passes a key of a block on, whatever it is called: what is near to one is misspelt.
void refuse_misspelt(const Table& facts, const Table& root, std::string_view block) {
  if (!root.is_mapping(block)) return;
  const std::vector<std::string> names = facts.texts(block);
  const Table table = root.table(block);
  for (const std::string& key : table.keys())
    if (!holds(names, key))
      if (const std::string near = did_you_mean(key, names); !near.empty())
        table.problem(key, "unknown key" + near);
}

std::string text_or_nothing(const Table& table, std::string_view key) {
  return table.has(key) && !table.is_mapping(key) ? table.one_line(key) : "";
}
std::string bare(std::string text) {
  std::erase_if(text, [](char c) { return c == '"' || c == '\''; });
  return text;
}

// Puts a line that follows from a key of the file, which is not the one that is translated.
class Putter {
 public:
  Putter(MappedSource& source, const std::string& file) : source_(source), file_(file) {}
  template <class Value>
  void put(std::string_view path, Value value, const std::string& key) {
    source_.put(path, std::move(value), config_option, fmt::format("{}: {}", file_, key));
  }

 private:
  MappedSource& source_;
  const std::string& file_;
};

AcceleratePut put_deepspeed(MappedSource& source, const std::string& file, const Table& block) {
  AcceleratePut result;
  if (const std::string named = bare(text_or_nothing(block, "deepspeed_config_file"));
      !named.empty()) {
    result.sharding = put_deepspeed_file(source, config_option, named);
    return result;
  }
  Putter putter(source, file);
  const std::string stage = bare(text_or_nothing(block, "zero_stage"));
  result.sharding = {.sharded = true, .stage_3 = stage == "3"};
  putter.put("strategy.zero", stage.empty() ? "2" : stage, "deepspeed_config.zero_stage");
  const std::string states = bare(text_or_nothing(block, "offload_optimizer_device")),
                    parameters = bare(text_or_nothing(block, "offload_param_device"));
  if (states == "cpu" || states == "nvme") {
    result.sharding.optimizer_on_host = true;
    putter.put("strategy.offload.optimizer", states, "deepspeed_config.offload_optimizer_device");
  }
  if (parameters == "cpu" || parameters == "nvme")
    putter.put("strategy.offload.parameters", parameters, "deepspeed_config.offload_param_device");
  return result;
}

void put_leaves(MappedSource& source, const std::string& file, const Table& block) {
  const bool named = !bare(text_or_nothing(block, "deepspeed_moe_layer_cls_names")).empty() ||
                     !bare(text_or_nothing(block, "transformer_moe_cls_names")).empty();
  if (source.around().model && source.around().model->experts)
    Putter(source, file)
        .put("strategy.zero_optimization.leaf_modules", named,
             "deepspeed_config.deepspeed_moe_layer_cls_names");
}

// These are sizes of groups (accelerate/parallelism_config.py): copies of all shards, GPUs that
// share one of these, a layer, or a row by PyTorch's ring attention or by DeepSpeed's Ulysses.
struct GroupsOfAccelerate {
  std::int64_t replicas = 1, shard = 1, tensor = 1, ring = 1, ulysses = 1;

  std::int64_t all() const { return replicas * shard * tensor * ring * ulysses; }
};

GroupsOfAccelerate read_accelerate_groups(const Table& root) {
  if (!root.is_mapping("parallelism_config")) return {};
  const Table block = root.table("parallelism_config");
  const auto size = [&](std::string_view name) {
    return block.integer_or(fmt::format("parallelism_config_{}_size", name), 1, 1, most_ranks);
  };
  return {.replicas = size("dp_replicate"),
          .shard = size("dp_shard"),
          .tensor = size("tp"),
          .ring = size("cp"),
          .ulysses = size("sp")};
}

void put_accelerate_groups(MappedSource& source, const AccelerateFile& accelerate,
                           const GroupsOfAccelerate& groups) {
  const GpusOfSource launched = gpus_of(source.question());
  const std::int64_t processes = launched.gpus > 0 ? launched.gpus : accelerate.gpus.gpus;
  // DeepSpeed makes its own groups, over all processes.
  if (groups.ulysses == 1 && groups.all() > 1 && processes > 0 && groups.all() != processes)
    source.problem(config_option,
                   fmt::format("{}: Accelerate refuses a parallelism_config whose sizes multiply "
                               "to {} for {} processes: expected dp_shard_size: {}",
                               accelerate.file, groups.all(), processes,
                               std::max<std::int64_t>(processes * groups.shard / groups.all(), 1)));
  if (groups.ring > 1 && groups.ulysses > 1)
    source.problem(config_option,
                   fmt::format("{}: Accelerate refuses cp_size: {} with sp_size: {}: expected one "
                               "of the two",
                               accelerate.file, groups.ring, groups.ulysses));
  Putter putter(source, accelerate.file);
  const auto put = [&](std::string_view path, std::int64_t size, std::string_view name) {
    if (size > 1) putter.put(path, size, fmt::format("parallelism_config_{}_size", name));
  };
  put("strategy.tensor_parallel.size", groups.tensor, "tp");
  if (groups.tensor > 1)
    putter.put("strategy.tensor_parallel.sequence", false, "parallelism_config_tp_size");
  put("strategy.sequence_parallel.ring", groups.ring, "cp");
  put("strategy.sequence_parallel.ulysses", groups.ulysses, "sp");
}

AcceleratePut put_own_fsdp(MappedSource& source, const Table& block, std::int64_t replicas) {
  const auto said = [&](std::string_view key) {
    return bare(text_or_nothing(block, fmt::format("fsdp_{}", key)));
  };
  AcceleratePut result;
  result.sharding = put_fsdp(source, {.key = config_option,
                                      .strategy = said("sharding_strategy"),
                                      .version = said("version"),
                                      .reshard = said("reshard_after_forward"),
                                      .replicas = replicas,
                                      .replicas_key = config_option,
                                      .offload = is_yes(said("offload_params"))});
  result.checkpointing = is_yes(said("activation_checkpointing"));
  if (is_yes(said("forward_prefetch")))
    source.put("strategy.fsdp.forward_prefetch", true, config_option, "fsdp_forward_prefetch");
  return result;
}

// Puts layers of torchao or of Transformer Engine in place of the model's.
void put_few_bits(MappedSource& source, const std::string& file, const Table& root) {
  if (in_small_letters(bare(text_or_nothing(root, "mixed_precision"))) != "fp8") return;
  const std::string backend = root.is_mapping("fp8_config")
                                  ? bare(text_or_nothing(root.table("fp8_config"), "backend"))
                                  : "";
  source.put_precision(config_option, backend.empty() ? "auto" : in_small_letters(backend),
                       fmt::format("{}: fp8_config.backend", file));
}

// Notes torch.compile, and a run without GPUs.
void put_other_blocks(MappedSource& source, const std::string& file, const Table& root) {
  const auto not_modelled = [&](std::string_view key, const std::string& value,
                                std::string_view why) {
    source.note(fmt::format("{}: {}: {} is not modelled: {}", file, key, value, why));
  };
  if (root.is_mapping("dynamo_config")) {
    const std::string backend =
        in_small_letters(bare(text_or_nothing(root.table("dynamo_config"), "dynamo_backend")));
    if (backend == "inductor" && !source.on("torch_compile"))
      Putter(source, file).put("strategy.compile", true, "dynamo_config.dynamo_backend");
    else if (!backend.empty() && backend != "no" && backend != "inductor")
      not_modelled("dynamo_config.dynamo_backend", backend, "the result is without it");
  }
  if (is_yes(bare(text_or_nothing(root, "use_cpu"))))
    not_modelled("use_cpu", "true", "the GPUs are used");
}

// Options of the launcher as keys of its file, as far as they belong to this kind of sharding,
// and what Accelerate takes where neither says more.
void lay_options(Document& document, const Launch& launch, const std::string& sharding) {
  const bool deepspeed = sharding == "DEEPSPEED", fsdp = sharding == "FSDP";
  const bool groups = launch.options.contains("use_parallelism_config");
  document.set("distributed_type", sharding);
  for (const auto& [name, word] : launch.options) {
    if (!word.unknown.empty()) continue;
    const bool own = name == "deepspeed_config_file" || name == "zero_stage" ||
                     name.starts_with("offload_") || name == "deepspeed_moe_layer_cls_names";
    const std::string block = own && deepspeed                    ? "deepspeed_config."
                              : fsdp && name.starts_with("fsdp_") ? "fsdp_config."
                              : groups && name.starts_with("parallelism_config_")
                                  ? "parallelism_config."
                              : name == "mixed_precision" ? ""
                                                          : "-";
    if (block != "-") document.set(block + name, yaml_quoted(word.text));
  }
  if (deepspeed && !document.peek("deepspeed_config"))
    document.set("deepspeed_config.zero_stage", "2");
  if (fsdp && !document.peek("fsdp_config"))
    document.set("fsdp_config.fsdp_sharding_strategy", "FULL_SHARD");
}

}  // namespace

AccelerateFile read_accelerate(const Catalogue& data, const std::string& file) {
  return read_accelerate(data, read_document(file), file);
}

AccelerateFile read_accelerate(const Catalogue& data, const Document& document,
                               const std::string& file) {
  const Document facts = import_facts(data, "programs/accelerate/accelerate");
  const Table root = document.root();
  AccelerateFile result{.file = file};
  const std::vector<std::string> names = facts.root().texts("file");
  for (const std::string& key : root.keys())
    if (std::find(names.begin(), names.end(), key) == names.end())
      root.problem(key, fmt::format("no key of a file of Accelerate{}", did_you_mean(key, names)));
  for (const std::string_view block : {"deepspeed_config", "fsdp_config"})
    refuse_misspelt(facts.root(), root, block);
  const std::int64_t processes = root.integer_or("num_processes", 0, -1, 1 << 20),
                     machines = root.integer_or("num_machines", 1, 1, 1 << 13);
  result.sharding = bare(text_or_nothing(root, "distributed_type"));
  const bool whole = processes > 0 && processes % machines == 0;
  if (processes > 0 && !whole)
    root.problem("num_processes",
                 fmt::format("{} machines cannot share {} processes alike", machines, processes));
  if (whole)
    result.gpus = {processes, machines, fmt::format("{} says num_processes: {}", file, processes),
                   processes / machines};
  result.text = document.canonical();
  document.finish(Leftovers::allowed);
  return result;
}

void lay_options_over(AccelerateFile& accelerate, const Launch& launch) {
  const auto says = [&](const char* name) { return launch.options.contains(name); };
  std::string sharding = accelerate.sharding;
  if (says("multi_gpu")) sharding = "MULTI_GPU";
  if (says("use_deepspeed")) sharding = "DEEPSPEED";
  if (says("use_fsdp")) sharding = "FSDP";
  Document document = parse_document(accelerate.text, accelerate.file);
  lay_options(document, launch, sharding);
  accelerate.sharding = sharding;
  accelerate.text = document.canonical();
}

std::optional<AccelerateFile> accelerate_of_options(const Launch& launch,
                                                    const std::string& script) {
  const auto says = [&](const char* name) { return launch.options.contains(name); };
  const bool deepspeed =
                 says("use_deepspeed") || says("deepspeed_config_file") || says("zero_stage"),
             fsdp = says("use_fsdp");
  if (!deepspeed && !fsdp) return std::nullopt;
  AccelerateFile result;
  result.file = script;
  result.sharding = deepspeed ? "DEEPSPEED" : "FSDP";
  Document document = parse_document("{}", script);
  lay_options(document, launch, result.sharding);
  result.text = document.canonical();
  return result;
}

AcceleratePut put_accelerate(MappedSource& source, const AccelerateFile& accelerate) {
  const std::string& file = accelerate.file;
  const Document document = parse_document(accelerate.text, file);
  const Table root = document.root();
  if (file != source.question().file && file != source.question().script)
    source.result().files.push_back(file);
  const std::string type = in_small_letters(accelerate.sharding);
  const GroupsOfAccelerate groups = read_accelerate_groups(root);
  AcceleratePut result;
  if (type == "deepspeed") {
    const Table block = root.table("deepspeed_config");
    result = put_deepspeed(source, file, block);
    if (result.sharding.stage_3) put_leaves(source, file, block);
  } else if (type == "fsdp") {
    result = put_own_fsdp(source, root.table("fsdp_config"), groups.replicas);
  } else if (type == "megatron_lm" || type == "tp") {
    source.problem(config_option,
                   fmt::format("{}: distributed_type {} is not read; expected DEEPSPEED, "
                               "FSDP, MULTI_GPU or NO",
                               file, accelerate.sharding));
  } else {
    result.sharding = put_replicas(source, config_option);
  }
  put_accelerate_groups(source, accelerate, groups);
  put_few_bits(source, file, root);
  result.threads = root.integer_or("num_cpu_threads_per_process", 0, 0, most_host_threads);
  put_other_blocks(source, file, root);
  document.finish(Leftovers::allowed);
  return result;
}

}  // namespace stepsim
