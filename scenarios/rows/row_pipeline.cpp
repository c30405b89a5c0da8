// This writes how a row spread its layers over pipeline stages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

using Layers = std::vector<std::int64_t>;

// Longer words first: one may be the beginning of another.
struct NamedSchedule {
  std::string_view word;
  PipelineSchedule schedule;
};
constexpr std::array named_schedules{NamedSchedule{"gpipe", PipelineSchedule::gpipe},
                                     NamedSchedule{"dualpipev", PipelineSchedule::dualpipe_v},
                                     NamedSchedule{"dualpipe", PipelineSchedule::dualpipe},
                                     NamedSchedule{"v-half", PipelineSchedule::v_half},
                                     NamedSchedule{"v-min", PipelineSchedule::v_min},
                                     NamedSchedule{"zbv", PipelineSchedule::zbv},
                                     NamedSchedule{"zb-h1", PipelineSchedule::zb_h1},
                                     NamedSchedule{"zb1p", PipelineSchedule::zb_h1},
                                     NamedSchedule{"zero bubble", PipelineSchedule::zb_h1},
                                     NamedSchedule{"zero-bubble", PipelineSchedule::zb_h1}};

std::optional<PipelineSchedule> schedule_in(const std::string& words) {
  for (const auto& [word, schedule] : named_schedules)
    if (contains(words, word)) return schedule;
  return std::nullopt;
}

// Returns the number behind the words: "last stage 13 layers".
std::optional<std::int64_t> layers_in(std::string_view notes, std::string_view mark) {
  const std::size_t place = notes.find(mark);
  if (place == std::string_view::npos) return {};
  std::int64_t layers = 0;
  const std::string_view digits = notes.substr(place + mark.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), layers);
  return layers;
}

// Deals layers out evenly, one more for each of the first few.
Layers dealt_out(std::int64_t layers, std::int64_t pieces) {
  Layers each(static_cast<std::size_t>(pieces), layers / pieces);
  for (std::int64_t i = 0; i < layers % pieces; ++i) ++each[static_cast<std::size_t>(i)];
  return each;
}

// Returns no layers where all pieces are alike. Embedding and head can count as a layer each.
Layers layers_of(const StepRow& row, std::int64_t pieces, RowScenario& made) {
  const auto layers = static_cast<std::int64_t>(row.layers.value_or(0));
  const std::string notes = in_small_letters(row.notes);
  if (layers <= 0 || layers % pieces == 0) return {};
  if (const auto last = layers_in(notes, "last stage "); last && *last > 0 && *last < layers) {
    Layers each = dealt_out(layers - *last, pieces - 1);
    each.push_back(*last);
    return each;
  }
  if ((layers + 2) % pieces == 0) {
    made.assume("embedding and head in the place of a layer each");
    Layers each(static_cast<std::size_t>(pieces), (layers + 2) / pieces);
    --each.front(), --each.back();
    return each;
  }
  made.assume("as many layers on the last stages as on the first, or one less");
  return dealt_out(layers, pieces);
}

}  // namespace

void write_pipeline(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  const auto size = static_cast<std::int64_t>(row.pipeline.value_or(1));
  if (size <= 1) return;
  const double wanted = static_cast<double>(size) * std::max(1.0, row.interleave.value_or(1));
  if (row.layers && wanted > *row.layers + 2) {  // embedding and head may be pieces, too
    made.lack(fmt::format("a layer for each of {:.0f} pieces of the model", wanted));
    return;
  }
  const std::string words = in_small_letters(row.strategy);
  const std::optional<PipelineSchedule> schedule = schedule_in(words);
  if (contains(words, "schedule") && !contains(words, "1f1b") && !schedule)
    made.lack(fmt::format("the schedule of \"{}\"", row.strategy));
  made.set("strategy.pipeline_parallel.size", static_cast<double>(size));
  if (schedule) made.set("strategy.pipeline_parallel.schedule", std::string(to_text(*schedule)));
  // The way in which a recipe cuts the layers goes before what their number suggests.
  const Document resolved = made.resolved(catalog);
  if (resolved.peek("strategy.pipeline_parallel.virtual_stages")) return;
  const bool folds = schedule && way_of(*schedule) == PipelineWay::there_and_back;
  const bool one_piece =
      schedule == PipelineSchedule::gpipe || schedule == PipelineSchedule::dualpipe;
  std::int64_t pieces = 1;
  if (!one_piece)
    pieces = folds ? 2 : static_cast<std::int64_t>(std::max(1.0, row.interleave.value_or(1)));
  const double each = row.layers.value_or(0) / static_cast<double>(size);
  if (!row.interleave && !schedule && contains(words, "interleav")) {
    const std::int64_t usual = known_of(catalog.vocabularies, made.stack).interleaves;
    if (usual > 0) made.assume(fmt::format("interleaved, {} pieces a stage", usual));
    if (usual == 0 && each == std::floor(each)) made.assume("interleaved layer by layer");
    pieces = usual > 0 ? usual : each == std::floor(each) ? static_cast<std::int64_t>(each) : 1;
  }
  if (pieces > 1) {
    if (!schedule) made.set("strategy.pipeline_parallel.schedule", "interleaved");
    made.set("strategy.pipeline_parallel.virtual_stages", static_cast<double>(pieces));
  }
  if (const Layers layers = layers_of(row, size * pieces, made); !layers.empty())
    made.set("strategy.pipeline_parallel.layers", fmt::format("[{}]", fmt::join(layers, ", ")));
}

}  // namespace stepsim
