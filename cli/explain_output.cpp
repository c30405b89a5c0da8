#include "cli/explain_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/json.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string signed_text(Seconds value) {
  const std::string size = to_text(Seconds{std::abs(value.value)});
  return value.value < 0 ? "-" + size : value.value > 0 ? "+" + size : size;
}

// Rows beneath a thousandth of the gap and of both steps say nothing.
bool matters(const Explanation& e, const ExplainRow& row) {
  const double size =
      std::max(std::abs(e.gap().value), 1e-3 * std::max(e.a.step_time.value, e.b.step_time.value));
  return std::abs(row.seconds.value) >= 1e-2 * size;
}

std::string head(const Explanation& e) {
  std::string text;
  if (e.at_limit && e.at_limit->flips) text += at_limit_text(e) + "\n\n";
  TextTable table{{"", "step", "tok/s/GPU", "memory", "scenario"},
                  {Align::left, Align::right, Align::right, Align::right, Align::left},
                  {}};
  for (const auto& [name, side] : {std::pair{"A", &e.a}, std::pair{"B", &e.b}})
    table.rows.push_back({name, to_text(side->step_time),
                          fmt::format("{:.0f}", side->tokens_per_second_per_gpu),
                          fmt::format("{:.0f} %", 100 * side->needed / side->capacity),
                          fmt::format("{} ({})", side->title, side->label)});
  text += render(table) + "\n";
  if (e.gap().value == 0) return text + "both take the same\n";
  const bool slower = e.gap().value > 0;
  return text + fmt::format("A takes {} {} than B: {:.2f} times as long\n",
                            to_text(Seconds{std::abs(e.gap().value)}), slower ? "longer" : "less",
                            e.a.step_time / e.b.step_time);
}

std::string signed_range(const Range& range) {
  return fmt::format("{} to {}", signed_text({range.low}), signed_text({range.high}));
}

std::string time_cell(const ExplainedSide& side, Cause cause, bool active) {
  const CauseTime& time = side.causes[index(cause)];
  return active ? fmt::format("{} + {}", to_text(time.exposed), to_text(time.hidden)) : "-";
}

// A cause of one side only is marked with it.
std::string only_in(const ExplainRow& row, std::string_view a, std::string_view b) {
  return std::string(row.in_a && row.in_b ? "" : row.in_a ? a : b);
}

TextTable gap_table(const Explanation& e) {
  const bool drawn = !e.a.attribution.exact || !e.b.attribution.exact;
  TextTable table{{"cause", "of the gap", "share"}, {Align::left, Align::right, Align::right}, {}};
  if (drawn) table.header.emplace_back("std. error"), table.align.push_back(Align::right);
  if (e.draws) table.header.emplace_back("8 of 10 draws"), table.align.push_back(Align::right);
  for (const char* name : {"A: exposed + hidden", "B: exposed + hidden", "only in"}) {
    table.header.emplace_back(name);
    table.align.push_back(name[0] == 'o' ? Align::left : Align::right);
  }
  const auto share = [&](Seconds seconds) {
    return e.gap().value == 0 ? std::string("-") : percent(seconds / e.gap());
  };
  for (const ExplainRow& row : e.rows) {
    std::vector<std::string> cells{std::string(to_text(row.cause)), signed_text(row.seconds),
                                   share(row.seconds)};
    if (drawn) cells.push_back(to_text(row.standard_error));
    if (e.draws) cells.push_back(signed_range(*row.range));
    cells.push_back(time_cell(e.a, row.cause, row.in_a));
    cells.push_back(time_cell(e.b, row.cause, row.in_b));
    cells.push_back(only_in(row, "A", "B"));
    table.rows.push_back(std::move(cells));
  }
  if (e.residual.value != 0)
    table.rows.push_back({"residual", signed_text(e.residual), share(e.residual)});
  table.rows.push_back({"gap", signed_text(e.gap()), share(e.gap())});
  if (e.draws) {
    if (drawn) table.rows.back().emplace_back();
    table.rows.back().push_back(signed_range(e.draws->gap));
  }
  for (auto& cells : table.rows) cells.resize(table.header.size());
  return table;
}

std::string constant_text(const NamedConstant& c) {
  if (c.grade == Grade::given) return fmt::format("{} {} (given)", c.name, value_text(c, c.value));
  return fmt::format("{} {} ({}, {} to {})", c.name, value_text(c, c.value), to_text(c.grade),
                     value_text(c, c.low), value_text(c, c.high));
}

std::string draws_part(const Explanation& e) {
  if (!e.draws) return "";
  const GapDraws& draws = *e.draws;
  std::string text = "\n" + wrap(draws_text(e), 110, 0) + "\n\n";
  TextTable sides{{"8 of 10 draws", "step", "tok/s/GPU", "memory"},
                  {Align::left, Align::right, Align::right, Align::right},
                  {}};
  for (const auto& [name, side] : {std::pair{"A", &draws.a}, std::pair{"B", &draws.b}})
    sides.rows.push_back(
        {name,
         fmt::format("{} to {}", to_text(Seconds{side->step_time.low}),
                     to_text(Seconds{side->step_time.high})),
         fmt::format("{:.0f} to {:.0f}", side->throughput.low, side->throughput.high),
         fmt::format("{} to {}", to_text(Bytes{side->memory.low}),
                     to_text(Bytes{side->memory.high}))});
  text += render(sides);
  if (draws.movers.empty()) return text;
  TextTable movers{
      {"the gap is moved most by", "stated", "from", "to", "grade", "gap"},
      {Align::left, Align::right, Align::right, Align::right, Align::left, Align::left},
      {}};
  for (const auto& [c, at_low, at_high] : draws.movers)
    movers.rows.push_back({c.name, value_text(c, c.value), value_text(c, c.low),
                           value_text(c, c.high), std::string(to_text(c.grade)),
                           fmt::format("{} to {}", signed_text({at_low}), signed_text({at_high}))});
  return text + "\n" + render(movers);
}

// Parts are shares of what all causes save together; one of them alone may save more or less.
std::string closes_most(const Explanation& e) {
  const auto most = std::max_element(
      e.rows.begin(), e.rows.end(),
      [](const ExplainRow& x, const ExplainRow& y) { return x.closes < y.closes; });
  if (most == e.rows.end() || most->closes < 0.005) return "";
  return fmt::format("\nof all causes {}, freed alone, closes the most of the gap: {}\n",
                     to_text(most->cause), percent(most->closes, 0));
}

std::string what_if(const Explanation& e) {
  constexpr std::size_t most_carriers = 3;
  std::string text = closes_most(e);
  for (const ExplainRow& row : e.rows) {
    if (!matters(e, row)) continue;
    text += fmt::format("\n{}: {}\n", to_text(row.cause), counterfactual_text(e, row));
    for (std::size_t i = 0; i < std::min(most_carriers, row.carriers.size()); ++i)
      text += fmt::format("  made of {}\n", constant_text(row.carriers[i].constant));
  }
  return text;
}

std::string part_text(const PathPart& part, std::size_t most) {
  std::vector<std::string> words;
  for (const auto& [cause, seconds] : part.causes) {
    if (words.size() == most || seconds.value < 0.01 * part.seconds.value) break;
    words.push_back(fmt::format("{} {}", to_text(cause), to_text(seconds)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string path_text(const ExplainedSide& side, std::string_view name) {
  TextTable table{{fmt::format("{} waits for", name), "time", "made of"},
                  {Align::left, Align::right, Align::left},
                  {}};
  for (const PathPart& part : side.path)
    table.rows.push_back({title_of(part), to_text(part.seconds), part_text(part, 5)});
  return "\n" + render(table);
}

std::string notes(const Explanation& e) {
  std::string text;
  if (e.parting)
    text += fmt::format("\nthey part in {}: A {} ({}), B {} ({})\n", title_of(e.parting->first),
                        to_text(e.parting->first.seconds), part_text(e.parting->first, 2),
                        to_text(e.parting->second.seconds), part_text(e.parting->second, 2));
  for (const auto& [name, side] : {std::pair{"A", &e.a}, std::pair{"B", &e.b}})
    if (const auto& anomaly = side->attribution.anomaly) {
      text += fmt::format("\nanomaly: {} takes {} longer once {} is free", name,
                          to_text(anomaly->slower), to_text(anomaly->cause));
      for (const Cause beside : members(anomaly->beside))
        text += fmt::format("{}{}", beside == members(anomaly->beside).front() ? " beside " : ", ",
                            to_text(beside));
      text += fmt::format(" ({} of its {} replays show the like)\n", side->attribution.anomalies,
                          side->attribution.replays);
    }
  if (e.at_limit && !e.at_limit->flips) text += "\n" + at_limit_text(e) + "\n";
  for (const std::string& note : e.fairness.too_large) text += "\n" + note + "\n";
  for (const auto& [title, list] : {std::pair{"equal on both sides", &e.fairness.equal},
                                    std::pair{"not equal", &e.fairness.unequal}}) {
    if (!list->empty()) text += fmt::format("\n{}\n", title);
    for (const std::string& note : *list) text += "  " + note + "\n";
  }
  if (!e.a.attribution.exact || !e.b.attribution.exact)
    text += fmt::format(
        "\nnote: with so many causes not all combinations are replayed, but {} of A and {} of B, "
        "until the\nerrors were small; --replays 4096 replays all of up to twelve causes\n",
        e.a.attribution.replays, e.b.attribution.replays);
  if (!e.draws)
    text +=
        "\nnote: --samples 8 adds ranges to all rows, and the constants that move the gap most\n";
  return text;
}

void write_range(JsonWriter& json, std::string_view name, const std::optional<Range>& range) {
  json.key(name);
  if (range)
    json.begin_array().value(range->low).value(range->high).end_array();
  else
    json.null();
}

void write_side(JsonWriter& json, std::string_view name, const ExplainedSide& side,
                const std::optional<SideRanges>& ranges) {
  json.key(name)
      .begin_object()
      .member("scenario", side.label)
      .member("title", side.title)
      .member("step_time_s", side.step_time.value)
      .member("tokens_per_second_per_gpu", side.tokens_per_second_per_gpu)
      .member("sequences", side.sequences)
      .member("tokens", side.tokens)
      .member("peak_memory_bytes", side.needed)
      .member("capacity_bytes", side.capacity)
      .member("verdict", to_text(side.fit))
      .member("operations", static_cast<double>(side.operations))
      .member("replays", static_cast<double>(side.attribution.replays))
      .member("exact", side.attribution.exact)
      .member("anomalies", static_cast<double>(side.attribution.anomalies));
  write_range(json, "step_time_interval_s",
              ranges ? std::optional(ranges->step_time) : std::nullopt);
  write_range(json, "tokens_per_second_per_gpu_interval",
              ranges ? std::optional(ranges->throughput) : std::nullopt);
  write_range(json, "peak_memory_interval_bytes",
              ranges ? std::optional(ranges->memory) : std::nullopt);
  json.key("critical_path").begin_array();
  for (const PathPart& part : side.path) {
    json.begin_object().member("part", title_of(part)).member("seconds", part.seconds.value);
    json.key("causes").begin_object();
    for (const auto& [cause, seconds] : part.causes) json.member(to_text(cause), seconds.value);
    json.end_object().end_object();
  }
  json.end_array().end_object();
}

// What the step that has the cause would take without it; of two, A.
Seconds counterfactual_of(const ExplainRow& row) {
  return row.in_a ? row.a_without : row.b_without;
}

void write_row(JsonWriter& json, const Explanation& e, const ExplainRow& row) {
  const CauseTime &a = e.a.causes[index(row.cause)], &b = e.b.causes[index(row.cause)];
  json.begin_object()
      .member("cause", to_text(row.cause))
      .member("seconds", row.seconds.value)
      .member("stderr_s", row.standard_error.value);
  write_range(json, "interval_s", row.range);
  json.member("counterfactual_s", counterfactual_of(row).value)
      .member("a_without_s", row.a_without.value)
      .member("b_without_s", row.b_without.value)
      .member("counterfactual", counterfactual_text(e, row))
      .member("gap_closes_by", row.closes)
      .member("only_in", only_in(row, "a", "b"))
      .member("a_exposed_s", a.exposed.value)
      .member("a_hidden_s", a.hidden.value)
      .member("b_exposed_s", b.exposed.value)
      .member("b_hidden_s", b.hidden.value);
  json.key("constants").begin_array();
  for (const Carrier& carrier : row.carriers)
    json.begin_object()
        .member("name", carrier.constant.name)
        .member("value", carrier.constant.value)
        .member("low", carrier.constant.low)
        .member("high", carrier.constant.high)
        .member("unit", si_unit(carrier.constant.dimension))
        .member("grade", to_text(carrier.constant.grade))
        .member("weight", carrier.weight)
        .end_object();
  json.end_array().end_object();
}

void write_draws(JsonWriter& json, const Explanation& e) {
  json.key("draws");
  if (!e.draws) {
    json.null();
    return;
  }
  json.begin_object()
      .member("made", static_cast<double>(e.draws->draws))
      .member("most", static_cast<double>(e.draws->most))
      .member("a_slower", static_cast<double>(e.draws->a_slower))
      .member("same_largest_row", static_cast<double>(e.draws->same_top));
  write_range(json, "gap_interval_s", e.draws->gap);
  json.key("moved_most_by").begin_array();
  for (const Mover& mover : e.draws->movers)
    json.begin_object()
        .member("constant", mover.constant.name)
        .member("grade", to_text(mover.constant.grade))
        .member("gap_at_low_s", mover.at_low)
        .member("gap_at_high_s", mover.at_high)
        .end_object();
  json.end_array().end_object();
}

}  // namespace

std::string explanation_text(const Explanation& e) {
  return head(e) + "\n" + render(gap_table(e)) + draws_part(e) + what_if(e) + path_text(e.a, "A") +
         path_text(e.b, "B") + notes(e);
}

std::string explanation_csv(const Explanation& e) {
  TextTable table{
      {"cause", "seconds", "stderr_s", "counterfactual_s", "a_without_s", "b_without_s", "only_in",
       "a_exposed_s", "a_hidden_s", "b_exposed_s", "b_hidden_s", "low_s", "high_s"},
      {},
      {}};
  const auto number = [](Seconds value) { return fmt::format("{}", value.value); };
  for (const ExplainRow& row : e.rows) {
    const CauseTime &a = e.a.causes[index(row.cause)], &b = e.b.causes[index(row.cause)];
    table.rows.push_back({std::string(to_text(row.cause)), number(row.seconds),
                          number(row.standard_error), number(counterfactual_of(row)),
                          number(row.a_without), number(row.b_without), only_in(row, "a", "b"),
                          number(a.exposed), number(a.hidden), number(b.exposed), number(b.hidden),
                          row.range ? number({row.range->low}) : "",
                          row.range ? number({row.range->high}) : ""});
  }
  if (e.residual.value != 0)
    table.rows.push_back(
        {"residual", number(e.residual), "0", "", "", "", "", "", "", "", "", "", ""});
  return render_csv(table);
}

std::string explanation_json(const Explanation& e) {
  JsonWriter json;
  json.begin_object();
  write_side(json, "a", e.a, e.draws ? std::optional(e.draws->a) : std::nullopt);
  write_side(json, "b", e.b, e.draws ? std::optional(e.draws->b) : std::nullopt);
  json.member("gap_s", e.gap().value).member("residual_s", e.residual.value);
  json.key("rows").begin_array();
  for (const ExplainRow& row : e.rows) write_row(json, e, row);
  if (e.residual.value != 0)
    json.begin_object()
        .member("cause", "residual")
        .member("seconds", e.residual.value)
        .member("stderr_s", 0.0)
        .key("counterfactual_s")
        .null()
        .end_object();
  json.end_array();
  write_draws(json, e);
  json.key("parting");
  if (e.parting)
    json.value(title_of(e.parting->first));
  else
    json.null();
  for (const auto& [name, list] :
       {std::pair{"equal", &e.fairness.equal}, std::pair{"not_equal", &e.fairness.unequal},
        std::pair{"does_not_fit", &e.fairness.too_large}}) {
    json.key(name).begin_array();
    for (const std::string& note : *list) json.value(note);
    json.end_array();
  }
  json.key("at_limit");
  if (e.at_limit)
    json.begin_object()
        .member("a_micro_batch", static_cast<double>(e.at_limit->micro_batch_a))
        .member("b_micro_batch", static_cast<double>(e.at_limit->micro_batch_b))
        .member("a_tokens_per_second_per_gpu", e.at_limit->rate_a)
        .member("b_tokens_per_second_per_gpu", e.at_limit->rate_b)
        .member("flips", e.at_limit->flips)
        .end_object();
  else
    json.null();
  json.end_object();
  return json.take();
}

}  // namespace stepsim
