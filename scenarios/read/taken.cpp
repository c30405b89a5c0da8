#include "scenarios/read/taken.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "scenarios/read/releases.hpp"
#include "sim/base/lists.hpp"
#include "workloads/model/parts.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

constexpr std::array<std::string_view, attention_names.size()> attention_words{
    "FlashAttention",       "FlashAttention-3", "SDPA (flash)",   "SDPA (efficient, with a mask)",
    "SDPA (math, in fp32)", "FlexAttention",    "eager attention"};
constexpr std::array<std::string_view, cross_entropy_names.size()> loss_words{
    "loss over an fp32 copy of all logits",
    "loss over bf16 logits",
    "loss over fp32 logits",
    "loss in one kernel over bf16 logits",
    "loss in one kernel over an fp32 copy of the logits",
    "loss in one kernel in place of the logits",
    "loss fused with the head",
    "loss word by word, no logits",
    "loss in chunks of bf16 logits",
    "loss chunk by chunk with the head"};
constexpr std::array<std::string_view, checkpointing_names.size()> checkpointing_words{
    "no checkpointing", "selective checkpointing", "operator checkpointing", "full checkpointing"};
constexpr std::array<std::string_view, offload_names.size()> places{"GPU", "CPU", "NVMe"};

template <class Names, class Value>
std::string_view word_of(const Names& names, Value value) {
  return names[static_cast<std::size_t>(value)];
}

// Returns what stands before the first comma of a title.
std::string short_title(const std::string& title, const std::string& name) {
  return title.empty() ? name : title.substr(0, title.find(','));
}

bool is_expert(Role role) {
  return role == Role::expert_gate || role == Role::expert_up || role == Role::expert_gate_up ||
         role == Role::expert_down || role == Role::experts;
}

// Counts the matrices of a layer that adapters stand beside, each name once.
std::size_t matrices_with_adapters(const Model& model, const Lora& lora, bool shared) {
  std::vector<std::string> names;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const Part& part : layer_parts(model, layer)) {
      const bool attention = in_attention(part.role) || in_mixer(part.role);
      if (part.in == 0 || part.role == Role::router || !lora.chooses(part.name) ||
          holds(names, part.name) || (lora.targets == LoraTargets::attention && !attention) ||
          (lora.targets != LoraTargets::all && is_expert(part.role)) ||
          (in_shared_expert(part.role) && !shared))
        continue;
      names.push_back(part.name);
    }
  return names.size();
}

class Words {
 public:
  explicit Words(const Scenario& scenario) : s_(scenario), keys_(resolved_keys(scenario)) {}

  std::vector<Taken> all() {
    const auto part = [&](std::string_view key, std::string_view meaning, std::string text) {
      parts_.push_back({key, meaning, std::move(text)});
    };
    part("method", "what trains", method());
    part("batch", "rows of an optimizer step, and their length", s_.grpo ? answers() : batch());
    part("precision", "of weights, gradients and states", precision());
    part("optimizer", "and where its states are", optimizer());
    part("sharding", "how GPUs share the work", sharding());
    part("checkpointing", "what the backward pass computes again", checkpointing());
    part("attention", "its kernel", attention());
    part("loss", "how it is computed", loss());
    part("release", "of the framework, as far as it is described", release());
    return std::move(parts_);
  }

  std::vector<std::string> unsaid() {
    all();
    return std::move(unsaid_);
  }

 private:
  bool open(std::string_view path) {
    if (path.empty()) return false;
    const auto key =
        std::ranges::find_if(keys_, [&](const ResolvedKey& each) { return each.path() == path; });
    if (key == keys_.end() || !(is_nobodys(*key) || is_uncertain(path))) return false;
    if (!holds(unsaid_, path)) unsaid_.emplace_back(path);
    return true;
  }
  // A value with a range was assumed, whoever wrote it down.
  bool is_uncertain(std::string_view path) const {
    return holds(s_.constants, fmt::format("scenario.{}", path), &NamedConstant::name);
  }
  std::string marked(const std::string& text, std::string_view path) {
    return open(path) ? text + std::string(nobodys_mark) : text;
  }

  // A sample of a result has a cluster without GPUs.
  Mesh mesh() const { return s_.cluster.ranks() == 0 ? Mesh{} : mesh_of(s_.strategy, s_.cluster); }

  std::string trained() {
    const Lora& lora = s_.strategy.lora;
    if (lora.rank == 0) return "full training";
    const std::string& title = lora.method.title;
    const std::string format = lora.quantised.name.substr(0, lora.quantised.name.find('_'));
    const bool four_bits = format == "nf4" || format == "fp4";
    std::string name = lora.method.name == "lora" ? "LoRA" : title.substr(0, title.find(" ("));
    if (four_bits && name == "LoRA")
      name = "QLoRA " + format;
    else if (lora.quantised.packs())
      name += " beside weights in " + format;
    const std::size_t count = matrices_with_adapters(s_.model, lora, s_.stack.adapters.shared);
    const bool said =
        lora.modules.empty() ? open("strategy.lora.targets") : open("strategy.lora.modules");
    return fmt::format("{}, {} on {} matri{}{}", name,
                       marked(fmt::format("rank {}", lora.rank), "strategy.lora.rank"), count,
                       count == 1 ? "x" : "ces", said ? nobodys_mark : "");
  }

  // What is trained that writes no answers.
  std::string task() {
    const Job& job = s_.job;
    if (job.method == Method::reward) return "a reward model (pairs)";
    if (job.method == Method::mlm) return "masked words";
    if (job.method == Method::embed)
      return fmt::format("embeddings of {} an example{}",
                         marked(fmt::format("{} texts", job.texts), "job.texts"),
                         job.cached_loss ? ", a cached loss" : "");
    return fmt::format("a classifier of {} ({})",
                       job.method == Method::classify ? "texts" : "tokens",
                       marked(fmt::format("{} labels", job.labels), "job.labels"));
  }

  std::string method() {
    const Job& job = s_.job;
    if (s_.grpo) return (s_.grpo->critic ? "PPO, " : "GRPO, ") + trained();
    if (job.only_update) return "an update alone, " + trained();
    if (job.method == Method::sft) return trained();
    if (!job.compares_answers()) return fmt::format("{}, {}", task(), trained());
    return fmt::format("{}, {}{}", job.has_pairs() ? "pairs (DPO)" : "KTO", trained(),
                       job.has_reference() ? ", with a reference model" : "");
  }

  std::string gpus(std::string_view what = "GPU") {
    const auto ranks = s_.cluster.ranks();
    const bool open_count = open("cluster.node");
    return fmt::format("{} {}{}{}", ranks, what, ranks == 1 ? "" : "s",
                       open_count ? nobodys_mark : "");
  }

  std::string batch() {
    const Job& job = s_.job;
    const std::int64_t data = mesh().data();
    const std::string_view what = job.has_pairs() ? "pair" : "row";
    std::string text =
        marked(fmt::format("{} {}{}", job.micro_batch, what, job.micro_batch == 1 ? "" : "s"),
               "job.micro_batch");
    text += " x " + marked(fmt::format("{}", job.accumulation),
                           job.global_batch > 0 ? "" : "job.gradient_accumulation");
    text += " x " + (data == s_.cluster.ranks() ? gpus() : fmt::format("{} of {}", data, gpus()));
    text += " of " + marked(fmt::format("{} tokens", job.sequence), "job.sequence");
    if (job.packed) text += marked(" packed", "job.packing");
    if (job.documents.mean > 0) return text + fmt::format(", {:.4g} each", job.documents.mean);
    const std::string full =
        job.fill >= 1 ? "all full" : fmt::format("{:.0f} % full", 100 * job.fill);
    return text + ", " + marked(full, "job.fill");
  }

  std::string answers() {
    const std::string engine =
        s_.engine && s_.engine->own_weights ? fmt::format(", answers by {}", s_.engine->title) : "";
    return fmt::format("{} prompts x {} responses of {} tokens at most, {}{}", s_.grpo->prompts,
                       s_.grpo->samples, s_.grpo->response_limit, gpus(), engine);
  }

  std::string precision() {
    const Strategy& s = s_.strategy;
    // Readers of other programs put what is not bf16, the type that nearly all train in.
    std::string text = marked(short_title(s.precision.title, s.precision.name),
                              s.precision.type == ProductType::bf16 ? "" : "strategy.precision");
    const bool adapters = s.lora.rank > 0;
    if (adapters && s.lora.frozen == LoraFrozen::fp32)
      text += marked(", frozen weights fp32", "strategy.lora.frozen");
    if (!s.precision.whole())
      text +=
          marked(s.master_weights ? adapters ? ", adapters fp32" : ", fp32 copy" : ", no fp32 copy",
                 "strategy.master_weights");
    if (s.gradients == GradientType::fp32)
      text += marked(", gradients fp32", "strategy.gradient_dtype");
    if (s.moments == MomentType::bf16) text += marked(", moments bf16", "strategy.moment_dtype");
    return text;
  }

  std::string optimizer() {
    const Strategy& s = s_.strategy;
    std::string text =
        marked(short_title(s.optimizer.title, s.optimizer.name), "strategy.optimizer");
    if (s.optimizer_place != Offload::none)
      text += fmt::format(" on the {}", word_of(places, s.optimizer_place));
    return text;
  }

  std::string sharding() {
    const Strategy& s = s_.strategy;
    const bool alone = mesh().data() == 1;
    std::string text;
    switch (s.sharding) {
      case Sharding::zero0:
        text = alone ? "nothing sharded" : "each GPU has everything";
        break;
      case Sharding::zero1:
        text = s.distributed.used ? "distributed optimizer" : "ZeRO-1";
        break;
      case Sharding::zero2:
        text = "ZeRO-2";
        break;
      case Sharding::zero3:
        text = "ZeRO-3";
        break;
      case Sharding::fsdp:
        text = fmt::format("FSDP{}", s.fsdp.version);
        break;
      case Sharding::hsdp:
        text = fmt::format("HSDP (FSDP{})", s.fsdp.version);
        break;
    }
    text = marked(text, "strategy.zero");
    if (s.zero.hpz > 1) text += fmt::format(", hpZ {}", s.zero.hpz);
    if (s.parameter_place != Offload::none)
      text += fmt::format(", parameters on the {}", word_of(places, s.parameter_place));
    if (const std::string groups = to_text(mesh()); !groups.empty()) text += ", " + groups;
    return text;
  }

  std::string checkpointing() {
    const Strategy& s = s_.strategy;
    std::string text(word_of(checkpointing_words, s.checkpointing));
    if (s.checkpointing != Checkpointing::none && s.checkpoint_every > 1)
      text += fmt::format(" of one layer in {:.3g}", s.checkpoint_every);
    text = marked(text, "strategy.checkpointing");
    if (s.activation_place != Offload::none) text += ", activations on the CPU";
    if (s.compiled) text += ", torch.compile";
    return text;
  }

  std::string attention() {
    return marked(
        std::string(word_of(attention_words, s_.strategy.attention.value_or(s_.stack.attention))),
        "strategy.attention");
  }

  std::string loss() {
    const Job& job = s_.job;
    if (job.method == Method::embed)
      return fmt::format("each text against all others of the {}",
                         job.cached_loss ? "step" : "micro-batch");
    if (job.method == Method::reward) return "loss over the two numbers of a pair";
    if (job.has_labels()) return fmt::format("loss over {} labels", job.labels);
    return marked(std::string(word_of(loss_words,
                                      s_.strategy.cross_entropy.value_or(s_.stack.cross_entropy))),
                  "strategy.cross_entropy");
  }

  std::string release() {
    const std::string stack = marked(short_title(s_.stack.title, s_.stack.name), "stack");
    const std::string releases = releases_text(s_.data, s_);
    return releases.empty() ? stack : stack + ", " + releases;
  }

  const Scenario& s_;
  std::vector<ResolvedKey> keys_;
  std::vector<Taken> parts_;
  std::vector<std::string> unsaid_;
};

}  // namespace

bool is_nobodys(const ResolvedKey& key) {
  const std::string& source = key.origin.source;
  return !key.said || source == "taken" || source.find(": no ") != std::string::npos;
}

std::vector<Taken> taken_of(const Scenario& scenario) {
  return Words(scenario).all();
}

std::vector<std::string> unsaid_keys(const Scenario& scenario) {
  return Words(scenario).unsaid();
}

std::string taken_line(const std::vector<Taken>& parts) {
  std::string text = fmt::format(
      "{}", fmt::join(mapped(parts, [](const Taken& part) { return part.text; }), "; "));
  if (text.find(nobodys_mark) != std::string::npos)
    text += fmt::format(" ({} no file says it)", nobodys_mark);
  return text;
}

}  // namespace stepsim
