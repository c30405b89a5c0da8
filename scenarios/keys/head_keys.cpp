#include "scenarios/keys/head_keys.hpp"

#include "sim/base/number_list.hpp"

namespace stepsim {
namespace {

constexpr std::array head{
    named<Head>("name", "a title").required().example("My run"),
    named<Head>("note", "for the reader of the file").otherwise("none").example("why I ask"),
    named<Head>("family", "rows that `stepsim validate` sums up together")
        .otherwise("from model, method and offload")
        .example("my runs"),
    named<Head>("model",
                "`stepsim list models`, a name of Hugging Face, the path of a config.json, or what "
                "such a file says, right here: {architectures: [LlamaForCausalLM], hidden_size: "
                "4096, ...}")
        .required()
        .example("llama-3.1-8b"),
    named<Head>("stack", "`stepsim list stacks`").required().example("deepspeed-hf"),
    named<Head>("recipe", "what one published source fixes, one or a list: `stepsim list recipes`")
        .otherwise("none")
        .left_out("megatron-swift"),
    named<Head>("releases",
                "which release of a framework runs, whose defaults, losses and kernels then hold: "
                "`stepsim list releases`; `--release trl=0.14` says the same",
                KeyKind::block)
        .otherwise("as the stack says; of a file of another program what lies beside it says")
        .left_out("{trl: 0.14, deepspeed: 0.16.4}"),
    named<Head>("engine", "grpo: `stepsim list engines`").otherwise("vllm").example("vllm"),
    named<Head>("constants",
                "constants of the cluster or the stack by their names, instead of what their "
                "files say",
                KeyKind::block)
        .otherwise("none")
        .left_out("{gpu.gemm.rate: 600 TFLOPS}"),
};

// The name of an entry of the catalogue, which may be left out.
template <std::string ClusterChoice::*member>
constexpr Key<ClusterChoice> entry_name(const KeyFacts& facts) {
  return {.facts = facts,
          .read = [](const Table& table, const KeyFacts& said,
                     ClusterChoice& choice) { choice.*member = table.text_or(said.name, ""); },
          .text = [](const KeyFacts&, const ClusterChoice& choice) { return choice.*member; }};
}

constexpr std::array cluster_keys{
    Key<ClusterChoice>{
        .facts =
            {.name = "node",
             .sentence =
                 "`stepsim list nodes`, a name of `stepsim list clusters`, or a card as people "
                 "call it: h100, A100-80G, RTX 4090, h100:4",
             .required = true,
             .example = "h100-8"},
        .read =
            [](const Table& table, const KeyFacts& facts, ClusterChoice& choice) {
              choice.name =
                  table.has("platform") ? table.text_or(facts.name, "") : table.text(facts.name);
            },
        .text = [](const KeyFacts&, const ClusterChoice& choice) { return choice.name; }},
    entry_name<&ClusterChoice::platform>(
        {.name = "platform",
         .sentence = "instead of node: a platform file of SimGrid, whose hosts name their `gpu` or "
                     "`node` by a property",
         .otherwise = "none"})
        .left_out("cluster.xml"),
    whole<&ClusterChoice::nodes>("nodes", 1, most_nodes, "how many of them")
        .otherwise("1; of a platform all hosts")
        .example("1"),
    entry_name<&ClusterChoice::network>({.name = "network",
                                         .sentence = "`stepsim list networks`",
                                         .otherwise = "the node's or the cluster's own",
                                         .example = "ndr-rail"}),
    Key<ClusterChoice>{
        .facts = {.name = "placement",
                  .sentence = "which nodes of the machine these are, in the order of the ranks",
                  .otherwise = "the first ones"},
        .read =
            [](const Table& table, const KeyFacts& facts, ClusterChoice& choice) {
              choice.placement = table.text_or(facts.name, "");
              if (choice.placement.empty()) return;
              try {
                parse_numbers(facts.name, "nodes", choice.placement);
              } catch (const UserError& error) {
                table.problem(facts.name,
                              std::string_view(error.what()).substr(facts.name.size() + 2));
                choice.placement.clear();
              }
            },
        .text = [](const KeyFacts&, const ClusterChoice& choice) { return choice.placement; }}
        .left_out("0-3,8-11"),
    entry_name<&ClusterChoice::processor>(
        {.name = "processor",
         .sentence = "`stepsim list processors`: its core launches what GPUs do",
         .otherwise = "the first that the node's or the cluster's file names",
         .example = "xeon-8480c"}),
    whole<&ClusterChoice::gpus>("gpus_per_node", 1, 1024, "the first of each node take part")
        .otherwise("all")
        .example("8"),
    whole<&ClusterChoice::cores>("cores", 1, 100000,
                                 "of each host that the job has: what bounds an update there")
        .otherwise("all of the host's")
        .example("16"),
    // Read with the names of the entries, as nodes and gpus_per_node follow from it.
    Key<ClusterChoice>{
        .facts = {.name = "gpus",
                  .sentence = "how many in all; nodes and gpus_per_node follow from it",
                  .kind = KeyKind::whole,
                  .low = 1,
                  .high = 8388608,
                  .otherwise = "all of the nodes"}}
        .left_out("16"),
    named<ClusterChoice>("slow_gpus", "kernels of this rank take 1 / speed as long", KeyKind::list)
        .otherwise("none")
        .left_out("[{rank: 3, speed: 0.8}]"),
    named<ClusterChoice>("slow_links", "share of the bandwidth that the link's file says",
                         KeyKind::list)
        .otherwise("none")
        .left_out("[{link: nvlink.gpu3>nvswitch0, share: 0.5}]"),
    named<ClusterChoice>("events",
                         "while the step runs: link, gpu or nodes from and to; at, for, "
                         "period; share, latency, lost, bytes",
                         KeyKind::list)
        .otherwise("none")
        .left_out("[{gpu: 3, at: 0.2 s, for: 0.1 s, share: 0.5}]"),
};

// Read where the cluster is known.
constexpr std::array vary_keys{
    Key<ClusterChoice>{.facts = {.name = "seed",
                                 .sentence = "of the draw",
                                 .kind = KeyKind::whole,
                                 .low = 0,
                                 .high = 0x1p53,
                                 .otherwise = "1",
                                 .example = "1"}},
};

constexpr std::array cluster_tables{
    Block<ClusterChoice>{"", "", cluster_keys},
    Block<ClusterChoice>{.name = "vary",
                         .sentence = "no two GPUs are equally fast; how much they differ says "
                                     "`variation.gpu_time`; without this block all are alike",
                         .keys = vary_keys,
                         .left_out = true},
};

template <Metric M>
constexpr Key<Observation> figure(std::string_view sentence, std::string_view example) {
  return Key<Observation>{.facts = {.name = spec_of(M).name,
                                    .sentence = sentence,
                                    .kind = KeyKind::figure,
                                    .otherwise = "not said",
                                    .example = example},
                          .read = [](const Table& table, const KeyFacts& facts, Observation& seen) {
                            if (!table.has(facts.name)) return;
                            const auto [low, high] = table.range(facts.name, spec_of(M).dimension);
                            if (low <= 0) table.problem(facts.name, "must be above zero");
                            seen.figures[static_cast<std::size_t>(M)] = Range{low, high};
                          }};
}

template <Metric M>
constexpr Key<Observation> band() {
  return Key<Observation>{.facts = {.name = spec_of(M).name,
                                    .sentence = "as a share of the figure",
                                    .kind = KeyKind::number,
                                    .otherwise = "not said",
                                    .example = "0.1"},
                          .read = [](const Table& table, const KeyFacts& facts, Observation& seen) {
                            if (!table.has(facts.name)) return;
                            constexpr auto i = static_cast<std::size_t>(M);
                            if (!seen.figures[i])
                              table.problem(facts.name, "belongs to no figure of this block");
                            seen.bands[i] = table.range(facts.name, Dimension::ratio).first;
                          }};
}

constexpr std::array verdicts{std::string_view("fits"), std::string_view("oom")};

constexpr std::array seen_keys{
    figure<Metric::step_time>("one optimizer step", "20 s"),
    figure<Metric::wall>("the whole run", "[5 h, 6 h]"),
    figure<Metric::epoch_time>("one epoch", "5.5 h"),
    figure<Metric::iterations_per_second>("micro-batches, as a loop over the data counts them",
                                          "0.4"),
    figure<Metric::tokens_per_second_per_gpu>("without padding", "6200"),
    figure<Metric::memory>("of a GPU, at the peak; GB is 1e9 bytes, GiB is 2^30", "70 GB"),
    figure<Metric::state_memory>("of that parameters, gradients and optimizer", "16 GB"),
    figure<Metric::training_time>("of a GRPO step", ""),
    figure<Metric::sync_time>("of a GRPO step: weights to the engines", ""),
    figure<Metric::energy>("of one optimizer step, by all GPUs, hosts and the network", ""),
    figure<Metric::job_energy>("of the whole run, likewise", ""),
    Key<Observation>{
        .facts = {.name = "memory_counts",
                  .sentence = "allocated: tensors; reserved: what the allocator holds; device: all "
                              "that the device has lost, as nvidia-smi shows it",
                  .kind = KeyKind::word,
                  .words = memory_kind_names,
                  .otherwise = "what is needed, without the context",
                  .example = "device"},
        .read =
            [](const Table& table, const KeyFacts& facts, Observation& seen) {
              if (!table.has(facts.name)) return;
              seen.memory_counts = static_cast<MemoryKind>(detail::word_index(table, facts, 0));
              if (!seen.of(Metric::memory)) table.problem(facts.name, "of which memory?");
            }},
    Key<Observation>{.facts = {.name = "verdict",
                               .sentence = "whether the run fitted, or ran out of memory",
                               .kind = KeyKind::word,
                               .words = verdicts,
                               .otherwise = "not said",
                               .example = "fits"},
                     .read =
                         [](const Table& table, const KeyFacts& facts, Observation& seen) {
                           if (table.has(facts.name))
                             seen.fits = detail::word_index(table, facts, 1) == 0;
                         }},
    Key<Observation>{.facts = {.name = "source",
                               .sentence = "where the figures come from",
                               .required = true,
                               .example = "a log of mine"},
                     .read = [](const Table& table, const KeyFacts& facts,
                                Observation& seen) { seen.source = table.text(facts.name); }},
    Key<Observation>{.facts = {.name = "note",
                               .sentence = "what a reader should know",
                               .otherwise = "none",
                               .example = "none"},
                     .read = [](const Table& table, const KeyFacts& facts,
                                Observation& seen) { seen.note = table.text_or(facts.name, ""); }},
};

constexpr std::array band_keys{band<Metric::step_time>(),
                               band<Metric::wall>(),
                               band<Metric::epoch_time>(),
                               band<Metric::iterations_per_second>(),
                               band<Metric::tokens_per_second_per_gpu>(),
                               band<Metric::memory>(),
                               band<Metric::state_memory>(),
                               band<Metric::training_time>(),
                               band<Metric::sync_time>(),
                               band<Metric::energy>(),
                               band<Metric::job_energy>()};

constexpr std::array observation_tables{
    Block<Observation>{"", "", seen_keys},
    Block<Observation>{.name = "bands",
                       .sentence = "the error that a prediction may have",
                       .keys = band_keys,
                       .left_out = true},
};

}  // namespace

std::span<const Key<Head>> head_keys() {
  return head;
}

std::span<const Block<ClusterChoice>> cluster_blocks() {
  return cluster_tables;
}

std::span<const Block<Observation>> observation_blocks() {
  return observation_tables;
}

}  // namespace stepsim
