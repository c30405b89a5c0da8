#include "analysis/report/page.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "analysis/report/page_step.hpp"
#include "sim/base/json.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_spans = 70000;  // of all timelines: a megabyte and a half

void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_path(JsonWriter& json, const std::vector<PagePathPart>& path) {
  json.begin_array();
  for (const PagePathPart& part : path) {
    json.begin_object().member("title", part.title).member("seconds", part.seconds);
    json.key("causes").begin_array();
    for (const auto& [cause, seconds] : part.causes)
      json.begin_array().value(cause).value(seconds).end_array();
    json.end_array().end_object();
  }
  json.end_array();
}

void write_gap(JsonWriter& json, const PageGap& gap) {
  json.begin_object().member("headline", gap.headline).member("sureness", gap.sureness);
  json.member("parting", gap.parting);
  write_texts(json, "notes", gap.notes);
  write_texts(json, "movers", gap.movers);
  json.key("rows").begin_array();
  for (const PageGapRow& row : gap.rows) {
    json.begin_object()
        .member("cause", row.cause)
        .member("seconds", row.seconds)
        .member("error", row.standard_error)
        .member("reading", row.reading)
        .member("constants", row.constants);
    if (row.range)
      json.key("range").begin_array().value(row.range->first).value(row.range->second).end_array();
    json.end_object();
  }
  json.end_array().key("paths").begin_array();
  write_path(json, gap.path_a);
  write_path(json, gap.path_b);
  json.end_array().end_object();
}

void write_claims(JsonWriter& json, const std::vector<PageClaim>& claims) {
  json.key("claims").begin_array();
  for (const PageClaim& claim : claims) {
    json.begin_object().member("id", claim.id).member("text", claim.text);
    json.member("verdict", claim.verdict).member("reason", claim.reason);
    json.member("moved", claim.moved).member("draws", claim.draws);
    if (claim.probability) json.member("probability", *claim.probability);
    json.end_object();
  }
  json.end_array();
}

void write_point(JsonWriter& json, const PagePoint& point) {
  json.begin_object().key("values").begin_array();
  for (const std::string& value : point.values) json.value(value);
  json.end_array().member("reason", point.reason).member("mark", point.mark);
  json.member("step_time", point.step_time).member("rate", point.rate);
  json.member("memory", point.memory).member("capacity", point.capacity);
  json.key("parts").begin_array();
  for (const auto& [cause, seconds] : point.parts)
    json.begin_array().value(cause).value(seconds).end_array();
  json.end_array().end_object();
}

void write_sweep(JsonWriter& json, const PageSweep& sweep) {
  json.begin_object().member("title", sweep.title).key("keys").begin_array();
  for (const std::string& key : sweep.keys) json.value(key);
  json.end_array().key("points").begin_array();
  for (const PagePoint& point : sweep.points) write_point(json, point);
  json.end_array().key("reading").begin_array();
  for (const std::string& line : sweep.reading) json.value(line);
  json.end_array().key("changes").begin_array();
  for (const auto& [change, gain] : sweep.changes)
    json.begin_array().value(change).value(gain).end_array();
  json.end_array().end_object();
}

// A text of the data must not end the script element that it stands in.
std::string without_tags(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  return safe;
}

std::string data_of(const Page& page) {
  JsonWriter json(JsonSpacing::compact);
  json.begin_object().member("title", page.title).key("causes").begin_array();
  for (const std::string_view cause : cause_names) json.value(cause);
  json.end_array().key("phase_names").begin_array();
  for (const std::string_view phase : phase_names) json.value(phase);
  json.end_array().key("steps").begin_array();
  for (const PageStep& step : page.steps) write_step(json, step, most_spans / page.steps.size());
  json.end_array();
  if (page.gap) {
    json.key("gap");
    write_gap(json, *page.gap);
  }
  write_claims(json, page.claims);
  if (page.sweep) {
    json.key("sweep");
    write_sweep(json, *page.sweep);
  }
  json.end_object();
  return without_tags(json.take());
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else
      result += c;
  }
  return result;
}

// The order in which the scripts are read.
constexpr std::array scripts{"text.js",      "causes.js", "timeline.js", "breakdown.js",
                             "waterfall.js", "memory.js", "links.js",    "tables.js",
                             "sweep.js",     "main.js"};

}  // namespace

std::string page_html(const Page& page) {
  std::string script;
  for (const char* name : scripts) script += page_asset(name);
  const std::array<std::pair<std::string_view, std::string>, 6> parts{{
      {"@title@", escaped(page.title)},
      {"@style@", std::string(page_asset("style.css"))},
      {"@licence@", std::string(page_asset("d3-licence.txt"))},
      {"@library@", std::string(page_asset("d3.min.js"))},
      {"@data@", data_of(page)},
      {"@script@", script},
  }};
  std::string_view rest = page_asset("page.html");
  std::string html;
  for (const auto& [mark, text] : parts) {  // in the order in which they stand there
    const std::size_t at = rest.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("page.html has lost a mark");
    html.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return html.append(rest);
}

}  // namespace stepsim
