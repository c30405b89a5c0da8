#include "topology/node.hpp"

#include <fmt/format.h>

#include "sim/base/words.hpp"

namespace stepsim {
namespace {

std::optional<PartKind> part_kind(std::string_view word) {
  return member_of<PartKind>(part_names, word);
}

LinkSpec read_link(const Table& table, const Node& node) {
  LinkSpec link;
  link.name = table.text("name");
  const std::vector<std::string> between = table.texts("between");
  if (between.size() != 2) {
    table.problem("between", "expected two parts, such as [gpu, nvswitch]");
  } else {
    for (const std::string& word : between) {
      const auto kind = part_kind(word);
      if (!kind)
        table.problem("between", fmt::format("no part \"{}\"{}; expected {}", word,
                                             did_you_mean(word, texts_of(part_names)),
                                             one_of(texts_of(part_names))));
      else if (node.count(*kind) == 0)
        table.problem("between", fmt::format("this node has no {}", word));
    }
    link.from = part_kind(between[0]).value_or(PartKind::gpu);
    link.to = part_kind(between[1]).value_or(PartKind::gpu);
  }
  link.wiring = table.choice("wiring", {"block", "mesh"}) == "mesh" ? Wiring::mesh : Wiring::block;
  if (link.wiring == Wiring::mesh && link.from != link.to)
    table.problem("wiring", "a mesh joins parts of one kind");
  if (link.wiring == Wiring::block && link.from == link.to)
    table.problem("wiring", "parts of one kind are joined by a mesh");
  link.bandwidth = table.constant<BytesPerSecond>("bandwidth");
  if (table.has("reverse")) link.reverse = table.constant<BytesPerSecond>("reverse");
  if (table.has("total")) link.total = table.constant<BytesPerSecond>("total");
  return link;
}

Host read_host(const Table& table) {
  Host host;
  host.cores = static_cast<int>(table.integer("cores", 1, 100000));
  host.dram_capacity = table.constant<Bytes>("dram_capacity");
  if (table.has("drive_capacity")) host.drive_capacity = table.constant<Bytes>("drive_capacity");
  host.cpu_adam = table.constant<Seconds>("cpu_adam");
  if (table.has("cpu_adam_grace")) host.cpu_adam_grace = table.constant<Seconds>("cpu_adam_grace");
  host.cpu_adam_bytes = table.constant<Ratio>("cpu_adam_bytes");
  if (table.has("core_stream")) host.core_stream = table.constant<BytesPerSecond>("core_stream");
  host.pageable = table.constant<Ratio>("pageable");
  host.copy_start = table.constant<Seconds>("copy_start");
  host.core_speed = table.constant<Ratio>("core_speed");
  return host;
}

}  // namespace

Node read_node(const Table& table) {
  Node node;
  node.name = table.text("name");
  node.title = table.text("title");
  node.gpu = table.text("gpu");
  node.network = table.text_or("network", "");
  node.processors = table.texts_or("processors");
  node.trays = static_cast<std::uint32_t>(table.integer_or("trays", 1, 1, 1 << 10));
  const Table parts = table.table("parts");
  for (std::size_t i = 0; i < part_names.size(); ++i)
    node.parts[i] = static_cast<std::uint32_t>(parts.integer_or(part_names[i], 0, 1, 1024));
  if (node.count(PartKind::gpu) == 0) parts.problem("gpu", "expected at least one GPU");
  for (const Table& entry : table.tables("links")) node.links.push_back(read_link(entry, node));
  node.host = read_host(table.table("host"));
  if (const auto draw = table.table_if("draw"))
    node.draw = {.standing = draw->constant<Watts>("standing"),
                 .cores = draw->constant<Watts>("cores")};
  node.collectives = read_communication(table.table("collectives"));
  return node;
}

}  // namespace stepsim
