#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/write/foreign_lines.hpp"
#include "scenarios/foreign/write/writers.hpp"
#include "sim/base/error.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

// Returns whether it is the model of the catalogue, by whatever name.
bool is_the_model(const Catalogue& data, const Model& model, const std::string& known) {
  if (model.name == known) return true;
  Model other = load_model(data, known);
  other.name = model.name;
  other.architecture = model.architecture;
  other.stored_as = model.stored_as;
  other.longest_sequence = model.longest_sequence;
  return other == model;
}

// A model without a name would be the smallest of all there: TorchTitan's own default.
void say_torchtitan_model(ForeignLines& lines, const Catalogue& data) {
  const Table models = lines.facts().table("flavours");
  const Model& model = lines.scenario().model;
  std::vector<std::string> there;
  for (const std::string& name : models.keys())
    for (const std::string& flavour : models.table(name).keys()) {
      there.push_back(models.table(name).text(flavour));
      if (!is_the_model(data, model, there.back())) continue;
      lines.say("model.name", name);
      return lines.say("model.flavor", flavour);
    }
  throw UserError(fmt::format("--as torchtitan: no model of TorchTitan is {}{}; it has {}",
                              model.name, did_you_mean(model.name, there), fmt::join(there, ", ")));
}

void say_torchtitan_batch(ForeignLines& lines, const Mesh& mesh) {
  const Job& job = lines.scenario().job;
  const std::int64_t data = mesh.data();
  if (mesh.stages > 1) {
    lines.say("training.local_batch_size", job.micro_batch * job.accumulation);
    lines.say("parallelism.pipeline_parallel_microbatch_size", job.micro_batch);
    return;
  }
  lines.say("training.local_batch_size", job.micro_batch);
  if (job.accumulation > 1)
    lines.say("training.global_batch_size", job.micro_batch * job.accumulation * data);
}

void say_sharding(ForeignLines& lines, const Mesh& mesh) {
  const bool whole = lines.is("strategy.zero", "0"), copies = lines.is("strategy.zero", "hsdp");
  const std::int64_t replicas = copies ? mesh.replicas : whole ? mesh.data() : 1;
  lines.say("parallelism.data_parallel_replicate_degree", replicas);
  lines.say("parallelism.data_parallel_shard_degree", std::int64_t{whole ? 1 : -1});
  if (const std::string freed = lines.value("strategy.fsdp.reshard_after_forward"); !freed.empty())
    lines.say("parallelism.fsdp_reshard_after_forward", freed == "true" ? "always" : "never");
  const bool bare = lines.is("strategy.master_weights", "false");
  const bool wide = lines.scenario().strategy.precision.whole();
  lines.say("training.dtype", bare && !wide ? "bfloat16" : "float32");
  if (wide) lines.say("training.mixed_precision_param", "float32");
}

void say_converter(ForeignLines& lines) {
  const std::string recipe = lines.precision();
  if (recipe.empty()) return;
  const bool mx = recipe.starts_with("mx");
  lines.say("model.converters", mx ? "[\"mx\"]" : "[\"float8\"]");
  lines.say(mx ? "mx.recipe_name" : "float8.recipe_name", recipe);
  if (lines.is("strategy.fsdp.narrow_gather", "true"))
    lines.say("float8.enable_fsdp_float8_all_gather", true);
}

void say_checkpointing(ForeignLines& lines) {
  const std::string kind = lines.value("strategy.checkpointing");
  const double every = lines.number("strategy.checkpoint_every");
  if (kind == "operators" || (kind == "full" && every > 1)) {
    lines.say("activation_checkpoint.mode", "selective");
    lines.say("activation_checkpoint.selective_ac_option",
              kind == "operators" ? "op" : lines.value("strategy.checkpoint_every"));
  } else {
    lines.say("activation_checkpoint.mode", kind == "full" ? "full" : "none");
  }
}

void say_stages(ForeignLines& lines, const Mesh& mesh) {
  if (mesh.stages < 2) return;
  const PipelineParallel& pipeline = lines.scenario().strategy.pipeline_parallel;
  const Table schedules = lines.facts().table("schedules");
  for (const std::string& name : schedules.keys())
    if (lines.is("strategy.pipeline_parallel.schedule", schedules.text(name)))
      lines.say("parallelism.pipeline_parallel_schedule", name);
  const std::int64_t pieces = mesh.stages * std::max<std::int64_t>(1, pipeline.virtual_stages);
  if (!lines.value("strategy.pipeline_parallel.layers").empty()) return;
  lines.say("parallelism.pipeline_parallel_first_stage_less_layers", std::int64_t{0});
  lines.say("parallelism.pipeline_parallel_last_stage_less_layers", std::int64_t{0});
  lines.say("parallelism.pipeline_parallel_layers_per_stage",
            lines.scenario().model.layers / pieces);
}

void say_torchtitan_saves(ForeignLines& lines) {
  const double every = lines.number("job.save.every");
  lines.say("checkpoint.enable", every > 0);
  if (every > 0) lines.say("checkpoint.interval", lines.value("job.save.every"));
}

}  // namespace

std::string torchtitan_text(const Catalogue& data, const Scenario& scenario) {
  ForeignLines lines(data, scenario, "programs/torchtitan/torchtitan");
  const Mesh mesh = mesh_of(scenario.strategy, scenario.cluster);
  say_torchtitan_model(lines, data);
  say_torchtitan_batch(lines, mesh);
  say_sharding(lines, mesh);
  say_converter(lines);
  say_checkpointing(lines);
  lines.say("compile.enable", lines.is("strategy.compile", "true"));
  say_stages(lines, mesh);
  say_torchtitan_saves(lines);
  lines.say_mapped();
  return toml_text(lines);
}

}  // namespace stepsim
