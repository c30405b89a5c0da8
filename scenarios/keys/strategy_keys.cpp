#include "scenarios/keys/strategy_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.hpp"

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
    std::int64_t count = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc{} || end != word.data() + word.size() || count < 0 || count > most_parts)
      return table.problem(facts.name,
                           fmt::format("expected numbers of layers, found \"{}\"", word));
    layers.push_back(count);
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
    Key<Strategy>{.facts = {.name = "deepspeed",
                            .sentence = "DeepSpeed's own file, next to this one. What it says wins "
                                        "over the keys below, but not over --set, nor over keys "
                                        "listed in deepspeed_except",
                            .otherwise = "none",
                            .example = "ds_config.json",
                            .left_out = true}},
    Key<Strategy>{.facts = {.name = "deepspeed_except",
                            .sentence = "keys that DeepSpeed's file does not change",
                            .kind = KeyKind::list,
                            .otherwise = "none",
                            .example = "[strategy.zero]",
                            .left_out = true}},
    word<&Strategy::sharding>("zero", sharding_names,
                              "what the GPUs share out: the stage of ZeRO (0 to 3), or PyTorch's "
                              "own sharding: fsdp over all GPUs, hsdp in copies"),
    word<&Strategy::checkpointing>(
        "checkpointing", checkpointing_names,
        "what the backward pass computes again: none; selective: single modules, the core of "
        "attention unless others are named; operators: all but attention and every second matrix "
        "product; full: each layer"),
    Key<Strategy>{.facts = {.name = "recompute_modules",
                            .sentence = "under selective: which modules run again: core_attn, "
                                        "layernorm, moe_act, mla_up_proj, mlp, moe, shared_experts",
                            .kind = KeyKind::list,
                            .example = "[layernorm, moe_act]",
                            .left_out = true},
                  .read = read_modules,
                  .text = modules_text,
                  .matters = selective},
    Key<Strategy>{
        .facts = {.name = "reentrant",
                  .sentence = "how PyTorch computes layers again: true: in a pass of its "
                              "own, before which no graph is kept; false: by hooks on "
                              "all that operators save, which cost the host time, and "
                              "only up to the last of these",
                  .kind = KeyKind::flag,
                  .otherwise = "as the stack does it",
                  .example = "false",
                  .left_out = true},
        .read =
            [](const Table& table, const KeyFacts& facts, Strategy& s) {
              if (table.has(facts.name)) s.reentrant = table.flag_or(facts.name, true);
            },
        .text = [](const KeyFacts&, const Strategy& s) -> std::string {
          if (!s.reentrant) return "";
          return *s.reentrant ? "true" : "false";
        },
        .copy = [](const Strategy& from, Strategy& to) { to.reentrant = from.reentrant; },
        .matters = [](const Strategy& s) { return s.checkpointing == Checkpointing::full; }},
    number<&Strategy::checkpoint_every>(
        "checkpoint_every", 1, most_parts,
        "out of this many layers, on average, one is computed again; 1.5: two of three")
        .when(recomputes),
    flag<&Strategy::compiled>("compile",
                              "torch.compile: norms, rotations, activations and residuals are one "
                              "kernel each"),
    Key<Strategy>{
        .facts = {.name = "precision",
                  .sentence = "in which type matrix products run, or all of the model, and how "
                              "numbers are cast to it; "
                              "`stepsim list precisions` names them"},
        .read = [](const Table& table, const KeyFacts& facts,
                   Strategy& s) { s.precision.name = table.text_or(facts.name, s.precision.name); },
        .text = [](const KeyFacts&, const Strategy& s) { return s.precision.name; },
        .copy = [](const Strategy& from, Strategy& to) { to.precision = from.precision; }},
    word<&Strategy::attention>(
        "attention", attention_words,
        "which kernel runs attention; sdpa_math and eager keep the scores of "
        "all pairs in memory; stack: the one that the stack uses"),
    word<&Strategy::cross_entropy>(
        "cross_entropy", cross_entropy_words,
        "how the loss is computed. stack: as the stack does it; logits: PyTorch's over all logits "
        "in 32 bits; logits_16: the same in 16 bits; logits_32: from a head that multiplies in 32 "
        "bits; kernel: one kernel over 16-bit logits; kernel_32: over a copy of them in 32 bits; "
        "in_place: as kernel, and the gradient takes the place of the logits; fused: chunk by "
        "chunk with the head; words_32: 2048 words of the "
        "vocabulary at a time in 32 bits; chunks: an eighth of the tokens at a time; "
        "head_chunks: the same with the head"),
    flag<&Strategy::shifts_logits>(
        "shifts_logits", "logits are copied without the last of each row before the loss"),
    Key<Strategy>{
        .facts = {.name = "optimizer",
                  .sentence = "which one; `stepsim list optimizers` names them"},
        .read = [](const Table& table, const KeyFacts& facts,
                   Strategy& s) { s.optimizer.name = table.text_or(facts.name, s.optimizer.name); },
        .text = [](const KeyFacts&, const Strategy& s) { return s.optimizer.name; },
        .copy = [](const Strategy& from, Strategy& to) { to.optimizer = from.optimizer; }},
    word<&Strategy::update_kernels>(
        "optimizer_kernels", update_kernels_names,
        "how the update runs: fused: one kernel; foreach: an operator at a time over many tensors; "
        "single: an operator at a time over one")
        .otherwise("the first that the optimizer has; adamw: fused")
        .when(kernels_are_a_choice),
    word<&Strategy::matrix_updates>(
        "matrix_updates", matrix_updates_names,
        "with muon and zero: fsdp, who makes a matrix orthogonal: dealt: one of the ranks that "
        "share it; everywhere: each of them, from all momenta, gathered in 16 bits")
        .when(matrices_are_shared),
    flag<&Strategy::master_weights>("master_weights", "an fp32 copy of the parameters is kept")
        .otherwise("true, with zero: 0 false",
                   [](Strategy& s) { s.master_weights = s.sharding != Sharding::zero0; }),
    word<&Strategy::gradients>("gradient_dtype", gradient_type_names,
                               "in which gradients wait for the update"),
    word<&Strategy::moments>("moment_dtype", moment_type_names, "of the optimizer's moments")
        .when(moment_type_is_a_choice),
    flag<&Strategy::update_in_backward>(
        "update_in_backward",
        "each tensor is updated right after its gradient, which is then freed; with zero: 0 and "
        "one micro-batch"),
    flag<&Strategy::expandable_segments>(
        "expandable_segments",
        "PyTorch's allocator maps memory piece by piece (PYTORCH_ALLOC_CONF), so that all it keeps "
        "and nobody uses can be given back"),
    word<&Strategy::load>("load", loading_names,
                          "how the model comes to the GPUs under zero 3 and fsdp: sharded: part by "
                          "part; replica: whole on each GPU first"),
};

constexpr std::array distributed_keys{
    flag<&Strategy::distributed, &DistributedOptimizer::overlap_reduce>(
        "overlap_grad_reduce", "gradients are reduced during the last backward pass"),
    flag<&Strategy::distributed, &DistributedOptimizer::overlap_gather>(
        "overlap_param_gather", "updated parameters are gathered during the next forward pass"),
    whole<&Strategy::distributed, &DistributedOptimizer::shard>(
        "shard", 1, most_ranks, "neighbouring GPUs that share one copy of the optimizer states")
        .otherwise("all")
        .example("8"),
};

constexpr std::array lora_keys{
    whole<&Strategy::lora, &Lora::rank>("rank", 1, most_parts, "rank of the adapters")
        .required()
        .example("16"),
    word<&Strategy::lora, &Lora::targets>(
        "targets", lora_targets_names,
        "what gets an adapter: attention: its matrices; linear: and those of dense feed-forward; "
        "all: and those of experts"),
    Key<Strategy>{.facts = {.name = "modules",
                            .sentence = "of these the ones with such names alone; left out: all",
                            .kind = KeyKind::list,
                            .example = "[q_proj, v_proj]",
                            .left_out = true},
                  .read = read_lora_modules,
                  .text = lora_modules_text,
                  .matters = [](const Strategy& s) { return !s.lora.modules.empty(); }},
    Key<Strategy>{
        .facts = {.name = "method",
                  .sentence = "what is trained beside a matrix; `stepsim list adapters` names it"},
        .read = [](const Table& table, const KeyFacts& facts,
                   Strategy& s) { s.lora.method.name = table.text_or(facts.name, "lora"); },
        .text = [](const KeyFacts&, const Strategy& s) { return s.lora.method.name; },
        .copy = [](const Strategy& from, Strategy& to) { to.lora.method = from.lora.method; }},
    Key<Strategy>{
        .facts = {.name = "quantised",
                  .sentence = "how the frozen matrices are stored: none: in 16 bits; `stepsim list "
                              "formats` names the others"},
        .read = [](const Table& table, const KeyFacts& facts,
                   Strategy& s) { s.lora.quantised.name = table.text_or(facts.name, "none"); },
        .text = [](const KeyFacts&, const Strategy& s) { return s.lora.quantised.name; },
        .copy = [](const Strategy& from,
                   Strategy& to) { to.lora.quantised = from.lora.quantised; }},
    word<&Strategy::lora, &Lora::frozen>(
        "frozen", lora_frozen_names,
        "how what is frozen and not quantised is stored where nothing is sharded: fp32: in 32 "
        "bits, and cast for each product; with a format: what peft's "
        "prepare_model_for_kbit_training makes of norms, embedding, head and what is between"),
    word<&Strategy::lora, &Lora::type>(
        "adapters", adapter_type_words,
        "how adapters are kept and multiplied: bf16: in 16 bits; autocast: in 32, cast for "
        "products in 16; tf32, fp32: in 32, multiplied so; stack: as the stack has them"),
    number<&Strategy::lora, &Lora::dropout>(
        "dropout", 0, 1, "share of an adapter's input that is dropped; any but 0 costs the same"),
    word<&Strategy::lora, &Lora::kernels>(
        "kernels", adapter_kernels_names,
        "modules: adapters are modules of their own; fused: Unsloth's, Axolotl's and others' "
        "functions around a block's matrices, whose products add"),
    flag<&Strategy::lora, &Lora::saves_inputs>(
        "saves_inputs", "functions of quantised matrices save their inputs, as bitsandbytes' did")
        .when([](const Strategy& s) { return s.lora.quantised.packs(); }),
    flag<&Strategy::lora, &Lora::embedding>(
        "train_embedding", "the embedding is trained whole beside adapters (modules_to_save)"),
    flag<&Strategy::lora, &Lora::head>("train_head", "the head is trained whole beside adapters"),
};

constexpr std::array moe_keys{
    word<&Strategy::experts, &ExpertStrategy::kernel>(
        "kernel", moe_kernel_names,
        "how experts run. loop: one after the other; grouped: one kernel over all of them; "
        "megablocks: the same over blocks of tokens; padded: one batched product as long as the "
        "busiest expert needs; tutel, deepspeed: slots of fixed capacity and all-to-all; "
        "deepspeed_einsum: the same with masks; all_experts: every token through each; "
        "single_fp32: a product of each expert and matrix in 32 bits"),
    word<&Strategy::experts, &ExpertStrategy::dispatcher>(
        "dispatcher", dispatcher_names,
        "how tokens travel to other GPUs: all_to_all: a copy for each expert; deepep: one copy to "
        "each node and from there to each rank; hybridep: the same into buffers of fixed size, so "
        "that the host need not know how much comes")
        .when(sends_tokens),
    whole<&Strategy::experts, &ExpertStrategy::parallel>(
        "expert_parallel", 1, most_parts,
        "GPUs that share one set of experts; with zero 1 or 2, or fsdp and grouped kernels"),
    whole<&Strategy::experts, &ExpertStrategy::tensor>(
        "expert_tensor_parallel", 1, most_parts,
        "GPUs that share each expert: 1 or the tensor_parallel size")
        .otherwise("the tensor_parallel size")
        .example("1"),
    flag<&Strategy::experts, &ExpertStrategy::same_rows>(
        "same_rows", "GPUs with different experts go through the same rows; fsdp and hsdp only")
        .when(sends_tokens),
    number<&Strategy::experts, &ExpertStrategy::capacity_factor>(
        "capacity_factor", 0, 100,
        "tutel, deepspeed: slots per routed token; 0: as many as the busiest expert needs")
        .when([](const Strategy& s) { return has_slots(s.experts.kernel); }),
    number<&Strategy::experts, &ExpertStrategy::drops_above>(
        "drops_above", 0, 100,
        "grouped: times the mean of all experts; tokens beyond that are dropped; 0: none is")
        .when([](const Strategy& s) { return s.experts.kernel == MoeKernel::grouped; }),
    word<&Strategy::experts, &ExpertStrategy::layout>(
        "layout", expert_layout_names,
        "how experts are stored: model: as the model's code does; separate: three matrices each; "
        "fused: one tensor for gate and up of all, one for down"),
    flag<&Strategy::experts, &ExpertStrategy::graphs>(
        "graphs", "routing and sending tokens are replayed as CUDA graphs"),
    flag<&Strategy::experts, &ExpertStrategy::overlaps>(
        "overlap",
        "tokens travel while another micro-batch computes: its forward pass and the "
        "backward pass of the one before take turns, layer by layer")
        .when(sends_tokens),
    flag<&Strategy::experts, &ExpertStrategy::delays_weights>(
        "delay_weight_gradients",
        "with overlap: gradients of experts' weights wait until their tokens are on their way")
        .when([](const Strategy& s) { return s.experts.overlaps; }),
    flag<&Strategy::experts, &ExpertStrategy::neighbours>(
        "neighbours",
        "a token's experts stand side by side, as a benchmark's stand-in for a router deals them "
        "out: kernels that send a token once have few ranks to send it to")
        .when(sends_tokens),
    number<&Strategy::experts, &ExpertStrategy::skew>(
        "skew", 0, 10, "spread of the tokens that experts get: standard deviation over mean"),
    number<&Strategy::experts, &ExpertStrategy::peak_skew>(
        "peak_skew", 0, 10,
        "the widest spread that there has been, which the highest memory of a run is of; 0: skew"),
};

constexpr std::array offload_keys{
    word<&Strategy::optimizer_place>("optimizer", offload_names,
                                     "where optimizer states are kept: none: on the GPU; cpu: host "
                                     "memory (zero 1 to 3, fsdp); nvme: the node's drives (zero "
                                     "3)"),
    word<&Strategy::parameter_place>(
        "parameters", offload_names,
        "where parameters wait: none: on the GPU; cpu: zero 3 and fsdp, which needs both; nvme: "
        "zero 3"),
    word<&Strategy::activation_place>("activations", activation_places,
                                      "where activations wait for the backward pass"),
    word<&Strategy::offload, &OffloadKeys::adam>(
        "cpu_adam", host_adam_names,
        "AdamW on the host: one_pass (DeepSpeed's, PyTorch's fused), operators (PyTorch's "
        "otherwise) or grace (GraceAdam, on nodes whose file has its rate)")
        .when(optimizer_on_host),
    whole<&Strategy::offload, &OffloadKeys::threads>(
        "threads", 1, 1024,
        "cores of a rank's update on the host, on nodes whose file has core_stream")
        .otherwise("its share of the cores")
        .when(optimizer_on_host)
        .left_out("1"),
    flag<&Strategy::offload, &OffloadKeys::pins>(
        "pin_memory",
        "zero: 1 or 2: gradients are copied to pinned memory; to other memory a copy takes longer, "
        "and the host waits for it")
        .otherwise("false; true from release 0.19.5 of deepspeed on")
        .when(gradients_on_host),
    number<&Strategy::offload, &OffloadKeys::ratio>(
        "ratio", 0, 1,
        "optimizer: cpu: share of it on the host, at zero 3 in sub-groups; the rest stays on the "
        "GPU")
        .when(optimizer_on_host),
    flag<&Strategy::offload, &OffloadKeys::pipeline_read>(
        "pipeline_read", "nvme: the next sub-group is read during the update of this one")
        .when(optimizer_on_drives),
    flag<&Strategy::offload, &OffloadKeys::pipeline_write>(
        "pipeline_write", "nvme: the previous sub-group is written during the update of this one")
        .when(optimizer_on_drives),
    whole<&Strategy::offload, &OffloadKeys::optimizer_buffers>(
        "optimizer_buffers", 1, most_parts,
        "nvme: pinned buffers, each as large as the largest sub-group, four for each sub-group "
        "under way")
        .when(optimizer_on_drives),
    whole<&Strategy::offload, &OffloadKeys::parameter_buffers>(
        "parameter_buffers", 1, most_parts, "nvme: pinned buffers of buffer_size each")
        .when(parameters_on_drives),
    number<&Strategy::offload, &OffloadKeys::buffer_size>("buffer_size", 1, most_elements,
                                                          "nvme: in elements")
        .when(parameters_on_drives),
    number<&Strategy::offload, &OffloadKeys::max_in_cpu>(
        "max_in_cpu", 0, 1e15, "nvme: a rank's parameters that stay in host memory, in elements")
        .when(parameters_on_drives),
};

constexpr std::array pipeline_keys{
    whole<&Strategy::pipeline_parallel, &PipelineParallel::size>(
        "size", 1, most_parts, "stages that share the layers, each over neighbouring GPUs"),
    word<&Strategy::pipeline_parallel, &PipelineParallel::schedule>(
        "schedule", pipeline_schedule_names,
        "order of the micro-batches: 1f1b; gpipe: all forward, then all backward; interleaved: "
        "1f1b over several pieces of the model on each stage; the others make gradients of weights "
        "where a stage would wait (docs/training-step.md)"),
    whole<&Strategy::pipeline_parallel, &PipelineParallel::virtual_stages>(
        "virtual_stages", 1, most_parts,
        "interleaved and zb_h1: pieces of the model on each stage; there and back: 2"),
    Key<Strategy>{.facts = {.name = "layers",
                            .sentence = "layers of each stage, interleaved of each piece in the "
                                        "order of the model",
                            .kind = KeyKind::list,
                            .otherwise = "all alike",
                            .example = "[20, 20, 20, 20]",
                            .left_out = true},
                  .read = read_layers,
                  .text = layers_text},
};

// PyTorch's names where it has some. Its pipeline stages add gradients up and keep parameters.
constexpr std::array fsdp_keys{
    whole<&Strategy::fsdp, &FsdpKeys::version>(
        "version", 1, 2, "1: a flat parameter per layer; 2: every parameter by itself"),
    word<&Strategy::fsdp, &FsdpKeys::reduce>("reduce_dtype", fsdp_dtype_names,
                                             "of gradients on the wire"),
    word<&Strategy::fsdp, &FsdpKeys::gather>(
        "gather_dtype", fsdp_dtype_names,
        "in which parameters are gathered; those in 32 bits are cast behind, as JAX does it"),
    flag<&Strategy::fsdp, &FsdpKeys::reshard_after_forward>(
        "reshard_after_forward", "false: parameters stay until their backward pass (SHARD_GRAD_OP)")
        .otherwise("true, in a pipeline false",
                   [](Strategy& s) {
                     if (s.pipeline_parallel.size > 1) s.fsdp.reshard_after_forward = false;
                   }),
    flag<&Strategy::fsdp, &FsdpKeys::sync_each_batch>(
        "sync_each_batch", "false: gradients are reduced at the last micro-batch only (no_sync)")
        .otherwise("true, in a pipeline false",
                   [](Strategy& s) {
                     if (s.pipeline_parallel.size > 1) s.fsdp.sync_each_batch = false;
                   }),
    flag<&Strategy::fsdp, &FsdpKeys::limit_all_gathers>(
        "limit_all_gathers", "version 1: the host is at most two layers ahead")
        .when(flat_parameters),
    flag<&Strategy::fsdp, &FsdpKeys::forward_prefetch>(
        "forward_prefetch",
        "the next layer is asked for by name; false: only by the host running ahead"),
    word<&Strategy::fsdp, &FsdpKeys::backward_prefetch>(
        "backward_prefetch", fsdp_prefetch_names,
        "the next layer is gathered before (pre) or after (post) the gradients of this one, or "
        "none is"),
    flag<&Strategy::fsdp, &FsdpKeys::narrow_gather>(
        "narrow_gather",
        "parameters whose products run in 8 bits are cast before they are gathered (float8 "
        "all-gather); of precision fp8-tensorwise")
        .when(multiplies_narrow),
    flag<&Strategy::fsdp, &FsdpKeys::root_group>(
        "root_group", "embedding and head are one group, gathered all the time")
        .otherwise("true in version 1, false in version 2",
                   [](Strategy& s) { s.fsdp.root_group = s.fsdp.version == 1; }),
    flag<&Strategy::fsdp, &FsdpKeys::reshard_root>(
        "reshard_root", "what stands outside the layers is freed between the passes"),
    flag<&Strategy::fsdp, &FsdpKeys::root_experts>(
        "root_experts",
        "experts of all layers are one group, gathered from their first to their last use"),
    flag<&Strategy::fsdp, &FsdpKeys::adapter_units>(
        "adapter_units",
        "each matrix of an adapter is a unit of its own, as peft's wrap policy has it"),
    whole<&Strategy::fsdp, &FsdpKeys::shard>("shard", 1, most_ranks,
                                             "hsdp: GPUs that share one copy")
        .otherwise("ranks / replicate, or those of a node")
        .when(hybrid)
        .example("8"),
    whole<&Strategy::fsdp, &FsdpKeys::replicate>("replicate", 1, most_ranks, "hsdp: copies")
        .otherwise("ranks / shard")
        .when(hybrid)
        .left_out("1"),
};

constexpr std::array tensor_keys{
    whole<&Strategy::tensor_parallel, &TensorParallel::size>(
        "size", 1, most_parts, "neighbouring GPUs that share every layer"),
    flag<&Strategy::tensor_parallel, &TensorParallel::sequence>(
        "sequence",
        "they also share the tokens between blocks, as Megatron's sequence parallelism does"),
    flag<&Strategy::tensor_parallel, &TensorParallel::gathers_logits>(
        "gather_logits", "each GPU computes the loss over the whole vocabulary"),
    flag<&Strategy::tensor_parallel, &TensorParallel::gathers_each>(
        "gather_each", "each product of a block gathers the block's input for itself"),
    flag<&Strategy::tensor_parallel, &TensorParallel::divides_embedding>(
        "divide_embedding", "false: each GPU has the whole table"),
    flag<&Strategy::tensor_parallel, &TensorParallel::divides_head>(
        "divide_head", "false: each GPU has the whole head and computes the whole loss"),
    flag<&Strategy::tensor_parallel, &TensorParallel::in_pieces>(
        "async",
        "pieces of tokens travel during products of others, as PyTorch's compiler does it"),
};

constexpr std::array sequence_keys{
    whole<&Strategy::sequence_parallel, &SequenceParallel::ulysses>(
        "ulysses", 1, most_parts, "GPUs that swap pieces of a sequence for heads around attention"),
    whole<&Strategy::sequence_parallel, &SequenceParallel::ring>(
        "ring", 1, most_parts, "GPUs that pass keys and values round during attention"),
    word<&Strategy::sequence_parallel, &SequenceParallel::slices>(
        "slices", ring_slices_names,
        "of a sequence that a GPU of the ring has. balanced: one from its beginning and one from "
        "its end; contiguous: one, so that all wait for the GPU with the last")
        .when([](const Strategy& s) { return s.sequence_parallel.ring > 1; }),
};

// DeepSpeed's own names, units and defaults.
constexpr std::array zero_keys{
    flag<&Strategy::zero, &ZeroKeys::overlap_comm>("overlap_comm",
                                                   "collectives run during computation")
        .otherwise("true at stage 3, false below",
                   [](Strategy& s) { s.zero.overlap_comm = stage_3(s); }),
    number<&Strategy::zero, &ZeroKeys::reduce_bucket>(
        "reduce_bucket_size", 1, most_elements,
        "gradients are reduced as soon as this many elements wait"),
    number<&Strategy::zero, &ZeroKeys::prefetch_bucket>(
        "stage3_prefetch_bucket_size", 0, most_elements,
        "elements that are gathered ahead of their use")
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::persistence_threshold>(
        "stage3_param_persistence_threshold", 0, most_elements,
        "smaller parameters are never given up; in elements")
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::max_live>("stage3_max_live_parameters", 0, most_elements,
                                                 "elements that are gathered at a time")
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::max_reuse>(
        "stage3_max_reuse_distance", 0, most_elements,
        "a parameter that is used again within this many elements is kept")
        .when(stage_3),
    number<&Strategy::zero, &ZeroKeys::sub_group>(
        "sub_group_size", 0, most_elements,
        "elements that are updated at a time; 0: every tensor is a sub-group of its own")
        .when(stage_3),
    whole<&Strategy::zero, &ZeroKeys::hpz>(
        "zero_hpz_partition_size", 1, most_ranks,
        "GPUs that share a second copy in 16 bits, which the backward pass gathers from; 1: no "
        "such copy")
        .when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::round_robin>(
        "round_robin_gradients",
        "zero: 1 or 2 with offload: neighbours among the tensors belong to different GPUs, so that "
        "all copy a bucket at once; false: one after the other")
        .when(gradients_on_host),
    flag<&Strategy::zero, &ZeroKeys::quantized_weights>("zero_quantized_weights",
                                                        "gathers move 8 bits")
        .when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::quantized_gradients>(
        "zero_quantized_gradients", "reductions are exchanges of 4 bits; only on several nodes")
        .when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::clears_in_sub_groups>(
        "clears_in_sub_groups", "gradients of the whole model are cleared for each sub-group")
        .when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::counts_in_hooks>(
        "counts_in_hooks", "each hook of a gradient counts the tensors that have one"),
    flag<&Strategy::zero, &ZeroKeys::stops_at_fetches>(
        "stops_at_fetches", "the host waits for each gather, and nothing is prefetched or kept")
        .when(stage_3),
    flag<&Strategy::zero, &ZeroKeys::waits_for_reductions>(
        "waits_for_reductions",
        "zero: 1 or 2: the backward pass waits for each reduction, overlap_comm or not"),
    flag<&Strategy::zero, &ZeroKeys::loses_sums>(
        "loses_sums",
        "zero: 1 or 2 with the optimizer on the host: sums of micro-batches but the first and the "
        "last stay on the GPU")
        .when(gradients_on_host),
    flag<&Strategy::zero, &ZeroKeys::leaf_modules>(
        "leaf_modules", "a MoE block is gathered at once, not expert by expert")
        .when(stage_3),
};

constexpr std::array vision_keys{
    flag<&Strategy::vision, &VisionKeys::tower>("train_tower", "the layers that see are trained"),
    flag<&Strategy::vision, &VisionKeys::projector>("train_projector",
                                                    "what makes tokens of patches is trained")};

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
