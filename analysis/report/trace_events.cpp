#include "analysis/report/trace_events.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/report/link_use.hpp"
#include "analysis/report/tracks.hpp"
#include "sim/base/json.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_counter_points = 4000;  // of one counter
constexpr std::size_t most_link_tracks = 64;

double microseconds(double seconds) {
  return nanoseconds(seconds) / 1e3;
}

class Events {
 public:
  explicit Events(const Run& run) : run_(run) {
    json_.begin_object().member("displayTimeUnit", "ms").key("traceEvents").begin_array();
  }

  void name_process(std::size_t process, std::string_view name) {
    metadata("process_name", process, 0).member("name", name);
    close();
    metadata("process_sort_index", process, 0).member("sort_index", process);
    close();
  }
  void name_thread(std::size_t process, std::size_t thread, std::string_view name) {
    metadata("thread_name", process, thread).member("name", name);
    close();
    metadata("thread_sort_index", process, thread).member("sort_index", thread);
    close();
  }

  void slice(const Track& track, const Span& span) {
    const Op& op = run_.graph[span.longest];
    const double start = nanoseconds(span.start);
    const std::string& name = run_.graph.names()[index(op.name)];
    begin("X", span.count == 1 ? name : fmt::format("{} and {} more", name, span.count - 1),
          track.rank, static_cast<std::size_t>(track.stream), start / 1e3);
    json_.member("dur", (nanoseconds(span.finish) - start) / 1e3);
    json_.member("cat", to_text(op.cause)).key("args").begin_object();
    json_.member("phase", to_text(op.phase));
    if (span.count == 1)
      describe(op, span.longest);
    else
      describe(track, span);
    close();
  }

  void counter(std::size_t process, std::string_view name, double seconds) {
    begin("C", name, process, 0, microseconds(seconds));
    json_.key("args").begin_object();
  }
  JsonWriter& json() { return json_; }
  void close() { json_.end_object().end_object(); }

  // Draws an arrow within its slices: at the last nanosecond of the one and the first of the other.
  void arrow(const Arrow& arrow, std::size_t id) {
    const std::string_view kind =
        run_.graph[arrow.from].kind == OpKind::host ? "launch" : "into collective";
    const double from = nanoseconds(run_.trace.finish[index(arrow.from)]) - 1;
    end_of_arrow("s", kind, arrow.from_rank, run_.graph[arrow.from].stream, from, id);
    const double to = nanoseconds(run_.trace.start[index(arrow.to)]);
    end_of_arrow("f", kind, arrow.to_rank, run_.graph[arrow.to].stream, to, id);
  }

  std::string take() {
    json_.end_array().end_object();
    return json_.take();
  }

 private:
  void begin(std::string_view kind, std::string_view name, std::size_t process, std::size_t thread,
             double time) {
    json_.begin_object().member("ph", kind).member("name", name).member("pid", process);
    json_.member("tid", thread).member("ts", time);
  }
  JsonWriter& metadata(std::string_view what, std::size_t process, std::size_t thread) {
    begin("M", what, process, thread, 0);
    return json_.key("args").begin_object();
  }
  void describe(const Op& op, OpId id) {
    if (op.layer >= 0) json_.member("layer", op.layer);
    if (op.micro_batch >= 0) json_.member("micro_batch", op.micro_batch);
    if (op.bytes.value > 0) json_.member("bytes", op.bytes.value);
    if (op.flops.value > 0) json_.member("flops", op.flops.value);
    if (op.pattern != no_pattern)
      json_.member("traffic", run_.graph.patterns()[index(op.pattern)].name);
    if (run_.trace.ready.empty()) return;
    const double waited = run_.trace.start[index(id)] - run_.trace.ready[index(id)];
    if (nanoseconds(waited) > 0) json_.member("waited for other ranks, us", microseconds(waited));
  }
  void describe(const Track& track, const Span& span) {
    json_.member("operations", span.count);
    for (const CauseShare& part : track.shares_of(span))
      json_.member(fmt::format("{}, us", to_text(part.cause)), microseconds(part.seconds));
  }
  void end_of_arrow(std::string_view end, std::string_view kind, Rank rank, Stream stream,
                    double time, std::size_t id) {
    begin(end, kind, rank, static_cast<std::size_t>(stream), time / 1e3);
    json_.member("cat", kind).member("id", id);
    if (end == "f") json_.member("bp", "e");
    json_.end_object();
  }

  const Run& run_;
  JsonWriter json_{JsonSpacing::compact};
};

void write_names(const Run& run, const Tracks& tracks, Events& events) {
  std::optional<Rank> named;
  for (const Track& track : tracks.list) {
    if (named != track.rank) {
      const std::uint32_t alike = run.lane_sizes.empty() ? 1 : run.lane_sizes[track.rank];
      events.name_process(
          track.rank, alike == 1 ? fmt::format("rank {}", track.rank)
                                 : fmt::format("rank {} (stands for {} alike)", track.rank, alike));
    }
    named = track.rank;
    events.name_thread(track.rank, static_cast<std::size_t>(track.stream), to_text(track.stream));
  }
}

void write_memory(const Run& run, Events& events) {
  for (Rank rank = 0; rank < run.platform.devices.size(); ++rank)
    for (std::size_t pool = 0; pool < pool_names.size(); ++pool) {
      const auto curves = memory_curves(run, rank, static_cast<Pool>(pool), most_counter_points);
      const std::string name = fmt::format("{} memory that comes and goes, GB", pool_names[pool]);
      for (std::size_t i = 0; i < curves.times.size(); ++i) {
        events.counter(rank, name, curves.times[i]);
        for (std::size_t kind = 0; kind < curves.classes.size(); ++kind)
          events.json().member(curves.classes[kind],
                               std::round(curves.levels[kind][i] / 1e3) / 1e6);
        events.close();
      }
    }
}

void write_links(const Run& run, Events& events) {
  const std::size_t process = run.platform.devices.size();
  const std::vector<LinkCurve> links = link_use(run, most_link_tracks);
  if (!links.empty()) events.name_process(process, "links");
  for (const LinkCurve& link : links) {
    const Curve curve = averaged(link.share, run.trace.makespan.value, most_counter_points);
    const std::string name = fmt::format("{}, %", run.platform.links[index(link.link)].name);
    for (std::size_t i = 0; i < curve.times.size(); ++i) {
      if (i > 0 && curve.values[i] == curve.values[i - 1]) continue;
      events.counter(process, name, curve.times[i]);
      events.json().member("use", std::round(1e4 * curve.values[i]) / 100);
      events.close();
    }
  }
}

}  // namespace

TraceText trace_events(const Run& run, std::size_t most_events) {
  const auto [tracks, arrows] = tracks_and_arrows(run, most_events);
  Events events(run);
  write_names(run, tracks, events);
  for (const Track& track : tracks.list)
    for (const Span& span : track.spans) events.slice(track, span);
  for (std::size_t i = 0; i < arrows.size(); ++i) events.arrow(arrows[i], i + 1);
  write_memory(run, events);
  write_links(run, events);
  return {events.take(), tracks.operations, tracks.spans(), tracks.resolution};
}

}  // namespace stepsim
