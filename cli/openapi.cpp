#include "cli/openapi.hpp"

#include <fmt/format.h>

#include "cli/result_kinds.hpp"
#include "cli/tools.hpp"
#include "sim/base/letters.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

// Takes the end of its line away, to stand in another.
std::string one_line_json(const Records& parts) {
  std::string text = to_json(parts);
  text.pop_back();
  return text;
}

std::string answers_of(const Tool& tool) {
  std::string kinds;
  for (const ResultKind* kind : tool.kinds)
    if (kind != nullptr)
      kinds += fmt::format(R"({}{{"$ref": "#/components/schemas/{}"}})", kinds.empty() ? "" : ", ",
                           kind->name);
  return fmt::format(R"({{"anyOf": [{}]}})", kinds);
}

std::string route_of(const Tool& tool) {
  const ToolUsage usage = usage_of(tool, files_property);
  return fmt::format(
      R"("{}{}": {{"post": {{"operationId": "{}", "description": "{}", "requestBody": )"
      R"({{"required": true, "content": {{"application/json": {{"schema": {}}}}}}}, )"
      R"("responses": {{"200": {{"description": "the answer, yes or no", "content": )"
      R"({{"application/json": {{"schema": {}}}}}}}, )"
      R"("default": {{"$ref": "#/components/responses/problems"}}}}}}}})",
      api_root, tool.name, tool.name, json_escaped(usage.summary), usage.schema, answers_of(tool));
}

std::string problems_schema() {
  return R"({"type": "object", "required": ["problems"], "properties": {"problems": )"
         R"({"type": "array", "items": {"type": "object", "required": ["text"], "properties": )"
         R"({"key": {"type": "string", "description": "of the scenario; may be empty"}, )"
         R"("text": {"type": "string", "description": "as the command line says it"}}}}}})";
}

}  // namespace

std::string openapi_document() {
  std::string paths = fmt::format(
      R"("{}": {{"get": {{"security": [], "responses": {{"200": {{"description": "it serves"}}}}}}}})",
      health_path);
  for (const Tool& tool : all_tools()) paths += ", " + route_of(tool);
  std::string schemas;
  for (const ResultKind* kind : result_kinds())
    schemas += fmt::format(R"({}"{}": {})", schemas.empty() ? "" : ", ", kind->name,
                           one_line_json(json_schema(*kind)));
  return fmt::format(
      R"({{"openapi": "3.1.0", "info": {{"title": "stepsim", "version": "{}", )"
      R"("description": "Each route is a command; its answer is what the command prints with --json."}}, )"
      R"("servers": [{{"url": "../.."}}], "security": [{{"bearer": []}}, {{"query": []}}], "paths": {{{}}}, )"
      R"("components": {{"schemas": {{{}}}, "responses": {{"problems": {{)"
      R"("description": "what is wrong", "content": {{"application/json": {{"schema": {}}}}}}}}}, )"
      R"("securitySchemes": {{"bearer": {{"type": "http", "scheme": "bearer"}}, )"
      R"("query": {{"type": "apiKey", "in": "query", "name": "token"}}}}}}}}
)",
      stepsim_version, paths, schemas, problems_schema());
}

}  // namespace stepsim
