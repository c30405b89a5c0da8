#include "analysis/report/page.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "analysis/json.hpp"
#include "analysis/report/page_step.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_spans = 70000;  // of all timelines: a megabyte and a half

void write_gap(JsonWriter& json, const PageGap& gap) {
  json.begin_object().member("headline", gap.headline).key("notes").begin_array();
  for (const std::string& note : gap.notes) json.value(note);
  json.end_array().key("rows").begin_array();
  for (const PageGapRow& row : gap.rows)
    json.begin_object()
        .member("cause", row.cause)
        .member("seconds", row.seconds)
        .member("error", row.standard_error)
        .member("reading", row.reading)
        .member("constants", row.constants)
        .end_object();
  json.end_array().end_object();
}

void write_claims(JsonWriter& json, const std::vector<PageClaim>& claims) {
  json.key("claims").begin_array();
  for (const PageClaim& claim : claims) {
    json.begin_object().member("id", claim.id).member("text", claim.text);
    json.member("verdict", claim.verdict).member("reason", claim.reason);
    if (claim.probability) json.member("probability", *claim.probability);
    json.end_object();
  }
  json.end_array();
}

void write_numbers(JsonWriter& json, std::string_view name, const std::vector<double>& numbers) {
  json.key(name).begin_array();
  for (const double number : numbers) json.value(number);
  json.end_array();
}

void write_plots(JsonWriter& json, const std::vector<PagePlot>& plots) {
  json.key("plots").begin_array();
  for (const PagePlot& plot : plots) {
    json.begin_object().member("title", plot.title).member("x", plot.x_title);
    json.member("y", plot.y_title).key("series").begin_array();
    for (const PageSeries& series : plot.series) {
      json.begin_object().member("name", series.name);
      write_numbers(json, "x", series.x);
      write_numbers(json, "y", series.y);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
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
  write_plots(json, page.plots);
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
                             "plots.js",     "main.js"};

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
