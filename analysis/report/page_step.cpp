// Long lists are columns of whole numbers: ticks of time, thousandths of a link. What one reads
// goes over as text that is ready to print.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "analysis/breakdown.hpp"
#include "analysis/memory_timeline.hpp"
#include "analysis/report/link_use.hpp"
#include "analysis/report/page.hpp"
#include "analysis/report/tracks.hpp"
#include "sim/base/config.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_memory_points = 1500;
constexpr std::size_t link_points = 400;
constexpr std::size_t most_links = 12;
constexpr std::size_t most_bands = 2000;

std::optional<double> summary_of(const Run& run, std::string_view name) {
  for (const Scalar& scalar : run.summary)
    if (scalar.name == name) return scalar.value;
  return std::nullopt;
}

struct Heading {
  std::string title, subtitle;
};

std::string cluster_text(const Table& root) {
  const auto cluster = root.table_if("cluster");
  if (!cluster) return root.text_or("cluster", "");
  const std::string nodes = cluster->text_or("nodes", "1");
  const std::string node = cluster->text_or("node", cluster->text_or("name", ""));
  const std::string network = cluster->text_or("network", cluster->text_or("fabric", ""));
  return fmt::format("{}{}{}", nodes == "1" ? "" : nodes + " x ", node,
                     network.empty() ? "" : " over " + network);
}

// Takes the heading from the scenario's own words; a run of something else is called what the
// reader calls it.
Heading heading_of(const PageStep& step) try {
  const Document file = parse_document(step.run->scenario, step.label);
  const Table root = file.root();
  Heading heading{root.text_or("name", step.label), {}};
  for (const std::string& part :
       {root.text_or("model", ""), cluster_text(root), root.text_or("stack", "")})
    if (!part.empty()) heading.subtitle += (heading.subtitle.empty() ? "" : " · ") + part;
  return heading;
} catch (const UserError&) {
  return {step.label, ""};
}

// Time in whole ticks, a power of ten that divides the step into 1e8 to 1e9.
class Clock {
 public:
  explicit Clock(double makespan)
      : tick_(makespan > 0 ? std::pow(10, std::ceil(std::log10(makespan)) - 9) : 1e-9) {}
  double tick() const { return tick_; }
  std::int64_t ticks(double seconds) const { return std::llround(seconds / tick_); }

 private:
  double tick_;
};

// A kind is what operations have in common; each combination is kept once.
class Kinds {
 public:
  explicit Kinds(const OpGraph& graph) : graph_(graph) {}

  std::size_t of(OpId id) {
    const Op& op = graph_[id];
    const auto [place, added] = ids_.try_emplace(
        {op.name, op.pattern, op.phase, op.layer, op.micro_batch, op.cause, op.bytes.value},
        list_.size());
    if (added) list_.push_back(id);
    return place->second;
  }
  void write(JsonWriter& json) const {
    json.key("kinds").begin_array();
    for (const OpId id : list_) {
      const Op& op = graph_[id];
      json.begin_array().value(index(op.name)).value(static_cast<int>(op.cause));
      json.value(static_cast<int>(op.phase)).value(op.layer).value(op.micro_batch);
      json.value(op.bytes.value > 0 ? to_text(op.bytes) : "");
      json.value(op.pattern == no_pattern ? "" : graph_.patterns()[index(op.pattern)].name);
      json.end_array();
    }
    json.end_array();
  }

 private:
  const OpGraph& graph_;
  std::map<std::tuple<NameId, PatternId, Phase, int, int, Cause, double>, std::size_t> ids_;
  std::vector<OpId> list_;
};

template <class Range, class Project = std::identity>
void write_list(JsonWriter& json, std::string_view name, const Range& range,
                const Project& project = {}) {
  json.key(name).begin_array();
  for (const auto& item : range) json.value(project(item));
  json.end_array();
}

// Writes a track: starts as distances from the end before, durations, kinds, how many operations
// each span holds, and for those of several causes [causes, cause, thousandths of the span, ...].
void write_track(JsonWriter& json, const Track& track, const Clock& clock, Kinds& kinds) {
  std::int64_t end = 0;
  write_list(json, "gaps", track.spans, [&](const Span& span) {
    const std::int64_t gap = clock.ticks(span.start) - end;
    end = clock.ticks(span.finish);
    return gap;
  });
  write_list(json, "times", track.spans,
             [&](const Span& span) { return clock.ticks(span.finish) - clock.ticks(span.start); });
  write_list(json, "kinds", track.spans, [&](const Span& span) { return kinds.of(span.longest); });
  write_list(json, "counts", track.spans, [](const Span& span) { return span.count; });
  json.key("mixed").begin_array();
  for (const Span& span : track.spans) {
    if (span.count == 1) continue;
    json.value(span.shares);
    for (const CauseShare& part : track.shares_of(span))
      json.value(static_cast<int>(part.cause))
          .value(std::llround(1000 * part.seconds / (span.finish - span.start)));
  }
  json.end_array();
}

void write_tracks(JsonWriter& json, const Run& run, const Clock& clock, std::size_t most_spans) {
  const Tracks tracks = tracks_of(run, most_spans);
  Kinds kinds(run.graph);
  json.member("operations", tracks.operations).member("resolution", tracks.resolution);
  json.member("tick", clock.tick()).key("tracks").begin_array();
  for (const Track& track : tracks.list) {
    json.begin_object().member("rank", track.rank).member("stream", to_text(track.stream));
    write_track(json, track, clock, kinds);
    json.end_object();
  }
  json.end_array();
  kinds.write(json);
  write_list(json, "names", run.graph.names());
}

// When the first rank was forward, backward ...: [phase, begin, end], from its busiest stream.
void write_phases(JsonWriter& json, const Run& run, const Clock& clock) {
  json.key("phases").begin_array();
  std::optional<Phase> now;
  double begin = 0, end = 0;
  std::size_t bands = 0;
  const auto close = [&] {
    if (now && bands++ < most_bands)
      json.begin_array()
          .value(to_text(*now))
          .value(clock.ticks(begin))
          .value(clock.ticks(end))
          .end_array();
  };
  for (std::size_t i = 0; i < run.graph.size(); ++i) {
    const Op& op = run.graph.ops()[i];
    if (op.rank != 0 || op.stream != Stream::compute || run.trace.finish[i] <= run.trace.start[i])
      continue;
    // Recomputation is a part of going backward.
    const Phase phase = op.phase == Phase::recompute ? Phase::backward : op.phase;
    if (now != phase) {
      close();
      now = phase;
      begin = run.trace.start[i];
    }
    end = std::max(begin, run.trace.finish[i]);
  }
  close();
  json.end_array();
}

void write_breakdown(JsonWriter& json, const Run& run) {
  const Breakdown breakdown = break_down(run.graph, run.trace, 0);
  json.key("breakdown").begin_array();
  const auto write_row = [&](std::string_view cause, Seconds exposed, Seconds hidden) {
    json.begin_object().member("cause", cause).member("exposed", exposed.value);
    json.member("hidden", hidden.value).end_object();
  };
  for (const BreakdownRow& row : breakdown.rows)
    write_row(to_text(row.cause), row.exposed, row.hidden);
  if (breakdown.idle.value > 1e-9 * run.trace.makespan.value) write_row("idle", breakdown.idle, {});
  json.end_array();
}

void write_memory(JsonWriter& json, const Run& run, const Clock& clock) {
  const MemoryCurves curves = memory_curves(run, 0, Pool::device, most_memory_points);
  json.key("memory");
  if (curves.times.empty()) {
    json.null();
    return;
  }
  const MemoryPeak peak = peak_memory(run.graph, run.trace, 0);
  const double held = summary_of(run, "peak_memory").value_or(peak.bytes);
  json.begin_object().key("always").begin_array();
  double rest = held - peak.bytes;
  for (const Scalar& scalar : run.summary) {
    constexpr std::string_view mark = "held_";
    if (!scalar.name.starts_with(mark)) continue;
    json.begin_array().value(scalar.name.substr(mark.size())).value(scalar.value).end_array();
    rest -= scalar.value;
  }
  if (rest > 1e-3 * held) json.begin_array().value("from step to step").value(rest).end_array();
  json.end_array();
  if (const auto capacity = summary_of(run, "memory_capacity")) json.member("capacity", *capacity);
  if (const auto needed = summary_of(run, "memory_needed")) json.member("needed", *needed);
  json.member("peak", held).member("peak_time", peak.time);
  json.member("peak_at", fmt::format("{}, in {}", peak.name, peak.phase));
  write_list(json, "times", curves.times, [&](double time) { return clock.ticks(time); });
  write_list(json, "classes", curves.classes);
  json.key("levels").begin_array();  // in MB
  for (const auto& level : curves.levels) {
    json.begin_array();
    for (const double bytes : level) json.value(std::llround(bytes / 1e6));
    json.end_array();
  }
  json.end_array().end_object();
}

void write_links(JsonWriter& json, const Run& run) {
  json.key("links").begin_array();
  for (const LinkCurve& use : link_use(run, most_links)) {
    const Link& link = run.platform.links[index(use.link)];
    // The parts of the step are equal, so that only the values go over.
    Curve curve = use.share;
    const double end = run.trace.makespan.value;
    for (std::size_t i = 0; i <= link_points; ++i) curve.times.push_back(end);
    curve.values.resize(curve.times.size(), 0);
    json.begin_object().member("name", link.name).member("capacity", to_text(link.capacity));
    json.member("carried", to_text(Bytes{run.trace.links[index(use.link)].bytes}));
    json.member("busy", run.trace.links[index(use.link)].busy.value / end).member("mean", use.mean);
    write_list(json, "use", averaged(curve, end, link_points).values,
               [](double share) { return std::llround(1000 * share); });
    json.end_object();
  }
  json.end_array();
}

void write_constants(JsonWriter& json, const Run& run) {
  json.key("constants").begin_array();
  for (const NamedConstant& constant : run.constants)
    json.begin_array()
        .value(constant.name)
        .value(value_text(constant, constant.value))
        .value(value_text(constant, constant.low))
        .value(value_text(constant, constant.high))
        .value(to_text(constant.grade))
        .value(constant.source)
        .end_array();
  json.end_array();
}

}  // namespace

void write_step(JsonWriter& json, const PageStep& step, std::size_t most_spans) {
  const Run& run = *step.run;
  const Heading heading = heading_of(step);
  const Clock clock(run.trace.makespan.value);
  json.begin_object().member("label", step.label).member("title", heading.title);
  json.member("subtitle", heading.subtitle).member("step_time", run.trace.makespan.value);
  json.member("taken", step.taken);
  write_list(json, "missing", step.missing);
  json.key("summary").begin_object();
  for (const Scalar& scalar : run.summary) json.member(scalar.name, scalar.value);
  json.end_object();
  write_list(json, "alike", run.lane_sizes);
  write_breakdown(json, run);
  write_tracks(json, run, clock, most_spans);
  write_phases(json, run, clock);
  write_memory(json, run, clock);
  write_links(json, run);
  write_constants(json, run);
  json.member("scenario", run.scenario).end_object();
}

}  // namespace stepsim
