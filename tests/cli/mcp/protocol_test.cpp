// What a coding agent is told, without pipes.
#include "cli/mcp/protocol.hpp"

#include <fmt/format.h>

#include "sim/base/config.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

const Fence fence{.data = source_data(), .folders = {"/runs"}, .readable = {"/runs"}};
const std::string docs = source_data().folders().front() + "/docs";

McpHeard heard(const std::string& line) {
  return hear(fence, docs, line);
}

std::string request(std::string_view method, std::string_view params, std::string_view id = "7") {
  return fmt::format(R"({{"jsonrpc": "2.0", "id": {}, "method": "{}", "params": {}}})", id, method,
                     params);
}

std::string call(std::string_view name, std::string_view arguments) {
  return request("tools/call",
                 fmt::format(R"({{"name": "{}", "arguments": {}}})", name, arguments));
}

}  // namespace

TEST_CASE("a client and the program agree on a version, the client's where it is known", "[cli]") {
  for (const auto& [asked, taken] :
       {std::pair{"2025-06-18", "2025-06-18"}, std::pair{"1999-01-01", "2025-11-25"}}) {
    const std::string reply =
        heard(request("initialize", fmt::format(R"({{"protocolVersion": "{}"}})", asked))).reply;
    const Document said = parse_document(reply, "reply");
    CHECK(said.peek("result.protocolVersion") == taken);
    CHECK(said.peek("result.serverInfo.name") == "stepsim");
    CHECK(said.root().table("result").table("capabilities").has("tools"));
  }
}

TEST_CASE("an id comes back as it was", "[cli]") {
  for (const std::string id :
       {"0", "-3", "123456789012345678", R"("a")", R"("12")", R"("true")", R"("\"")"})
    CHECK_THAT(heard(request("ping", "{}", id)).reply,
               Contains(fmt::format(R"("id": {}, "result": {{}})", id)));
}

TEST_CASE("what is no request is refused, each with its code", "[cli]") {
  for (const auto& [line, code] :
       {std::pair{std::string("{"), -32700}, std::pair{std::string("\x01"), -32700},
        std::pair{std::string("{} {}"), -32700}, std::pair{std::string("[]"), -32700},
        std::pair{std::string("7"), -32700}, std::pair{std::string("{}"), -32600},
        std::pair{std::string(R"({"jsonrpc": "1.0", "id": 1, "method": "ping"})"), -32600},
        std::pair{std::string(R"({"jsonrpc": "2.0", "id": [1], "method": "ping"})"), -32600},
        std::pair{request("nothing", "{}"), -32601}, std::pair{request("ping", "[]"), -32600},
        std::pair{request("initialize", "{}"), -32602},
        std::pair{request("tools/call", "{}"), -32602}, std::pair{call("validate", "{}"), -32602},
        std::pair{request("resources/read", R"({"uri": "file:///etc/passwd"})"), -32002},
        std::pair{request("resources/read", R"({"uri": "stepsim://docs/../README.md"})"),
                  -32002}}) {
    INFO(line);
    const McpHeard told = heard(line);
    CHECK_FALSE(told.call);
    CHECK_THAT(told.reply, Contains(fmt::format(R"("error": {{"code": {}, )", code)));
    CHECK(told.reply.find('\n') == told.reply.size() - 1);
  }
}

TEST_CASE("notifications and answers are not answered", "[cli]") {
  for (const char* line :
       {"", "   ", R"({"jsonrpc": "2.0", "method": "notifications/initialized"})",
        R"({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "run"}})",
        R"({"jsonrpc": "2.0", "id": 1, "result": {}})"}) {
    const McpHeard told = heard(line);
    CHECK(told.reply.empty());
    CHECK_FALSE(told.call);
  }
  CHECK(
      heard(
          R"({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}})")
          .cancelled == "4");
}

TEST_CASE("each tool says what its command takes", "[cli]") {
  const std::string reply = heard(request("tools/list", "{}")).reply;
  const Document said = parse_document(reply, "reply");
  std::vector<std::string> names;
  for (const Table& tool : said.root().table("result").tables("tools")) {
    names.push_back(tool.text("name"));
    const Table schema = tool.table("inputSchema");
    CHECK(schema.text("type") == "object");
    const Table properties = schema.table("properties");
    CHECK(properties.has("full"));
    for (const char* never : {"output", "json", "workers", "help"})
      CHECK_FALSE(properties.has(never));
    for (const std::string& key : schema.texts("required")) CHECK(properties.has(key));
  }
  CHECK(names == std::vector<std::string>{"run", "memory", "explain", "plan", "sweep", "check",
                                          "anchor", "diagnose", "show", "list"});
  // Told once and not for each tool: an agent pays for every word of it.
  CHECK(reply.size() < 26000);
}

TEST_CASE("arguments become words of the command, and never an option that was not named",
          "[cli]") {
  const auto words = [](const McpHeard& told) { return told.call.value().words; };
  CHECK(words(heard(call("run", R"({"scenario": "-o", "samples": 0, "set": ["a=1", "b=2"]})"))) ==
        std::vector<std::string>{"--changes", "--brief", "--samples=0", "--set=a=1", "--set=b=2",
                                 "--", "-o"});
  CHECK(words(heard(call("explain", R"({"b": "y", "a": "x", "full": true})"))) ==
        std::vector<std::string>{"--json", "--", "x", "y"});
  CHECK(words(heard(call("check", R"({"claims": ["A fits", "a.yaml"], "set": {"k": 2}})"))) ==
        std::vector<std::string>{"--brief", "--set=k=2", "--", "A fits", "a.yaml"});
  const McpHeard told = heard(request(
      "tools/call", R"({"name": "list", "_meta": {"progressToken": "t"}, "arguments": {}})"));
  CHECK(told.call.value().progress_token == R"("t")");
}

TEST_CASE("wrong arguments are the tool's own lesson", "[cli]") {
  const auto lesson = [](std::string_view arguments) {
    const McpHeard told = heard(call("run", arguments));
    CHECK_FALSE(told.call);
    CHECK_THAT(told.reply, Contains(R"("isError": true)"));
    return told.reply;
  };
  CHECK_THAT(lesson(R"({"scenario": "a", "output": "b"})"),
             Contains("\"output: is not taken here\""));
  CHECK_THAT(lesson(R"({"scenario": {"a": 1}})"), Contains("scenario: expected a text"));
  CHECK_THAT(lesson(R"({"scenario": "a", "full": "no"})"),
             Contains("full: expected true or false"));
  for (const char* outside : {"/etc/passwd", "/runs/../etc/passwd", "../../../../../../etc/passwd"})
    CHECK_THAT(lesson(fmt::format(R"({{"scenario": "{}"}})", outside)),
               Contains("no path outside what is served is taken: what is in /runs may be read"));
  CHECK(heard(call("run", R"({"scenario": "/runs/a.yaml"})")).call);
}

TEST_CASE("catalogue, schemas and pages can be read", "[cli]") {
  const std::string listed = heard(request("resources/list", "{}")).reply;
  for (const char* uri : {"stepsim://catalogue/models", "stepsim://schemas/run",
                          "stepsim://docs/memory.md", "stepsim://docs/step/sharding.md"}) {
    CHECK_THAT(listed, Contains(fmt::format(R"("uri": "{}")", uri)));
    const std::string reply =
        heard(request("resources/read", fmt::format(R"({{"uri": "{}"}})", uri))).reply;
    CHECK_THAT(reply, Contains(fmt::format(R"("contents": [{{"uri": "{}")", uri)));
    CHECK(reply.size() > 500);
  }
}

TEST_CASE("a short answer is short, and ends where a line does", "[cli]") {
  const auto text_of = [](const std::string& line) {
    const Document said = parse_document(line, "reply");
    return said.root().table("result").tables("content").front().text("text");
  };
  const McpCall brief{.id = "1", .tool = &tool_of("run")};
  McpCall full = brief;
  full.full = true;
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += fmt::format("line {}, with some words behind it\n", i);
  const std::string cut = text_of(answer_line(brief, {0, lines, ""}));
  CHECK(cut.size() <= longest_short_answer);
  CHECK(cut.size() > longest_short_answer - 100);
  CHECK_THAT(cut, Contains("behind it\n... (\"full\": true gives the rest)\n"));
  CHECK(text_of(answer_line(full, {0, lines, ""})) == lines);
  CHECK(text_of(answer_line(brief, {1, "no\n", "note\n"})) == "no\nnote\n");
  // Letters of one long line stay whole.
  std::string letters = "a";
  for (int i = 0; i < 2000; ++i) letters += "\u00e9";
  CHECK(text_of(answer_line(brief, {0, letters, ""})).find("\uFFFD") == std::string::npos);
  const std::string failed = answer_line(brief, {2, "", "stepsim: a.yaml:3: zero: is wrong\n"});
  CHECK_THAT(failed, Contains(R"("text": "a.yaml:3: zero: is wrong"}], "isError": true)"));
}

TEST_CASE("progress only rises", "[cli]") {
  const McpCall call{.id = "1", .progress_token = "5"};
  double last = 0;
  CHECK_THAT(progress_line(call, "3 8 replays", last),
             Contains(R"("progressToken": 5, "progress": 3, "total": 8, "message": "replays")"));
  CHECK(progress_line(call, "2 8 replays", last).empty());
  CHECK(progress_line(call, "rubbish", last).empty());
  CHECK_FALSE(progress_line(call, "9 40 replays", last).empty());
}
