#include "scenarios/keys/key_tables.hpp"
#include "sim/base/number_list.hpp"

namespace stepsim {
namespace {

constexpr std::array head{
    named<Head>("name").required(),
    named<Head>("note"),
    named<Head>("family"),
    named<Head>("model").required(),
    named<Head>("stack").required(),
    named<Head>("recipe"),
    named<Head>("releases", KeyKind::block),
    named<Head>("engine"),
    named<Head>("constants", KeyKind::block),
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
        .facts = {.name = "node", .required = true},
        .read =
            [](const Table& table, const KeyFacts& facts, ClusterChoice& choice) {
              choice.name =
                  table.has("platform") ? table.text_or(facts.name, "") : table.text(facts.name);
            },
        .text = [](const KeyFacts&, const ClusterChoice& choice) { return choice.name; }},
    entry_name<&ClusterChoice::platform>({.name = "platform"}),
    whole<&ClusterChoice::nodes>("nodes", 1, most_nodes),
    entry_name<&ClusterChoice::network>({.name = "network"}),
    Key<ClusterChoice>{
        .facts = {.name = "placement"},
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
        .text = [](const KeyFacts&, const ClusterChoice& choice) { return choice.placement; }},
    entry_name<&ClusterChoice::processor>({.name = "processor"}),
    whole<&ClusterChoice::gpus>("gpus_per_node", 1, 1024),
    whole<&ClusterChoice::cores>("cores", 1, 100000),
    // Read with the names of the entries, as nodes and gpus_per_node follow from it.
    Key<ClusterChoice>{
        .facts = {.name = "gpus", .kind = KeyKind::whole, .low = 1, .high = 8388608}},
    named<ClusterChoice>("slow_gpus", KeyKind::list),
    named<ClusterChoice>("slow_links", KeyKind::list),
    named<ClusterChoice>("events", KeyKind::list),
};

// Read where the cluster is known.
constexpr std::array vary_keys{
    Key<ClusterChoice>{.facts = {.name = "seed", .kind = KeyKind::whole, .low = 0, .high = 0x1p53}},
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
constexpr Key<Observation> figure() {
  return Key<Observation>{.facts = {.name = spec_of(M).name, .kind = KeyKind::figure},
                          .read = [](const Table& table, const KeyFacts& facts, Observation& seen) {
                            if (!table.has(facts.name)) return;
                            const auto [low, high] = table.range(facts.name, spec_of(M).dimension);
                            if (low <= 0) table.problem(facts.name, "must be above zero");
                            seen.figures[static_cast<std::size_t>(M)] = Range{low, high};
                          }};
}

template <Metric M>
constexpr Key<Observation> band() {
  return Key<Observation>{.facts = {.name = spec_of(M).name, .kind = KeyKind::number},
                          .read = [](const Table& table, const KeyFacts& facts, Observation& seen) {
                            if (!table.has(facts.name)) return;
                            constexpr auto i = static_cast<std::size_t>(M);
                            if (!seen.figures[i])
                              table.problem(facts.name, "belongs to no figure of this block");
                            seen.bands[i] = table.range(facts.name, Dimension::ratio).first;
                          }};
}

constexpr std::array verdicts{std::string_view("fits"), std::string_view("oom")};

// Each metric has a figure and a band of its own, in the order of the enumeration.
template <std::size_t... M>
constexpr std::array<Key<Observation>, sizeof...(M)> figures(std::index_sequence<M...>) {
  return {figure<static_cast<Metric>(M)>()...};
}
template <std::size_t... M>
constexpr std::array<Key<Observation>, sizeof...(M)> bands(std::index_sequence<M...>) {
  return {band<static_cast<Metric>(M)>()...};
}
constexpr std::make_index_sequence<metric_specs.size()> all_metrics{};

constexpr std::array seen_keys = joined_keys(
    figures(all_metrics),
    std::array{
        Key<Observation>{
            .facts = {.name = "memory_counts", .kind = KeyKind::word, .words = memory_kind_names},
            .read =
                [](const Table& table, const KeyFacts& facts, Observation& seen) {
                  if (!table.has(facts.name)) return;
                  seen.memory_counts = static_cast<MemoryKind>(detail::word_index(table, facts, 0));
                  if (!seen.of(Metric::memory)) table.problem(facts.name, "of which memory?");
                }},
        Key<Observation>{.facts = {.name = "verdict", .kind = KeyKind::word, .words = verdicts},
                         .read =
                             [](const Table& table, const KeyFacts& facts, Observation& seen) {
                               if (table.has(facts.name))
                                 seen.fits = detail::word_index(table, facts, 1) == 0;
                             }},
        Key<Observation>{.facts = {.name = "source", .required = true},
                         .read = [](const Table& table, const KeyFacts& facts,
                                    Observation& seen) { seen.source = table.text(facts.name); }},
        Key<Observation>{
            .facts = {.name = "note"},
            .read = [](const Table& table, const KeyFacts& facts,
                       Observation& seen) { seen.note = table.text_or(facts.name, ""); }},
    });

constexpr std::array band_keys = bands(all_metrics);

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
