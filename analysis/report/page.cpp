#include "analysis/report/page.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_page_spans = 70000;  // of all timelines: a megabyte and a half

bool ends_line(std::string_view escape) {
  return escape.starts_with("u000a") || escape.starts_with("u0009");
}

std::string data_of(const Page& page) {
  JsonWriter json(JsonSpacing::compact);
  json.begin_object().member("title", page.title).key("causes").begin_array();
  for (const std::string_view cause : cause_names) json.value(cause);
  json.end_array().key("phase_names").begin_array();
  for (const std::string_view phase : phase_names) json.value(phase);
  json.end_array().key("steps").begin_array();
  for (const PageStep& step : page.steps)
    write_step(json, step, most_page_spans / page.steps.size());
  json.end_array();
  Records answers;
  if (page.gap) answers.emplace_back("gap", "why two steps differ", *page.gap);
  answers.emplace_back("claims", "and their verdicts", RecordList{page.claims});
  if (page.sweep) answers.emplace_back("sweep", "many settings", *page.sweep);
  for (const Record& answer : answers) {
    json.key(answer.key);
    write(json, answer);
  }
  json.end_object();
  return page_json(json.take());
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else
      result += c;
  }
  return result;
}

// A page reads its assets in this order.
using Assets = std::span<const std::string_view>;
constexpr std::array<std::string_view, 1> report_styles{"style.css"};
constexpr std::array<std::string_view, 2> serve_styles{"style.css", "serve.css"};
constexpr std::array<std::string_view, 11> report_scripts{
    "text.js",   "layout.js", "causes.js", "timeline.js", "breakdown.js", "waterfall.js",
    "memory.js", "links.js",  "tables.js", "sweep.js",    "main.js"};
constexpr std::array<std::string_view, 11> serve_scripts{
    "text.js",           "layout.js",        "causes.js", "breakdown.js",
    "waterfall.js",      "memory.js",        "tables.js", "serve_state.js",
    "serve_controls.js", "serve_answers.js", "serve.js"};

std::string assembled(Assets assets) {
  std::string text;
  for (const std::string_view name : assets) text += page_asset(name);
  return text;
}

std::string html_of(std::string_view title, Assets styles, const std::string& data,
                    Assets scripts) {
  const std::array<std::pair<std::string_view, std::string>, 6> parts{{
      {"@title@", escaped(title)},
      {"@style@", assembled(styles)},
      {"@licence@", std::string(page_asset("d3-licence.txt"))},
      {"@library@", std::string(page_asset("d3.min.js"))},
      {"@data@", data},
      {"@script@", assembled(scripts)},
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

}  // namespace

// Writes escapes of what cannot be seen so that the page shows them as text, as a terminal does.
std::string page_json(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      safe += "\\u003c";
    } else if (json[i] != '\\') {
      safe += json[i];
    } else {
      safe += json[i + 1] == 'u' && !ends_line(json.substr(i + 1)) ? "\\\\" : "\\";
      safe += json[++i];
    }
  }
  return safe;
}

std::string page_html(const Page& page) {
  return html_of(page.title, report_styles, data_of(page), report_scripts);
}

std::string serve_html(std::string_view title, const Records& data) {
  return html_of(title, serve_styles, page_json(to_json(data)), serve_scripts);
}

}  // namespace stepsim
