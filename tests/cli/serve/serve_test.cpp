// What a request to `serve` is told, without a socket.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "analysis/report/page.hpp"
#include "cli/openapi.hpp"
#include "cli/serve/child.hpp"
#include "cli/serve/offered.hpp"
#include "cli/serve/question.hpp"
#include "cli/serve/respond.hpp"
#include "cli/tools.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stepsim;

namespace {

const Serving serving{.fence = {.data = source_data()},
                      .hosts = {"127.0.0.1", "localhost", "[::1]"},
                      .port = 8420,
                      .tokens = {{"", "0123456789abcdef"}, {"ada", "fedcba9876543210"}}};

Request asking(const std::string& path, const std::string& body) {
  return {.method = "POST",
          .target = path + "?token=0123456789abcdef",
          .host = "127.0.0.1:8420",
          .type = "application/json",
          .body = body};
}

// In a folder of its own, where posted files go.
Response told(const Request& request, const Serving& by = serving) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  Response response = respond(by, request);
  std::filesystem::current_path(before);
  return response;
}

bool says(const Response& response, std::string_view words) {
  return response.body.find(words) != std::string::npos;
}

constexpr std::string_view tiny =
    R"({"a": {"source": "serve", "set": [{"key": "model", "value": "llama-3.2-1b"}]}})";

}  // namespace

TEST_CASE("who asks without the token, by another name or from another page is refused", "[cli]") {
  Request request = asking("/step", std::string(tiny));
  REQUIRE(told(request).status == 200);
  for (const std::string target :
       {"/step", "/step?token=", "/step?token=0123456789abcdee", "/step?token=0123456789abcdef0",
        "/step?other=1&token=0123456789abcdef", "/?token", ""}) {
    Request other = request;
    other.target = target;
    CHECK(told(other).status == 403);
  }
  for (const std::string host :
       {"", "evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost@evil.example",
        "[::1", "127.0.0.1:x", "127.0.0.1:", "localhost:9000", "127.0.0.1:84200", "[::1]:842"}) {
    Request other = request;
    other.host = host;
    CHECK(told(other).status == 403);
  }
  for (const std::string host :
       {"localhost:8420", "LOCALHOST:8420", "LocalHost", "[::1]:8420", "127.0.0.1"}) {
    Request other = request;
    other.host = host;
    CHECK(told(other).status == 200);
  }
  for (const std::string origin : {"http://evil.example", "null", "https://127.0.0.1:8420",
                                   "http://127.0.0.1:80", "http://localhost:8420"}) {
    Request other = request;
    other.origin = origin;
    CHECK(told(other).status == 403);
  }
  request.origin = "http://127.0.0.1:8420";
  CHECK(told(request).status == 200);
  request.host = "LOCALHOST:8420";
  request.origin = "http://localhost:8420";
  CHECK(told(request).status == 200);
}

TEST_CASE("a proxy may show the server elsewhere, and programs show their token in a head",
          "[cli]") {
  Serving behind = serving;
  behind.hosts.emplace_back("tools.example.org");
  behind.origin = "https://tools.example.org";
  behind.root = "/stepsim";
  Request request = asking("/step", std::string(tiny));
  request.host = "tools.example.org";
  request.origin = "https://tools.example.org";
  for (const char* path : {"/step", "/stepsim/step"}) {
    request.target = std::string(path) + "?token=fedcba9876543210";
    CHECK(told(request, behind).status == 200);
    CHECK(told(request).status == 403);
  }
  for (const char* path : {"/stepsimx/step", "/stepsim/stepsim/step", "/stepsim"}) {
    request.target = std::string(path) + "?token=fedcba9876543210";
    CHECK(told(request, behind).status == 404);
  }
  request.origin = "https://evil.example";
  CHECK(told(request, behind).status == 403);
  Request bearer = asking("/step", std::string(tiny));
  bearer.target = "/step";
  for (const auto& [said, status] :
       {std::pair{"Bearer fedcba9876543210", 200}, std::pair{"Bearer fedcba987654321", 403},
        std::pair{"Bearer ", 403}, std::pair{"Basic fedcba9876543210", 403}, std::pair{"", 403}}) {
    bearer.authorization = said;
    CHECK(told(bearer).status == status);
  }
  CHECK(token_in(serving, "/?token=fedcba9876543210", "")->name == "ada");
}

TEST_CASE("a route for programs answers as its command does with --json", "[cli]") {
  const std::string body = R"({"scenario": "serve", "set": ["model=llama-3.2-1b"], "samples": 0})";
  const Response response = told(asking("/api/v1/run", body));
  REQUIRE(response.status == 200);
  const Printed printed =
      answer_of(tool_of("run"), serving.fence.data,
                {"serve", "--set", "model=llama-3.2-1b", "--samples", "0", "--json"});
  CHECK(response.body == printed.out);
  CHECK(printed.err.empty());
  // A file that the question brings is the scenario, and a mapping is as good as a list.
  CHECK(says(
      told(asking(
          "/api/v1/memory",
          R"({"files": [{"name": "a.yaml", "text": "base_model: llama-3.2-1b\nsequence_len: 512\nmicro_batch_size: 1\n"}], "scenario": "a.yaml", "gpu": "h100", "set": {"job.micro_batch": 2}})")),
      R"("result": "memory")"));
  Request document = asking("/api/v1/openapi.json", "");
  CHECK(told(document).status == 405);
  document.method = "GET";
  CHECK(told(document).body == page_json(openapi_document()));
  CHECK(told(asking("/api/v1/validate", "{}")).status == 404);
}

TEST_CASE("a route for programs refuses what its tool does not take, in the words of the command",
          "[cli]") {
  const auto refused = [](std::string_view route, const std::string& body) {
    Response response = told(asking(fmt::format("/api/v1/{}", route), body));
    CHECK(response.status == 422);
    return response;
  };
  CHECK(says(refused("run", R"({"scenario": "serve", "gup": "h100"})"),
             R"(unknown option --gup (did you mean \"--gpu\"?))"));
  CHECK(says(refused("run", R"({"scenario": "serve", "output": "x.h5"})"),
             "output: is not taken here"));
  CHECK(says(refused("run", R"({"scenario": "serve", "set": [["a"]]})"), "expected a word"));
  CHECK(says(refused("run", "{}"), "which scenario?"));
  for (const char* outside : {"/etc/passwd", "../x.yaml", "a/../../x.yaml"}) {
    CHECK(says(refused("run", fmt::format(R"({{"scenario": "{}"}})", outside)),
               "no path outside what is served is taken"));
    CHECK(says(
        refused("run", fmt::format(R"({{"scenario": "serve", "set": ["model={}"]}})", outside)),
        "no path outside what is served is taken"));
  }
  // What begins like an option is none.
  CHECK(says(refused("run", R"({"scenario": "--output=x.h5"})"),
             R"(no file and no scenario \"--output=x.h5\")"));
}

TEST_CASE("only known paths and methods are answered", "[cli]") {
  for (const std::string path : {"/../etc/passwd", "/%2e%2e/etc/passwd", "//", "/step/", "/STEP",
                                 "http://127.0.0.1/", "/favicon.ico"})
    CHECK(told(asking(path, "{}")).status == 404);
  for (const std::string method :
       {"PUT", "DELETE", "OPTIONS", "HEAD", "GET", "TRACE", "", "RUBBISH"}) {
    Request request = asking("/step", std::string(tiny));
    request.method = method;
    CHECK(told(request).status == 405);
  }
  Request form = asking("/step", std::string(tiny));
  for (const char* type :
       {"text/plain", "", "application/jsonX", "application/json-seq", "x; application/json"}) {
    form.type = type;
    CHECK(told(form).status == 415);
  }
  for (const char* type :
       {"application/json; charset=utf-8", "Application/JSON", "application/json;charset=utf-8"}) {
    form.type = type;
    CHECK(told(form).status == 200);
  }
}

TEST_CASE("a question that is none names all that is wrong with it", "[cli]") {
  for (const std::string body :
       {"", "[]", "7", "{", "{\"a\": 1}", "{\"a\": {\"source\": [1]}}", "{\"b\": {}}",
        "{\"a\": {\"source\": \"serve\", \"set\": {\"key\": 1}}}", "{\"files\": [7]}"})
    CHECK(told(asking("/step", body)).status == 422);
  CHECK(says(told(asking("/step", R"({"a": {"source": "serve"}, "c": 1, "interval": 3})")),
             "the question:1: c: unknown key"));
  CHECK(says(told(asking("/step", "{}")), "the question names no scenario"));
}

TEST_CASE("what is wrong with a setting is said at its key, as the command line says it", "[cli]") {
  const Response response = told(asking(
      "/step",
      R"({"a": {"source": "serve", "set": [{"key": "strategy.zero", "value": "7"}, {"key": "model", "value": "lama-3.2-1b"}]}})"));
  CHECK(response.status == 422);
  CHECK(says(
      response,
      R"("key": "strategy.zero", "text": "--set: strategy.zero: expected 0, 1, 2, 3, fsdp or hsdp, found \"7\"")"));
  CHECK(
      says(response, R"(--set: model: no model \"lama-3.2-1b\" (did you mean \"llama-3.2-1b\"?))"));
}

TEST_CASE("only what is offered is a source", "[cli]") {
  for (const std::string source :
       {"/etc/passwd", "../../etc/passwd", "seeds/../serve", "README.md", "nothing", ""}) {
    const Response response =
        told(asking("/step", fmt::format(R"({{"a": {{"source": "{}"}}}})", source)));
    CHECK(response.status == 422);
    CHECK(says(response, fmt::format("no scenario \\\"{}\\\" is served", source)));
  }
  TemporaryFolder own;
  put_bytes(own.file("mine.yaml"), read_file(serving.fence.data.file("scenarios/serve.yaml")));
  Serving more = serving;
  more.fence.folders = {own.path()};
  more.fence.readable = {own.path()};
  const std::string body = fmt::format(R"({{"a": {{"source": "{}"}}}})", own.file("mine.yaml"));
  CHECK(told(asking("/step", body), more).status == 200);
  CHECK(told(asking("/step", body)).status == 422);
  CHECK(says(told(asking("/step", R"({"a": {"source": "grpo-7b-two-nodes"}})")),
             "is a GRPO job: `stepsim run` answers, this page shows training steps"));
}

TEST_CASE("whether there is a file outside is not told", "[cli]") {
  TemporaryFolder own, other;
  put_bytes(other.file("config.json"), "{}");
  put_bytes(own.file("mine.yaml"), read_file(serving.fence.data.file("scenarios/serve.yaml")));
  Serving more = serving;
  more.fence.folders = {own.path()};
  more.fence.readable = {own.path()};
  const auto said_of = [&](const std::string& key, const std::string& value) {
    return told(
               asking("/step",
                      fmt::format(
                          R"({{"a": {{"source": "{}", "set": [{{"key": "{}", "value": "{}"}}]}}}})",
                          own.file("mine.yaml"), key, value)),
               more)
        .body;
  };
  const std::string there = other.path(), absent = other.file("no"),
                    up = fmt::format("../{}", std::filesystem::path(there).filename().string());
  for (const char* key : {"model", "strategy.deepspeed", "stack", "strategy.optimizer"})
    for (const std::string& value :
         {there, absent, there + "/config.json", fmt::format("[{}]", there),
          fmt::format("{{path: {}}}", absent), std::string("/etc/passwd"),
          std::string("//etc/passwd"), up, "x/../" + up, own.path() + "/" + up, own.path() + "2",
          std::string(R"(a\\x2fb)")})
      CHECK(said_of(key, value)
                .find(fmt::format(R"("text": "--set: {}: no path outside what is served is taken")",
                                  key)) != std::string::npos);
  // A setting may name what is served, and names with a slash that are no path.
  CHECK(said_of("model", own.file("no.json")).find("no path outside") == std::string::npos);
  CHECK(said_of("model", "meta-llama/Llama-3.2-1B").find("step_time_s") != std::string::npos);
}

TEST_CASE("of a folder what cannot be begun with is left out, with the reason", "[cli]") {
  TemporaryFolder own, other;
  const std::string sound = read_file(serving.fence.data.file("scenarios/serve.yaml"));
  put_bytes(own.file("mine.yaml"), sound);
  put_bytes(own.file("list.yaml"), "- a list\n");
  put_bytes(own.file("broken.yml"), "a: [1\n");
  put_bytes(own.file("compose.yaml"), "services:\n  web:\n    image: nginx\nvolumes: {}\n");
  put_bytes(own.file("grpo.yaml"),
            read_file(serving.fence.data.file("scenarios/grpo/grpo-7b-two-nodes.yaml")));
  put_bytes(own.file("notes.txt"), "none of ours");
  put_bytes(other.file("out.yaml"), sound);
  REQUIRE(::mkfifo(own.file("pipe.yaml").c_str(), 0600) == 0);
  std::filesystem::create_symlink(other.file("out.yaml"), own.file("link.yaml"));
  std::filesystem::create_symlink(own.file("mine.yaml"), own.file("same.yaml"));
  std::filesystem::create_symlink(own.file("nothing"), own.file("dangling.yaml"));
  std::filesystem::create_directory(own.file("folder.yaml"));
  Serving more = serving;
  more.fence.folders = {own.path()};
  more.fence.readable = {own.path()};
  const Offered offered = read_offered(more);
  CHECK(holds(offered.sources, own.file("mine.yaml")));
  CHECK(holds(offered.sources, own.file("same.yaml")));
  CHECK(holds(offered.sources, std::string("serve")));
  std::string reasons;
  for (const Problem& each : offered.left_out)
    reasons += to_text(each).substr(own.path().size()) + "\n";
  CHECK(reasons ==
        "/broken.yml:2: is no valid YAML: did not find expected ',' or ']'\n"
        "/compose.yaml: is a file of Docker, which starts no training\n"
        "/dangling.yaml: cannot be read: No such file or directory\n"
        "/folder.yaml: cannot be read: it is a folder\n"
        "/grpo.yaml: is a GRPO job: `stepsim run` answers, this page shows training steps\n"
        "/link.yaml: is a link to a file that is not served\n"
        "/list.yaml: expected a mapping of keys to values\n"
        "/pipe.yaml: cannot be read: it is no regular file\n");
  Request request = asking("/", "");
  request.method = "GET";
  const Response page = told(request, more);
  CHECK(page.status == 200);
  CHECK(says(page, "cannot be read: it is no regular file"));
  CHECK(says(
      told(asking("/step", fmt::format(R"({{"a": {{"source": "{}"}}}})", own.file("link.yaml"))),
           more),
      "link.yaml: is a link to a file that is not served"));
  more.fence.folders = {own.file("gone")};
  CHECK(says(told(request, more),
             fmt::format("\"left_out\": [\"{}: cannot be listed: No such file", own.file("gone"))));
  CHECK(told(asking("/step", std::string(tiny)), more).status == 200);
}

TEST_CASE("posted files are read as the command line reads them", "[cli]") {
  const std::string
      axolotl =
          "base_model: NousResearch/Llama-3.2-1B\\nsequence_len: 1024\\nmicro_batch_size: "
          "1\\ndeepspeed: deepspeed_configs/own.json\\n",
      zero = R"({\"zero_optimization\": {\"stage\": 2}})",
      config =
          R"({\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 1024, \"intermediate_size\": 4096, \"num_attention_heads\": 16, \"num_hidden_layers\": 4, \"vocab_size\": 1000, \"max_position_embeddings\": 2048})";
  const std::string files = fmt::format(
      R"("files": [{{"name": "train.yaml", "text": "{}"}}, {{"name": "own.json", "text": "{}"}}, {{"name": "config.json", "text": "{}"}}])",
      axolotl, zero, config);
  const Response roles = told(asking("/file", fmt::format("{{{}}}", files)));
  CHECK(roles.status == 200);
  for (const char* role :
       {R"("name": "train.yaml", "role": "source", "title": "an Axolotl file")",
        R"("name": "own.json", "role": "deepspeed")", R"("name": "config.json", "role": "model")"})
    CHECK(says(roles, role));
  const Response step = told(asking(
      "/step",
      fmt::format(
          R"({{"a": {{"source": "train.yaml", "set": [{{"key": "cluster.node", "value": "mi300x-8"}}]}}, {}}})",
          files)));
  CHECK(says(step, "\"subtitle\": \"llama-3.2-1b on 1 x mi300x-8"));
  CHECK(says(step, R"({"key": "strategy.zero", "value": "2")"));
  CHECK(says(step, "\"command\": \"stepsim run train.yaml --set cluster.node=mi300x-8\""));
  CHECK(says(
      told(asking(
          "/step",
          fmt::format(
              R"({{"a": {{"source": "serve", "set": [{{"key": "model", "value": "config.json"}}]}}, {}}})",
              files))),
      "on 1 x h100-8"));
  Serving open = serving;
  open.fence.shut_in = false;
  CHECK(says(told(asking("/file", fmt::format("{{{}}}", files)), open),
             "no file is taken: this kernel has no Landlock to keep other files from it"));
  CHECK(says(
      told(asking(
               "/step",
               R"({"a": {"source": "serve", "set": [{"key": "model", "value": "/etc/passwd"}]}})"),
           open),
      "--set: model: no path is taken: this kernel has no Landlock to keep other files from it"));
}

TEST_CASE("a posted script is read, and not run", "[cli]") {
  const TemporaryFolder own;
  const std::string script = fmt::format(
      "import os\\nos.system('touch {}')\\nfrom trl import SFTConfig, SFTTrainer\\n"
      "SFTTrainer(model='meta-llama/Llama-3.2-1B', "
      "args=SFTConfig(per_device_train_batch_size=2)).train()\\n",
      own.file("ran"));
  const std::string files =
      fmt::format(R"("files": [{{"name": "train.py", "text": "{}"}}])", script);
  CHECK(says(told(asking("/file", fmt::format("{{{}}}", files))), R"("role": "source")"));
  const Response step = told(asking(
      "/step",
      fmt::format(
          R"({{"a": {{"source": "train.py", "set": [{{"key": "cluster.node", "value": "h100-8"}}]}}, {}}})",
          files)));
  CHECK(says(step, "\"subtitle\": \"llama-3.2-1b on 1 x h100-8"));
  CHECK_FALSE(std::filesystem::exists(own.file("ran")));
}

TEST_CASE("a posted file has a name without a path", "[cli]") {
  for (const char* name : {"config.json", "Qwen3_8B-sft.yaml", "a.yml", "x.toml", "run.sh", "a.py"})
    CHECK(may_be_posted(name));
  for (const char* name : {"", "yaml", ".yaml", "../a.yaml", "/etc/a.yaml", "a/b.json", "a b.json",
                           "run.exe", "run.h5", "a.yaml\n"})
    CHECK_FALSE(may_be_posted(name));
  const Response refused = told(asking(
      "/file",
      R"({"files": [{"name": "../../x.json", "text": "{}"}, {"name": "run.h5", "text": ""}]})"));
  CHECK(refused.status == 422);
  CHECK(says(
      refused,
      "../../x.json: cannot be dropped: its name has to end in .yaml, .yml, .json, .toml, .py, "
      ".ipynb, .sh, .log, .txt or .csv and to hold letters, digits and ._- alone"));
  CHECK(says(refused, "run.h5: cannot be dropped: "));
}

TEST_CASE("a process that is shut in reads only what it may", "[cli]") {
  if (!can_shut_in()) return;  // a kernel without Landlock
  const TemporaryFolder given, own, other;
  put_bytes(given.file("in"), "1");
  put_bytes(other.file("out"), "2");
  const std::string heard = in_worker([&] {
    shut_in(std::vector{given.path()}, own.path());
    write_file(own.file("new"), "3");
    std::string text = read_file(given.file("in")) + read_file(own.file("new"));
    for (const std::string& refused : {other.file("out"), std::string("/etc/passwd")}) try {
        text += read_file(refused);
      } catch (const UserError& error) {
        text += error.what() == refused + ": cannot be read: Permission denied" ? "." : "?";
      }
    try {
      write_file(given.file("in"), "4");
    } catch (const UserError&) {
      text += '!';
    }
    return text;
  });
  CHECK(heard == "13..!");
}

TEST_CASE("the first page holds every key and offers no GRPO job", "[cli]") {
  Request request = asking("/", "");
  request.method = "GET";
  const Response page = told(request);
  CHECK(page.status == 200);
  CHECK(page.type.starts_with("text/html"));
  for (const char* key :
       {"strategy.zero", "job.micro_batch", "strategy.offload.optimizer", "cluster.nodes"})
    CHECK(says(page, fmt::format("{{\"key\": \"{}\"", key)));
  CHECK(says(page, "\"llama32-3b-sft-zero3\""));
  CHECK_FALSE(says(page, "\"grpo-7b-two-nodes\""));
}
