// This describes the routes of `serve` for programs.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

inline constexpr std::string_view api_root = "/api/v1/";
inline constexpr std::string_view health_path = "/health";

// Properties that a question of `serve` has beside those of its tool.
inline constexpr std::string_view files_property =
    R"("files": {"type": "array", "description": "that the question brings along", "items": )"
    R"({"type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}}, )"
    R"("required": ["name", "text"], "additionalProperties": false}}, )";

// Returns the description as OpenAPI 3.1: a route for each tool, made of what its command takes and
// prints.
std::string openapi_document();

}  // namespace stepsim
