#include "workloads/strategy/optimizer.hpp"

#include "sim/base/words.hpp"

namespace stepsim {
namespace {

enum class OptimizerPlace : std::uint8_t { cpu, nvme, ratio };
constexpr std::array<std::string_view, 3> place_names{"cpu", "nvme", "ratio"};

Optimizer::Places read_places(const Table& table) {
  using enum OptimizerPlace;
  const auto places =
      read_members<OptimizerPlace>(table, "offload", place_names, table.texts_or("offload"));
  return {.host = holds(places, cpu), .drives = holds(places, nvme), .both = holds(places, ratio)};
}

Optimizer::Counts read_counts(const Table& table) {
  const auto number = [&](std::string_view key) { return table.constant<Ratio>(key).number(); };
  Optimizer::Counts counts{
      .of_lists = {number("one_list"), number("two_lists"), number("three_lists")},
      .passes = number("passes"),
      .passes_of_kernel = number("passes_of_kernel")};
  counts.all_for_lists = table.number_or("held_by_lists", 0, 0, 8);
  counts.all_for_tensor = table.number_or("held_by_tensor", 0, 0, 8);
  return counts;
}

Optimizer::Orthogonal read_orthogonal(const Table& table) {
  const auto number = [&](std::string_view key) { return table.constant<Ratio>(key).number(); };
  return {.iterations = number("iterations"),
          .kernels = number("kernels"),
          .passes = number("passes"),
          .passes_16 = number("passes_16"),
          .iteration_kernels = number("iteration_kernels"),
          .iteration_passes = number("iteration_passes"),
          .gram_passes = number("gram_passes"),
          .applied_kernels = number("applied_kernels"),
          .applied_passes = number("applied_passes")};
}

Optimizer::Orthogonal read_compiled(const Table& table, Optimizer::Orthogonal as_is) {
  const auto number = [&](std::string_view key) { return table.constant<Ratio>(key).number(); };
  as_is.kernels = number("kernels");
  as_is.passes = number("passes");
  as_is.iteration_kernels = number("iteration_kernels");
  as_is.iteration_passes = number("iteration_passes");
  as_is.gram_passes = number("gram_passes");
  return as_is;
}

}  // namespace

bool Optimizer::runs(UpdateKernels which) const {
  return std::find(kernels.begin(), kernels.end(), which) != kernels.end();
}

bool Optimizer::keeps_in(MomentType type) const {
  return std::find(moment_types.begin(), moment_types.end(), type) != moment_types.end();
}

Optimizer read_optimizer(const Table& table) {
  Optimizer optimizer;
  optimizer.name = table.text("name");
  optimizer.title = table.text("title");
  optimizer.smaller = table.text_or("smaller", "");
  optimizer.moments = table.number("moments", 0, 8);
  if (table.has("bytes")) optimizer.bytes = table.constant<Bytes>("bytes").number();
  optimizer.factored = table.flag_or("factored", false);
  optimizer.kernels = read_members<UpdateKernels>(table, "kernels", update_kernels_names,
                                                  table.texts_or("kernels"));
  optimizer.own_launches = table.number_or("launches", 0, 1, 100);
  if (optimizer.own_launches > 0) optimizer.kernels.clear();
  optimizer.counts = read_counts(table);
  optimizer.stops_behind_tensor = table.flag_or("stops_behind_tensor", false);
  if (table.has("operations")) optimizer.operations = table.constant<Ratio>("operations").number();
  if (table.has("moment_types"))
    optimizer.moment_types = read_members<MomentType>(table, "moment_types", moment_type_names,
                                                      table.texts_or("moment_types"));
  optimizer.places = read_places(table);
  if (const auto block = table.table_if("orthogonal")) {
    optimizer.orthogonal = read_orthogonal(*block);
    if (const auto compiled = block->table_if("compiled"))
      optimizer.orthogonal_compiled = read_compiled(*compiled, *optimizer.orthogonal);
  }
  return optimizer;
}

}  // namespace stepsim
