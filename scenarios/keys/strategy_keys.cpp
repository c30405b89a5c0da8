#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/keys/key_tables.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_parts = 1 << 16;
constexpr double most_elements = 1e12;

// The words of a value that a stack file may choose as well.
template <std::size_t N>
constexpr std::array<std::string_view, N + 1> or_stack(
    const std::array<std::string_view, N>& names) {
  std::array<std::string_view, N + 1> words{"stack"};
  for (std::size_t i = 0; i < N; ++i) words[i + 1] = names[i];
  return words;
}
constexpr auto attention_words = or_stack(attention_names);
constexpr auto cross_entropy_words = or_stack(cross_entropy_names);
constexpr auto adapter_type_words = or_stack(adapter_type_names);
constexpr std::array<std::string_view, 2> activation_places{"none", "cpu"};

// Reads the modules that run again instead of the core of attention alone.
void read_modules(const Table& table, const KeyFacts& facts, Strategy& strategy) {
  if (!table.has(facts.name)) return;
  const std::vector<std::string> names(module_names.begin(), module_names.end());
  RecomputedModules modules{.chosen = {}};
  for (const std::string& name : table.texts_or(facts.name)) {
    const auto known = std::ranges::find(module_names, name);
    if (known == module_names.end())
      table.problem(facts.name,
                    fmt::format("\"{}\" is no module that can run again{}; there are {}", name,
                                did_you_mean(name, names), fmt::join(names, ", ")));
    else
      modules.chosen[static_cast<std::size_t>(known - module_names.begin())] = true;
  }
  if (strategy.checkpointing != Checkpointing::selective)
    table.problem(facts.name, "is a choice of checkpointing: selective");
  strategy.recomputed = modules;
}

std::string modules_text(const KeyFacts&, const Strategy& strategy) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < module_names.size(); ++i)
    if (strategy.recomputed.chosen[i]) names.push_back(module_names[i]);
  return fmt::format("[{}]", fmt::join(names, ", "));
}

void read_lora_modules(const Table& table, const KeyFacts& facts, Strategy& strategy) {
  strategy.lora.modules = table.texts_or(facts.name);
}

std::string lora_modules_text(const KeyFacts&, const Strategy& strategy) {
  return fmt::format("[{}]", fmt::join(strategy.lora.modules, ", "));
}

void read_layers(const Table& table, const KeyFacts& facts, Strategy& strategy) {
  std::vector<std::int64_t> layers;
  for (const std::string& word : table.texts_or(facts.name)) {
    const auto count = number_from<std::int64_t>(word);
    if (!count || *count < 0 || *count > most_parts)
      return table.problem(facts.name,
                           fmt::format("expected numbers of layers, found \"{}\"", word));
    layers.push_back(*count);
  }
  strategy.pipeline_parallel.layers = layers;
}

std::string layers_text(const KeyFacts&, const Strategy& strategy) {
  const std::vector<std::int64_t>& layers = strategy.pipeline_parallel.layers;
  return layers.empty() ? "" : fmt::format("[{}]", fmt::join(layers, ", "));
}

bool selective(const Strategy& s) {
  return s.checkpointing == Checkpointing::selective;
}
bool recomputes(const Strategy& s) {
  return s.checkpointing != Checkpointing::none;
}
bool stage_3(const Strategy& s) {
  return s.sharding == Sharding::zero3;
}
bool kernels_are_a_choice(const Strategy& s) {
  return !s.optimizer.kernels.empty();
}
bool matrices_are_shared(const Strategy& s) {
  return s.optimizer.orthogonal && is_fsdp(s.sharding);
}
bool moment_type_is_a_choice(const Strategy& s) {
  return s.optimizer.moment_types.size() > 1;
}
bool hybrid(const Strategy& s) {
  return s.sharding == Sharding::hsdp;
}
bool optimizer_on_host(const Strategy& s) {
  return s.optimizer_place == Offload::cpu;
}
bool gradients_on_host(const Strategy& s) {
  return optimizer_on_host(s) && !stage_3(s) && !is_fsdp(s.sharding);
}
bool optimizer_on_drives(const Strategy& s) {
  return s.optimizer_place == Offload::nvme;
}
bool parameters_on_drives(const Strategy& s) {
  return s.parameter_place == Offload::nvme;
}
bool multiplies_narrow(const Strategy& s) {
  return s.precision.name != Precision{}.name;
}
bool flat_parameters(const Strategy& s) {
  return s.fsdp.version == 1;
}

constexpr std::array strategy_own_keys{
    Key<Strategy>{.facts = {.name = "deepspeed"}},
    Key<Strategy>{.facts = {.name = "deepspeed_except", .kind = KeyKind::list}},
    word<&Strategy::sharding>("zero", sharding_names),
    word<&Strategy::checkpointing>("checkpointing", checkpointing_names),
    Key<Strategy>{.facts = {.name = "recompute_modules", .kind = KeyKind::list},
                  .read = read_modules,
                  .text = modules_text,
                  .matters = selective},
    flag<&Strategy::reentrant>("reentrant").when([](const Strategy& s) {
      return s.checkpointing == Checkpointing::full;
    }),
    number<&Strategy::checkpoint_every>("checkpoint_every", 1, most_parts).when(recomputes),
    flag<&Strategy::compiled>("compile"),
    entry<&Strategy::precision>("precision"),
    word<&Strategy::attention>("attention", attention_words),
    word<&Strategy::cross_entropy>("cross_entropy", cross_entropy_words),
    flag<&Strategy::shifts_logits>("shifts_logits"),
    entry<&Strategy::optimizer>("optimizer"),
    word<&Strategy::update_kernels>("optimizer_kernels", update_kernels_names)
        .when(kernels_are_a_choice),
    word<&Strategy::matrix_updates>("matrix_updates", matrix_updates_names)
        .when(matrices_are_shared),
    flag<&Strategy::master_weights>("master_weights").prepared([](Strategy& s) {
      s.master_weights = s.sharding != Sharding::zero0;
    }),
    word<&Strategy::gradients>("gradient_dtype", gradient_type_names),
    word<&Strategy::moments>("moment_dtype", moment_type_names).when(moment_type_is_a_choice),
    flag<&Strategy::update_in_backward>("update_in_backward"),
    flag<&Strategy::expandable_segments>("expandable_segments"),
    word<&Strategy::load>("load", loading_names),
};

constexpr std::array distributed_keys{
    flag<&Strategy::distributed, &DistributedOptimizer::overlap_reduce>("overlap_grad_reduce"),
    flag<&Strategy::distributed, &DistributedOptimizer::overlap_gather>("overlap_param_gather"),
    whole<&Strategy::distributed, &DistributedOptimizer::shard>("shard", 1, most_ranks),
};

constexpr std::array lora_keys{
    whole<&Strategy::lora, &Lora::rank>("rank", 1, most_parts).required(),
    word<&Strategy::lora, &Lora::targets>("targets", lora_targets_names),
    Key<Strategy>{.facts = {.name = "modules", .kind = KeyKind::list},
                  .read = read_lora_modules,
                  .text = lora_modules_text,
                  .matters = [](const Strategy& s) { return !s.lora.modules.empty(); }},
    entry<&Strategy::lora, &Lora::method>("method"),
    entry<&Strategy::lora, &Lora::quantised>("quantised"),
    word<&Strategy::lora, &Lora::frozen>("frozen", lora_frozen_names),
    word<&Strategy::lora, &Lora::type>("adapters", adapter_type_words),
    number<&Strategy::lora, &Lora::dropout>("dropout", 0, 1),
    word<&Strategy::lora, &Lora::kernels>("kernels", adapter_kernels_names),
    flag<&Strategy::lora, &Lora::saves_inputs>("saves_inputs").when([](const Strategy& s) {
      return s.lora.quantised.packs();
    }),
    flag<&Strategy::lora, &Lora::embedding>("train_embedding"),
    flag<&Strategy::lora, &Lora::head>("train_head"),
};

constexpr std::array moe_keys{
    word<&Strategy::experts, &ExpertStrategy::kernel>("kernel", moe_kernel_names),
    word<&Strategy::experts, &ExpertStrategy::dispatcher>("dispatcher", dispatcher_names)
        .when(sends_tokens),
    whole<&Strategy::experts, &ExpertStrategy::parallel>("expert_parallel", 1, most_parts),
    whole<&Strategy::experts, &ExpertStrategy::tensor>("expert_tensor_parallel", 1, most_parts),
    flag<&Strategy::experts, &ExpertStrategy::same_rows>("same_rows").when(sends_tokens),
    number<&Strategy::experts, &ExpertStrategy::capacity_factor>("capacity_factor", 0, 100)
        .when([](const Strategy& s) { return has_slots(s.experts.kernel); }),
    number<&Strategy::experts, &ExpertStrategy::drops_above>("drops_above", 0, 100)
        .when([](const Strategy& s) { return s.experts.kernel == MoeKernel::grouped; }),
    word<&Strategy::experts, &ExpertStrategy::layout>("layout", expert_layout_names),
    flag<&Strategy::experts, &ExpertStrategy::graphs>("graphs"),
    flag<&Strategy::experts, &ExpertStrategy::overlaps>("overlap").when(sends_tokens),
    flag<&Strategy::experts, &ExpertStrategy::delays_weights>("delay_weight_gradients")
        .when([](const Strategy& s) { return s.experts.overlaps; }),
    flag<&Strategy::experts, &ExpertStrategy::neighbours>("neighbours").when(sends_tokens),
    number<&Strategy::experts, &ExpertStrategy::skew>("skew", 0, 10),
    number<&Strategy::experts, &ExpertStrategy::peak_skew>("peak_skew", 0, 10),
};

constexpr std::array offload_keys{
    word<&Strategy::optimizer_place>("optimizer", offload_names),
    word<&Strategy::parameter_place>("parameters", offload_names),
    word<&Strategy::activation_place>("activations", activation_places),
    word<&Strategy::offload, &OffloadKeys::adam>("cpu_adam", host_adam_names)
        .when(optimizer_on_host),
    whole<&Strategy::offload, &OffloadKeys::threads>("threads", 1, 1024).when(optimizer_on_host),
    flag<&Strategy::offload, &OffloadKeys::pins>("pin_memory").when(gradients_on_host),
    number<&Strategy::offload, &OffloadKeys::ratio>("ratio", 0, 1).when(optimizer_on_host),
    flag<&Strategy::offload, &OffloadKeys::pipeline_read>("pipeline_read")
        .when(optimizer_on_drives),
    flag<&Strategy::offload, &OffloadKeys::pipeline_write>("pipeline_write")
        .when(optimizer_on_drives),
    whole<&Strategy::offload, &OffloadKeys::optimizer_buffers>("optimizer_buffers", 1, most_parts)
        .when(optimizer_on_drives),
    whole<&Strategy::offload, &OffloadKeys::parameter_buffers>("parameter_buffers", 1, most_parts)
        .when(parameters_on_drives),
    number<&Strategy::offload, &OffloadKeys::buffer_size>("buffer_size", 1, most_elements)
        .when(parameters_on_drives),
    number<&Strategy::offload, &OffloadKeys::max_in_cpu>("max_in_cpu", 0, 1e15)
        .when(parameters_on_drives),
};

constexpr std::array pipeline_keys{
    whole<&Strategy::pipeline_parallel, &PipelineParallel::size>("size", 1, most_parts),
    word<&Strategy::pipeline_parallel, &PipelineParallel::schedule>("schedule",
                                                                    pipeline_schedule_names),
    whole<&Strategy::pipeline_parallel, &PipelineParallel::virtual_stages>("virtual_stages", 1,
                                                                           most_parts),
    Key<Strategy>{.facts = {.name = "layers", .kind = KeyKind::list},
                  .read = read_layers,
                  .text = layers_text},
};

// PyTorch's names where it has some. Its pipeline stages add gradients up and keep parameters.
constexpr std::array fsdp_keys{
    whole<&Strategy::fsdp, &FsdpKeys::version>("version", 1, 2),
    word<&Strategy::fsdp, &FsdpKeys::reduce>("reduce_dtype", fsdp_dtype_names),
    word<&Strategy::fsdp, &FsdpKeys::gather>("gather_dtype", fsdp_dtype_names),
    flag<&Strategy::fsdp, &FsdpKeys::reshard_after_forward>("reshard_after_forward")
        .prepared([](Strategy& s) {
          if (s.pipeline_parallel.size > 1) s.fsdp.reshard_after_forward = false;
        }),
    flag<&Strategy::fsdp, &FsdpKeys::sync_each_batch>("sync_each_batch").prepared([](Strategy& s) {
      if (s.pipeline_parallel.size > 1) s.fsdp.sync_each_batch = false;
    }),
    flag<&Strategy::fsdp, &FsdpKeys::limit_all_gathers>("limit_all_gathers").when(flat_parameters),
    flag<&Strategy::fsdp, &FsdpKeys::forward_prefetch>("forward_prefetch"),
    word<&Strategy::fsdp, &FsdpKeys::backward_prefetch>("backward_prefetch", fsdp_prefetch_names),
    flag<&Strategy::fsdp, &FsdpKeys::narrow_gather>("narrow_gather").when(multiplies_narrow),
    flag<&Strategy::fsdp, &FsdpKeys::root_group>("root_group").prepared([](Strategy& s) {
      s.fsdp.root_group = s.fsdp.version == 1;
    }),
    flag<&Strategy::fsdp, &FsdpKeys::reshard_root>("reshard_root"),
    flag<&Strategy::fsdp, &FsdpKeys::root_experts>("root_experts"),
    flag<&Strategy::fsdp, &FsdpKeys::adapter_units>("adapter_units"),
    whole<&Strategy::fsdp, &FsdpKeys::shard>("shard", 1, most_ranks).when(hybrid),
    whole<&Strategy::fsdp, &FsdpKeys::replicate>("replicate", 1, most_ranks).when(hybrid),
};

constexpr std::array tensor_keys{
    whole<&Strategy::tensor_parallel, &TensorParallel::size>("size", 1, most_parts),
    flag<&Strategy::tensor_parallel, &TensorParallel::sequence>("sequence"),
    flag<&Strategy::tensor_parallel, &TensorParallel::gathers_logits>("gather_logits"),
    flag<&Strategy::tensor_parallel, &TensorParallel::gathers_each>("gather_each"),
    flag<&Strategy::tensor_parallel, &TensorParallel::divides_embedding>("divide_embedding"),
    flag<&Strategy::tensor_parallel, &TensorParallel::divides_head>("divide_head"),
    flag<&Strategy::tensor_parallel, &TensorParallel::in_pieces>("async"),
};

constexpr std::array sequence_keys{
    whole<&Strategy::sequence_parallel, &SequenceParallel::ulysses>("ulysses", 1, most_parts),
    whole<&Strategy::sequence_parallel, &SequenceParallel::ring>("ring", 1, most_parts),
    word<&Strategy::sequence_parallel, &SequenceParallel::slices>("slices", ring_slices_names)
        .when([](const Strategy& s) { return s.sequence_parallel.ring > 1; }),
};

// DeepSpeed's own names, units and defaults.
constexpr std::array zero_keys{
    flag<&Strategy::zero, &ZeroKeys::overlap_comm>("overlap_comm").prepared([](Strategy& s) {
      s.zero.overlap_comm = stage_3(s);
    }),
    number<&Strategy::zero, &ZeroKeys::reduce_bucket>("reduce_bucket_size", 1, most_elements),
    number<&Strategy::zero, &ZeroKeys::prefetch_bucket>("stage3_prefetch_bucket_size", 0,
                                                        most_elements)
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::persistence_threshold>("stage3_param_persistence_threshold",
                                                              0, most_elements)
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::max_live>("stage3_max_live_parameters", 0, most_elements)
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::max_reuse>("stage3_max_reuse_distance", 0, most_elements)
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::sub_group>("sub_group_size", 0, most_elements).when(stage_3),
    whole<&Strategy::zero, &ZeroKeys::hpz>("zero_hpz_partition_size", 1, most_ranks).when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::round_robin>("round_robin_gradients").when(gradients_on_host),
    flag<&Strategy::zero, &ZeroKeys::quantized_weights>("zero_quantized_weights").when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::quantized_gradients>("zero_quantized_gradients").when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::clears_in_sub_groups>("clears_in_sub_groups").when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::counts_in_hooks>("counts_in_hooks"),
    flag<&Strategy::zero, &ZeroKeys::stops_at_fetches>("stops_at_fetches").when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::waits_for_reductions>("waits_for_reductions"),
    flag<&Strategy::zero, &ZeroKeys::loses_sums>("loses_sums").when(gradients_on_host),
    flag<&Strategy::zero, &ZeroKeys::leaf_modules>("leaf_modules").when(stage_3),
};

constexpr std::array vision_keys{
    flag<&Strategy::vision, &VisionKeys::tower>("train_tower"),
    flag<&Strategy::vision, &VisionKeys::projector>("train_projector"),
};

// Pipelines stand before fsdp: PyTorch's stages have other defaults.
constexpr std::array strategy_tables{
    Block<Strategy>{"", "", strategy_own_keys},
    Block<Strategy>{.name = "distributed_optimizer",
                    .sentence =
                        "Megatron's, with zero 1: one buffer of all gradients, reduce-scattered; "
                        "without this block: buckets as DeepSpeed has them",
                    .keys = distributed_keys,
                    .present = [](Strategy& s) { s.distributed.used = true; },
                    .matters = [](const Strategy& s) { return s.distributed.used; },
                    .left_out = true},
    Block<Strategy>{.name = "lora",
                    .sentence = "adapters next to frozen matrices; without this block: the whole "
                                "model is trained",
                    .keys = lora_keys,
                    .matters = [](const Strategy& s) { return s.lora.rank > 0; },
                    .left_out = true},
    Block<Strategy>{.name = "vision",
                    .sentence = "of models that see, where job.images says that there are any",
                    .keys = vision_keys,
                    .left_out = true},
    Block<Strategy>{
        .name = "moe", .sentence = "of models with experts; no effect on others", .keys = moe_keys},
    Block<Strategy>{.name = "offload",
                    .sentence = "what is kept outside the GPU; sizes are DeepSpeed's",
                    .keys = offload_keys},
    Block<Strategy>{
        .name = "pipeline_parallel",
        .sentence =
            "with zero 0, 1 and fsdp; the micro-batches are those of job.gradient_accumulation",
        .keys = pipeline_keys,
        .matters = [](const Strategy& s) { return s.pipeline_parallel.size > 1; }},
    Block<Strategy>{.name = "fsdp",
                    .sentence = "PyTorch's own sharding: no effect unless zero is fsdp or hsdp",
                    .keys = fsdp_keys,
                    .matters = [](const Strategy& s) { return is_fsdp(s.sharding); }},
    Block<Strategy>{.name = "tensor_parallel",
                    .sentence = "",
                    .keys = tensor_keys,
                    .matters = [](const Strategy& s) { return s.tensor_parallel.size > 1; }},
    Block<Strategy>{.name = "sequence_parallel",
                    .sentence = "",
                    .keys = sequence_keys,
                    .matters = [](const Strategy& s) { return s.sequence_parallel.ranks() > 1; }},
    Block<Strategy>{.name = "zero_optimization",
                    .sentence = "DeepSpeed's names, units (elements) and defaults",
                    .keys = zero_keys,
                    .matters = [](const Strategy& s) { return !is_fsdp(s.sharding); }},
};

}  // namespace

std::span<const Block<Strategy>> strategy_blocks() {
  return strategy_tables;
}

}  // namespace stepsim
