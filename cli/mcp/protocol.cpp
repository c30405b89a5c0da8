#include "cli/mcp/protocol.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "cli/result_kinds.hpp"
#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// ---- JSON-RPC ----

enum class Wrong : int {
  no_json = -32700,
  no_request = -32600,
  no_method = -32601,
  no_params = -32602,
  no_resource = -32002,
  ours = -32603
};

struct McpError {
  Wrong kind;
  std::string why;
};

std::string error_line(std::string_view id, const McpError& error) {
  return fmt::format(R"({{"jsonrpc": "2.0", "id": {}, "error": {{"code": {}, "message": "{}"}}}}
)",
                     id.empty() ? "null" : id, static_cast<int>(error.kind),
                     json_escaped(error.why));
}

std::string result_line(std::string_view id, std::string_view result) {
  return fmt::format(R"({{"jsonrpc": "2.0", "id": {}, "result": {}}}
)",
                     id, result);
}

bool is_whole_number(std::string_view text) {
  constexpr std::size_t most = 18;
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, is_digit) &&
         (text == "0" || text.front() != '0');
}

// Returns an id as JSON, to be said back as it came; "" where there is none.
std::string id_at(const Table& table, std::string_view key) {
  if (!table.has(key)) return "";
  if (std::string line = table.one_line(key); is_whole_number(line)) return line;
  return fmt::format("\"{}\"", json_escaped(table.text(key)));
}

// ---- what is there ----

constexpr std::array<std::string_view, 4> versions{"2025-11-25", "2025-06-18", "2025-03-26",
                                                   "2024-11-05"};
constexpr std::string_view instructions =
    "stepsim predicts training steps of large language models on GPU clusters: time, memory, and "
    "what to change. A scenario is the path of the file that starts a training (a trainer's YAML, "
    "JSON or TOML, a script, a shell file that launches one) or a name of the catalogue; say the "
    "machine with `gpu` or `cluster`. Begin with `run`: it says whether it fits, how long a step "
    "takes, and what would make it faster or fit. Short answers say first what was taken (* marks "
    "what no file says) and what is not modelled: tell your user both. `full` gives all as JSON.";
constexpr std::string_view full_property =
    R"("full": {"type": "boolean", "description": "everything as JSON, instead of a short text"}, )";

struct McpResource {
  std::string uri, title;
  std::string_view type;
};
constexpr std::string_view json_text = "application/json", markdown = "text/markdown",
                           catalogue_root = "stepsim://catalogue/",
                           schemas_root = "stepsim://schemas/", docs_root = "stepsim://docs/";

// Returns the pages of a folder and of docs/step, by their names there.
std::vector<std::string> pages_in(const std::string& docs) {
  std::vector<std::string> pages;
  for (const std::string_view part : {"", "step/"}) {
    std::error_code failed;
    if (!fs::is_directory(fmt::format("{}/{}", docs, part), failed)) continue;
    for (const std::string& name : names_in_folder(fmt::format("{}/{}", docs, part)))
      if (name.ends_with(".md")) pages.push_back(fmt::format("{}{}", part, name));
  }
  return pages;
}

std::string heading_of(const std::string& page) {
  const std::string text = read_text(page);
  const std::string_view first = lines_in(text).front();
  return std::string(first.substr(std::min(first.find_first_not_of("# "), first.size())));
}

std::vector<McpResource> resources(const std::string& docs) {
  std::vector<McpResource> all;
  for (const std::string& list : catalogue_lists())
    all.push_back({fmt::format("{}{}", catalogue_root, list),
                   fmt::format("the catalogue's {}", list), json_text});
  for (const ResultKind* kind : result_kinds())
    all.push_back({fmt::format("{}{}", schemas_root, kind->name),
                   fmt::format("JSON Schema of {}", kind->what), json_text});
  for (const std::string& page : pages_in(docs))
    all.push_back({fmt::format("{}{}", docs_root, page),
                   heading_of(fmt::format("{}/{}", docs, page)), markdown});
  return all;
}

std::string text_of(const Fence& fence, const std::string& docs, std::string_view uri) {
  if (uri.starts_with(docs_root))
    return read_text(fmt::format("{}/{}", docs, uri.substr(docs_root.size())));
  if (uri.starts_with(catalogue_root)) {
    const std::string list(uri.substr(catalogue_root.size()));
    const Printed printed = answer_of(tool_of("list"), fence.data, {list, "--json"});
    if (printed.code != exit_code::yes) throw McpError{Wrong::ours, complaint_of(printed)};
    return printed.out;
  }
  const auto kind = std::ranges::find(result_kinds(), uri.substr(schemas_root.size()),
                                      [](const ResultKind* each) { return each->name; });
  return to_json(json_schema(**kind));
}

// ---- methods ----

struct McpRequest {
  const Fence& fence;
  const std::string& docs;
  const std::optional<Table>& params;

  std::string text(std::string_view key) const {
    if (!params) throw McpError{Wrong::no_params, fmt::format("params.{}: is missing", key)};
    return params->text(key);
  }
};

std::string initialize(const McpRequest& request) {
  const std::string asked = request.text("protocolVersion");
  return fmt::format(
      R"({{"protocolVersion": "{}", "capabilities": {{"tools": {{}}, "resources": {{}}}}, )"
      R"("serverInfo": {{"name": "stepsim", "version": "{}"}}, "instructions": "{}"}})",
      holds(versions, asked) ? asked : versions.front(), stepsim_version,
      json_escaped(instructions));
}

std::string ping(const McpRequest&) {
  return "{}";
}

std::string list_tools(const McpRequest&) {
  std::string all;
  for (const Tool& tool : all_tools()) {
    const ToolUsage usage = usage_of(tool, full_property);
    all +=
        fmt::format(R"({}{{"name": "{}", "description": "{}", "inputSchema": {}, )"
                    R"("annotations": {{"readOnlyHint": true, "openWorldHint": false}}}})",
                    all.empty() ? "" : ", ", tool.name, json_escaped(usage.summary), usage.schema);
  }
  return fmt::format(R"({{"tools": [{}]}})", all);
}

std::string list_resources(const McpRequest& request) {
  std::string all;
  for (const McpResource& each : resources(request.docs))
    all +=
        fmt::format(R"({}{{"uri": "{}", "name": "{}", "mimeType": "{}"}})", all.empty() ? "" : ", ",
                    json_escaped(each.uri), json_escaped(each.title), each.type);
  return fmt::format(R"({{"resources": [{}]}})", all);
}

std::string list_templates(const McpRequest&) {
  return R"({"resourceTemplates": []})";
}

std::string read_resource(const McpRequest& request) {
  const std::string uri = request.text("uri");
  const std::vector<McpResource> all = resources(request.docs);
  const auto place = std::ranges::find(all, uri, &McpResource::uri);
  if (place == all.end())
    throw McpError{Wrong::no_resource,
                   fmt::format("no resource \"{}\"{}", on_one_line(uri),
                               did_you_mean(uri, mapped(all, &McpResource::uri)))};
  return fmt::format(R"({{"contents": [{{"uri": "{}", "mimeType": "{}", "text": "{}"}}]}})",
                     json_escaped(uri), place->type,
                     json_escaped(text_of(request.fence, request.docs, uri)));
}

struct McpMethod {
  std::string_view name;
  std::string (*result)(const McpRequest&);
};
constexpr std::array methods{McpMethod{"initialize", initialize},
                             McpMethod{"ping", ping},
                             McpMethod{"tools/list", list_tools},
                             McpMethod{"resources/list", list_resources},
                             McpMethod{"resources/templates/list", list_templates},
                             McpMethod{"resources/read", read_resource}};

std::string tool_line(std::string_view id, std::string_view text, bool failed) {
  return result_line(
      id, fmt::format(R"({{"content": [{{"type": "text", "text": "{}"}}], "isError": {}}})",
                      json_escaped(text), failed));
}

// Names arguments as the client does, without the place in its message.
std::string lesson_of(const UserError& error) {
  constexpr std::string_view arguments = "params.arguments.";
  std::vector<Problem> problems = error.problems();
  for (Problem& each : problems) {
    each.file.clear();
    each.line = 0;
    if (each.key.starts_with(arguments)) each.key.erase(0, arguments.size());
  }
  return UserError(std::move(problems)).what();
}

std::string shortened(const std::string& text) {
  constexpr std::string_view tail = "... (\"full\": true gives the rest)\n";
  if (text.size() <= longest_short_answer) return text;
  const std::size_t most = longest_short_answer - tail.size();
  std::size_t end = text.rfind('\n', most - 1) + 1;
  if (end == 0)  // one line: it ends where a letter does
    for (end = most; end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;) --end;
  return text.substr(0, end) + std::string(tail);
}

// Reads what a tool is asked. What is wrong with its arguments is the tool's own lesson.
McpHeard call_of(const Fence& fence, const std::string& id, const Table& params) {
  McpCall call{.id = id, .tool = &tool_of(params.text("name"))};
  if (const auto meta = params.table_if("_meta"))
    call.progress_token = id_at(*meta, "progressToken");
  constexpr std::array<std::string_view, 1> own{"full"};
  const auto arguments = params.table_if("arguments");
  if (arguments) {
    call.full = arguments->flag_or("full", false);
    call.words = words_of(*call.tool, *arguments, own);
  }
  try {
    require_inside(call.words, fence.readable,
                   fmt::format(": what is in {} may be read, and `stepsim mcp --folder DIR` names "
                               "more",
                               fmt::join(fence.folders, ", ")));
  } catch (const UserError& error) {
    return {.reply = tool_line(id, error.what(), true)};
  }
  const std::string_view form = call.full ? "--json" : call.tool->brief;
  for (const std::string_view option : split(form, ' '))
    if (!option.empty() && !holds(call.words, option))
      call.words.insert(call.words.begin(), std::string(option));
  return {.call = std::move(call)};
}

McpHeard answer_to(const Fence& fence, const std::string& docs, const Document& message,
                   const std::string& id) {
  const Table root = message.root();
  const std::string method = root.text_or("method", "");
  const std::optional<Table> params = root.table_if("params");
  if (method.empty() && (root.has("result") || root.has("error"))) return {};  // nothing was asked
  if (root.text_or("jsonrpc", "") != "2.0" || method.empty() || !root.sound())
    throw McpError{Wrong::no_request, "expected a request of JSON-RPC 2.0"};
  if (id.empty()) {
    if (method != "notifications/cancelled" || !params) return {};
    return {.cancelled = id_at(*params, "requestId")};
  }
  McpHeard heard;
  if (method == "tools/call") {
    if (!params) throw McpError{Wrong::no_params, "params: is missing"};
    heard = call_of(fence, id, *params);
    try {
      message.finish(Leftovers::allowed);
    } catch (const UserError& error) {
      return {.reply = tool_line(id, lesson_of(error), true)};
    }
    return heard;
  }
  const auto place = std::ranges::find(methods, method, &McpMethod::name);
  if (place == methods.end())
    throw McpError{Wrong::no_method, fmt::format("no method \"{}\"", on_one_line(method))};
  heard.reply = result_line(id, place->result({fence, docs, params}));
  message.finish(Leftovers::allowed);
  return heard;
}

}  // namespace

McpHeard hear(const Fence& fence, const std::string& docs, std::string_view line) {
  std::string id;
  try {
    if (std::ranges::all_of(line, is_space)) return {};
    const Document message = [&] {
      try {
        return parse_document(line, "the message");
      } catch (const UserError& error) {
        throw McpError{Wrong::no_json, error.what()};
      }
    }();
    id = id_at(message.root(), "id");
    return answer_to(fence, docs, message, id);
  } catch (const McpError& error) {
    return {.reply = error_line(id, error)};
  } catch (const UserError& error) {
    return {.reply = error_line(id, {Wrong::no_params, error.what()})};
  } catch (const MachineError& error) {
    return {.reply = error_line(id, {Wrong::ours, error.what()})};
  }
}

std::string unreadable_line(std::string_view why) {
  return error_line("", {Wrong::no_json, std::string(why)});
}

std::string answer_line(const McpCall& call, const Printed& printed) {
  const bool failed = printed.code != exit_code::yes && printed.code != exit_code::no;
  if (failed) return tool_line(call.id, shortened(complaint_of(printed)), true);
  if (call.full) return tool_line(call.id, printed.out, false);
  return tool_line(call.id, shortened(printed.out + printed.err), false);
}

std::string failed_line(const McpCall& call, std::string_view why) {
  return tool_line(call.id, why, true);
}

std::string progress_line(const McpCall& call, std::string_view told, double& last) {
  double done = 0, of = 0;
  const char* const end = told.data() + told.size();
  const char* const blank = std::from_chars(told.data(), end, done).ptr;
  if (blank == end) return "";
  const char* const what = std::from_chars(blank + 1, end, of).ptr;
  if (what == end || done <= last) return "";
  last = done;
  return fmt::format(
      R"({{"jsonrpc": "2.0", "method": "notifications/progress", "params": {{"progressToken": {}, )"
      R"("progress": {}, "total": {}, "message": "{}"}}}}
)",
      call.progress_token, done, of, json_escaped(std::string_view(what + 1, end)));
}

}  // namespace stepsim
