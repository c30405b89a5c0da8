#include "scenarios/foreign/deepspeed/deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenarios/foreign/deepspeed/deepspeed_keys.hpp"
#include "scenarios/foreign/text/relaxed_json.hpp"
#include "scenarios/keys/key_tables.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr double most_bucket_elements = 1e15;

// A number, or what "auto" stands for.
double number_or_auto(const Table& table, std::string_view key, double fallback, double automatic) {
  if (!table.has(key)) return fallback;
  if (table.text_or(key, "") == "auto") return automatic;
  return table.number(key, 0, most_bucket_elements);
}

bool flag_or_auto(const Table& table, std::string_view key, bool fallback) {
  if (table.has(key) && table.text_or(key, "") == "auto") return fallback;
  return table.flag_or(key, fallback);
}

// Stage-3 keys go by two names, the one without prefix being the older.
double stage3(const Table& table, std::string_view name, double fallback, double automatic) {
  const std::string prefixed = fmt::format("stage3_{}", name);
  return table.has(prefixed) ? number_or_auto(table, prefixed, fallback, automatic)
                             : number_or_auto(table, name, fallback, automatic);
}

std::optional<Offload> device_of(const Table& block) {
  const std::string device = block.choice("device", {"none", "cpu", "nvme"});
  for (const std::string_view ignored :
       {"pin_memory", "fast_init", "super_offload", "cpuadam_cores_perc"})
    block.text_or(ignored, "");
  const bool path = !block.text_or("nvme_path", "").empty();
  if (device == "nvme" && !path) block.problem("nvme_path", "is missing: device is nvme");
  if (device == "cpu") return Offload::cpu;
  return device == "nvme" ? Offload::nvme : Offload::none;
}

// `cpu_offload: true` and its like are what the blocks were called once.
Offload place_of(const Table& zero, std::string_view block,
                 std::initializer_list<std::string_view> older, Offload fallback) {
  const auto told = zero.table_if(block);
  Offload place = told ? *device_of(*told) : fallback;
  for (const std::string_view key : older) {
    if (!zero.flag_or(key, false)) continue;
    if (told)
      zero.problem(key, fmt::format("is an older name of {}, which is there as well", block));
    place = Offload::cpu;
  }
  return place;
}

void read_offload(const Table& zero, Strategy& strategy) {
  OffloadKeys& keys = strategy.offload;
  strategy.optimizer_place =
      place_of(zero, "offload_optimizer", {"cpu_offload"}, strategy.optimizer_place);
  strategy.parameter_place = place_of(
      zero, "offload_param", {"cpu_offload_param", "cpu_offload_params"}, strategy.parameter_place);
  if (const auto block = zero.table_if("offload_optimizer")) {
    keys.ratio = block->number_or("ratio", 1, 0, 1);
    keys.pins = block->flag_or("pin_memory", keys.pins);
    keys.optimizer_buffers = block->integer_or("buffer_count", keys.optimizer_buffers, 1, 1 << 16);
    keys.pipeline_read = block->flag_or("pipeline_read", false);
    keys.pipeline_write = block->flag_or("pipeline_write", false);
  }
  if (const auto block = zero.table_if("offload_param")) {
    keys.parameter_buffers = block->integer_or("buffer_count", keys.parameter_buffers, 1, 1 << 16);
    keys.buffer_size = number_or_auto(*block, "buffer_size", keys.buffer_size, keys.buffer_size);
    keys.max_in_cpu = number_or_auto(*block, "max_in_cpu", keys.max_in_cpu, keys.max_in_cpu);
  }
}

void read_zero(const Table& zero, const DeepSpeedQuestion& question, Strategy& strategy) {
  const double h = static_cast<double>(question.model.hidden);
  ZeroKeys& keys = strategy.zero;
  keys.overlap_comm = flag_or_auto(zero, "overlap_comm", keys.overlap_comm);
  keys.reduce_bucket = number_or_auto(zero, "reduce_bucket_size", keys.reduce_bucket, h * h);
  keys.sub_group = number_or_auto(zero, "sub_group_size", keys.sub_group, keys.sub_group);
  keys.prefetch_bucket =
      stage3(zero, "prefetch_bucket_size", keys.prefetch_bucket, std::floor(0.9 * h * h));
  keys.persistence_threshold =
      stage3(zero, "param_persistence_threshold", keys.persistence_threshold, 10 * h);
  keys.max_live = stage3(zero, "max_live_parameters", keys.max_live, keys.max_live);
  keys.max_reuse = stage3(zero, "max_reuse_distance", keys.max_reuse, keys.max_reuse);
  if (const auto leaf = zero.table_if("leaf_module"))
    keys.leaf_modules = !leaf->texts_or("classes").empty() || !leaf->texts_or("names").empty() ||
                        !leaf->texts_or("name_suffixes").empty();
  read_offload(zero, strategy);
  keys.hpz = zero.integer_or("zero_hpz_partition_size", keys.hpz, 1, 1 << 20);
  keys.round_robin = zero.flag_or("round_robin_gradients", keys.round_robin);
  keys.quantized_weights = zero.flag_or("zero_quantized_weights", keys.quantized_weights);
  keys.quantized_gradients = zero.flag_or("zero_quantized_gradients", keys.quantized_gradients);
}

// Notes what DeepSpeed does below stage 3 with keys that need it.
void check_zero(const Table& zero, const DeepSpeedQuestion& question, DeepSpeedImport& result) {
  Strategy& s = result.strategy;
  const auto free = [&](std::string_view key) { return !was_set(question, key); };
  if (s.sharding == Sharding::zero3) {
    if (s.zero.hpz > 1 && question.ranks % s.zero.hpz != 0)
      zero.problem("zero_hpz_partition_size",
                   fmt::format("{} does not divide {} ranks", s.zero.hpz, question.ranks));
    return;
  }
  if (s.optimizer_place == Offload::nvme && free("strategy.offload.optimizer")) {
    s.optimizer_place = Offload::cpu;
    result.notes.emplace_back(
        "offload_optimizer.device nvme is host memory below stage 3, as in DeepSpeed");
  }
  if (const auto block = zero.table_if("offload_optimizer");
      block && s.offload.ratio != 1 && free("strategy.offload.ratio"))
    block->problem("ratio", "a part of the optimizer needs stage 3");
  if (s.parameter_place != Offload::none && free("strategy.offload.parameters")) {
    s.parameter_place = Offload::none;
    result.notes.emplace_back("offload_param works with stage 3 only; DeepSpeed ignores it below");
  }
  if (free("strategy.zero_optimization.zero_hpz_partition_size")) s.zero.hpz = 1;
  if (free("strategy.zero_optimization.zero_quantized_weights")) s.zero.quantized_weights = false;
  if (free("strategy.zero_optimization.zero_quantized_gradients"))
    s.zero.quantized_gradients = false;
  s.zero.leaf_modules = false;
}

// Reads the type in which gradients wait for the update: without a word that of the model.
void read_types(const Table& root, Strategy& strategy) {
  const auto types = root.table_if("data_types");
  if (!types) return;
  if (!types->has("grad_accum_dtype") || types->text_or("grad_accum_dtype", "") == "auto") return;
  const std::string type =
      types->choice("grad_accum_dtype", {"fp32", "float32", "bf16", "bfloat16", "fp16", "float16"});
  strategy.gradients =
      type == "fp32" || type == "float32" ? GradientType::fp32 : GradientType::bf16;
  if (strategy.gradients == GradientType::fp32 && strategy.sharding == Sharding::zero0)
    types->problem("grad_accum_dtype",
                   "differs from the model's type: DeepSpeed needs stage 1 or more");
}

// FusedAdam and DeepSpeedCPUAdam are what "AdamW" picks by itself.
std::string nearest_optimizer(const std::string& plain, const std::vector<std::string>& names) {
  return plain.ends_with("adam") ? " (did you mean \"AdamW\"?)" : did_you_mean(plain, names);
}

// This is what the file says at a path such as "optimizer.params.torch_adam".
struct Told {
  std::string value;
  int line = 0;
};

std::optional<Told> told_at(const Table& table, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view block = path.substr(0, dot);
    if (!table.is_mapping(block)) return std::nullopt;
    return told_at(table.table(block), path.substr(dot + 1));
  }
  const auto origin = table.origin(path);
  if (!origin) return std::nullopt;
  return Told{table.one_line(path), origin->line};
}

// Whose value it is when both say a key, and a word about the other one.
struct Settle {
  const Table& root;
  const Table& facts;
  const DeepSpeedQuestion& question;
  DeepSpeedImport& result;

  // Settles one key, or all of a block: "strategy.offload.".
  void operator()(std::string_view path) const {
    for (const DeepSpeedRival& rival : deepspeed_rivals(question.data))
      if (rival.key == path || (path.ends_with('.') && rival.key.starts_with(path))) settle(rival);
  }

  void settle(const DeepSpeedRival& rival) const {
    constexpr std::string_view job = "job.", strategy = "strategy.";
    if (rival.key.starts_with(job))
      settle(rival, *find_key(job_blocks(), rival.key.substr(job.size())), question.job,
             result.job);
    else
      settle(rival, *find_key(strategy_blocks(), rival.key.substr(strategy.size())),
             question.strategy, result.strategy);
  }

  template <class Subject>
  void settle(const DeepSpeedRival& rival, const Key<Subject>& key, const Subject& own,
              Subject& theirs) const {
    const bool differs = key.text(key.facts, own) != key.text(key.facts, theirs);
    const auto told = told_at(root, rival.theirs);
    const bool set = was_set(question, rival.key);
    // "auto" is what the scenario says, unless it is worked out here.
    const bool ours = !differs && (!told || told->value == "auto");
    if (!set && !ours) result.told.emplace_back(rival.key, told ? told->line : 0);
    if (!differs) return;
    // DeepSpeed's own default, and the only one that is a choice as well.
    const bool unstaged = !told && rival.key == "strategy.zero";
    const std::string value = told ? told->value : "0";
    if (set) {
      key.copy(own, theirs);
      if (told || unstaged) note("{1} is {2} there; {0} was set and stands", rival, value);
    } else if ((told || unstaged) && std::find(question.said.begin(), question.said.end(),
                                               rival.key) != question.said.end()) {
      note("{1} {2} stands, not {0} of the scenario", rival, value);
    }
  }

  void note(fmt::string_view text, const DeepSpeedRival& rival, std::string_view told) const {
    result.notes.push_back(
        fmt::vformat(text, fmt::make_format_args(rival.key, rival.theirs, told)));
  }
};

// Returns the optimizer as the catalogue calls it: an AdamW is the scenario's, whichever that is.
// Momentum is a number there.
std::string optimizer_called(const std::string& plain, const Table& optimizer,
                             const std::vector<std::string>& modelled) {
  std::string name = plain;
  if (optimizer.is_mapping("params") &&
      optimizer.table("params").number_or("momentum", 0, 0, 1) > 0 && plain == "sgd")
    name = "sgd_momentum";
  return std::find(modelled.begin(), modelled.end(), name) == modelled.end() ? "" : name;
}

void take_optimizer(const std::string& name, const std::string& type, const Settle& settle,
                    DeepSpeedImport& result) {
  if (name.empty()) {
    result.notes.push_back(
        fmt::format("optimizer.type {} is not modelled: AdamW is assumed", type));
    return;
  }
  result.strategy.optimizer = {};
  result.strategy.optimizer.name = name;
  settle("strategy.optimizer");
}

// DeepSpeed refuses some together with ZeRO.
void read_optimizer(const Table& root, const DeepSpeedQuestion& question, const Settle& settle,
                    DeepSpeedImport& result) {
  const auto optimizer = root.table_if("optimizer");
  if (!optimizer) return;
  Strategy& strategy = result.strategy;
  const std::string type = optimizer->text_or("type", ""), plain = in_small_letters(type);
  optimizer->has("legacy_fusion");
  const std::vector<std::string> names = settle.facts.texts("optimizers");
  if (std::none_of(names.begin(), names.end(),
                   [&](auto& name) { return in_small_letters(name) == plain; }))
    return optimizer->problem(
        "type", type.empty()
                    ? "is missing"
                    : fmt::format("neither DeepSpeed nor torch.optim has an optimizer \"{}\"{}",
                                  type, nearest_optimizer(plain, names)));
  const bool compressed = plain.starts_with("onebit") || plain.starts_with("zeroone");
  if (compressed && strategy.sharding != Sharding::zero0)
    optimizer->problem("type", fmt::format("{} does not work with ZeRO", type));
  else if (plain != "adam" && plain != "adamw")
    take_optimizer(optimizer_called(plain, *optimizer, question.optimizers), type, settle, result);
  if (!optimizer->is_mapping("params")) return;
  const Table params = optimizer->table("params");
  for (const std::string& key : params.keys()) params.has(key);
  if (!params.flag_or("torch_adam", false) || !strategy.optimizer.runs(UpdateKernels::foreach))
    return;
  if (strategy.optimizer_place == Offload::none)
    strategy.update_kernels = UpdateKernels::foreach;  // PyTorch's own choice on a GPU
  else
    result.notes.push_back(
        "optimizer.params.torch_adam is not modelled on the host: the update is DeepSpeed's own");
}

constexpr std::string_view micro_key = "train_micro_batch_size_per_gpu";
constexpr std::string_view accumulation_key = "gradient_accumulation_steps";
constexpr std::string_view batch_key = "train_batch_size";

std::optional<std::int64_t> count(const Table& root, std::string_view key, std::int64_t most) {
  if (!root.has(key) || root.text_or(key, "") == "auto") return std::nullopt;
  return root.integer(key, 1, most);
}

}  // namespace

const std::vector<DeepSpeedRival>& deepspeed_rivals(const Catalogue& data) {
  std::vector<DeepSpeedRival>& rivals = data.kept<std::vector<DeepSpeedRival>>();
  if (!rivals.empty()) return rivals;
  const Document facts = deepspeed_facts(data);
  const Table table = facts.root().table("rivals");
  for (const std::string& key : table.keys()) rivals.push_back({key, table.text(key)});
  return rivals;
}

std::map<std::string, std::string> deepspeed_words(const Catalogue& data, const std::string& path) {
  std::map<std::string, std::string> words;
  try {
    const Document document = parse_document(without_comments(read_text(path), path), path);
    for (const auto& [key, theirs] : deepspeed_rivals(data))
      if (const auto said = document.peek(theirs); said && *said != "auto")
        words.emplace(key, *said);
  } catch (const UserError&) {  // whoever reads all of it says what is wrong
    return {};
  }
  return words;
}

DeepSpeedImport read_deepspeed(const std::string& path, const DeepSpeedQuestion& question) {
  const Document document =
      parse_document(with_bare_numbers(without_comments(read_text(path), path)), path);
  const Table root = document.root();
  DeepSpeedImport result{question.strategy, question.job, {}, {}};
  const Document known = deepspeed_facts(question.data);
  const Table facts = known.root();
  const Settle settle{root, facts, question, result};
  const auto zero = root.table_if("zero_optimization");
  Strategy& strategy = result.strategy;
  strategy.sharding = static_cast<Sharding>(zero ? zero->integer_or("stage", 0, 0, 3) : 0);
  settle("strategy.zero");
  constexpr std::string_view overlap = "strategy.zero_optimization.overlap_comm";
  if (std::find(question.said.begin(), question.said.end(), overlap) == question.said.end())
    strategy.zero.overlap_comm = strategy.sharding == Sharding::zero3;
  if (zero) read_zero(*zero, question, strategy);
  read_types(root, strategy);
  bool half = false;
  if (trains_in_32_bits(root, half) && !strategy.precision.whole()) {
    strategy.precision.name = "fp32";
    result.notes.emplace_back("bf16 and fp16 are off, so DeepSpeed trains in fp32");
  } else if (half && strategy.precision.name == "bf16") {
    strategy.precision.name = "fp16";
  }
  read_optimizer(root, question, settle, result);
  settle("strategy.offload.");
  settle("strategy.zero_optimization.");
  if (zero) {
    if (const auto leaf = zero->origin("leaf_module"))
      result.told.emplace_back("strategy.zero_optimization.leaf_modules", leaf->line);
    check_zero(*zero, question, result);
    note_unread_of_zero(facts, *zero, strategy, result.notes);
  }
  read_batch(root, question, result);
  for (const std::string_view key :
       {"job.", "strategy.gradient_dtype", "strategy.optimizer_kernels"})
    settle(key);
  note_unread(facts, root, result.notes);
  for (std::string& note : result.notes) note = fmt::format("{}: {}", path, note);
  document.finish();
  return result;
}

bool was_set(const DeepSpeedQuestion& question, std::string_view key) {
  return std::any_of(question.set.begin(), question.set.end(), [&](std::string_view set) {
    return key == set ||
           (key.starts_with(set) && key.size() > set.size() && key[set.size()] == '.');
  });
}

void read_batch(const Table& root, const DeepSpeedQuestion& question, DeepSpeedImport& result) {
  Job& job = result.job;
  const bool set_micro = was_set(question, "job.micro_batch");
  const bool set_accumulation = was_set(question, "job.gradient_accumulation");
  const bool says_micro = set_micro || root.has(micro_key);
  const bool says_accumulation = set_accumulation || root.has(accumulation_key);
  const auto batch = count(root, batch_key, 1 << 30), micro = count(root, micro_key, 1 << 16),
             accumulation = count(root, accumulation_key, 1 << 16);
  const auto third = [&](std::int64_t other) {
    return std::max<std::int64_t>(1, *batch / (other * question.ranks));
  };
  const auto yields = [&](std::string_view theirs, std::int64_t told, std::string_view key,
                          std::int64_t own) {
    if (told != own)
      result.notes.push_back(
          fmt::format("{} is {} there; {} was set and stands", theirs, told, key));
  };
  if (set_micro && micro) yields(micro_key, *micro, "job.micro_batch", job.micro_batch);
  if (set_accumulation && accumulation)
    yields(accumulation_key, *accumulation, "job.gradient_accumulation", job.accumulation);
  if (micro && !set_micro) job.micro_batch = *micro;
  const std::int64_t wanted = job.accumulation;
  if (accumulation && !set_accumulation)
    job.accumulation = *accumulation;
  else if (!set_accumulation && batch && says_micro)
    job.accumulation = third(job.micro_batch);
  else if (!says_accumulation && (batch || says_micro))
    job.accumulation = 1;
  if (batch && !says_micro) job.micro_batch = third(job.accumulation);
  if (!says_accumulation && job.accumulation != wanted)
    result.notes.push_back(fmt::format("{} is absent, so DeepSpeed takes {}, not {}",
                                       accumulation_key, job.accumulation, wanted));
  const std::int64_t product = job.micro_batch * job.accumulation * question.ranks;
  if (!batch || product == *batch || question.some_learn) return;
  if (set_micro || set_accumulation)
    result.notes.push_back(
        fmt::format("{} is {} there; with what was set it is {}", batch_key, *batch, product));
  else
    root.problem(batch_key,
                 fmt::format("{} is not micro batch {} x accumulation {} x {} ranks = {}", *batch,
                             job.micro_batch, job.accumulation, question.ranks, product));
}

}  // namespace stepsim
