#include "cli/serve/respond.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/report/page.hpp"
#include "cli/openapi.hpp"
#include "cli/serve/answers.hpp"
#include "cli/serve/offered.hpp"
#include "cli/tools.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::string_view json_type = "application/json", html_type = "text/html; charset=utf-8";

Response problems_response(int status, const std::vector<Problem>& problems) {
  const auto parts = [](const Problem& problem) -> Records {
    return {{"key", "of the scenario", problem.key},
            {"text", "as the command line says it", to_text(problem)}};
  };
  return {status, std::string(json_type),
          page_json(to_json({{"problems", "what is wrong", list_of(problems, parts)}}))};
}

// Compares both in a time that does not tell how much of the word is right.
bool is_token(std::string_view word, const std::string& token) {
  if (token.empty() || word.size() != token.size()) return false;
  unsigned differ = 0;
  for (std::size_t i = 0; i < word.size(); ++i)
    differ |= static_cast<unsigned char>(word[i]) ^ static_cast<unsigned char>(token[i]);
  return differ == 0;
}

// Returns whether the server is called so. Names have no case; whoever calls without a port knows
// of one already.
bool is_called(const Serving& serving, const std::string& host) {
  return std::ranges::any_of(serving.hosts, [&](const std::string& name) {
    return host == name || host == fmt::format("{}:{}", name, serving.port);
  });
}

// A page of somebody else's may call by a name that leads here, or ask from where it is.
std::string_view why_not(const Serving& serving, const Request& request) {
  const std::string host = in_small_letters(request.host),
                    origin = in_small_letters(request.origin);
  if (!is_called(serving, host)) return "this server is not called by that name and port";
  if (!origin.empty() && origin != "http://" + host &&
      (serving.origin.empty() || origin != serving.origin))
    return "another page may not ask here";
  return token_in(serving, request.target, request.authorization) != nullptr ? "" : no_token;
}

// Returns whether the type is JSON; "application/json; charset=utf-8" is, too.
bool is_json(std::string_view type) {
  return in_small_letters(type.substr(0, type.find_first_of("; \t"))) == json_type;
}

const Tool* tool_at(std::string_view path) {
  if (!path.starts_with(api_root)) return nullptr;
  const auto place = std::ranges::find(all_tools(), path.substr(api_root.size()), &Tool::name);
  return place == all_tools().end() ? nullptr : &*place;
}

std::string api(const Serving&, const Question&) {
  return openapi_document();
}

// Answers as the command does with --json.
Response tool_response(const Serving& serving, const Tool& tool, const std::string& body) {
  const ToolQuestion question = read_tool_question(tool, body);
  put_files(serving, {.files = question.files});
  std::vector<std::string> words = question.words;
  if (!serving.fence.shut_in)
    for (const std::string& word : words)
      if (word.find_first_of("/\\") != std::string::npos)
        throw UserError(
            fmt::format("\"{}\": no path is taken: {}", on_one_line(word), no_landlock));
  require_inside(words, serving.fence.readable, "");
  words.insert(words.begin(), "--json");
  const Printed printed = answer_of(tool, serving.fence.data, words);
  if (printed.code == exit_code::bug) return refusal(500, complaint_of(printed));
  if (printed.code == exit_code::input) return refusal(422, complaint_of(printed));
  return {200, std::string(json_type), page_json(printed.out)};
}

struct Route {
  std::string_view method, path, type;
  std::string (*answer)(const Serving& serving, const Question& question);
};
constexpr std::array routes{Route{"GET", "/", html_type, first_page},
                            Route{"GET", "/api/v1/openapi.json", json_type, api},
                            Route{"POST", "/step", json_type, step_answer},
                            Route{"POST", "/gap", json_type, gap_answer},
                            Route{"POST", "/file", json_type, file_answer},
                            Route{"POST", "/page", html_type, report_page}};

// Answers with what `act` returns, or with why it cannot.
template <class Act>
Response answer(const Act& act) {
  try {
    return act();
  } catch (const UserError& error) {
    return problems_response(422, error.problems());
  } catch (const std::bad_alloc&) {
    return refusal(500,
                   "more memory is needed than this machine has, or than a question may take: "
                   "`stepsim run` takes what there is");
  } catch (const MachineError& error) {
    return refusal(503, error.what());
  } catch (const std::exception& error) {
    return refusal(500, fmt::format("this is a bug of ours: {}", error.what()));
  }
}

}  // namespace

Response refusal(int status, std::string_view why) {
  return problems_response(status, {{.message = std::string(why)}});
}

const NamedToken* token_in(const Serving& serving, std::string_view target,
                           std::string_view authorization) {
  constexpr std::string_view mark = "?token=", bearer = "Bearer ";
  const std::size_t end = target.find(mark);
  const std::string_view word = end != std::string_view::npos ? target.substr(end + mark.size())
                                : authorization.starts_with(bearer)
                                    ? authorization.substr(bearer.size())
                                    : std::string_view();
  const NamedToken* found = nullptr;
  for (const NamedToken& each : serving.tokens)
    if (is_token(word, each.token)) found = &each;
  return found;
}

std::string_view path_in(const Serving& serving, std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  if (!serving.root.empty() && path.starts_with(serving.root + '/'))
    path.remove_prefix(serving.root.size());
  return path;
}

Response respond(const Serving& serving, const Request& request) {
  if (const std::string_view why = why_not(serving, request); !why.empty())
    return refusal(403, why);
  const std::string_view path = path_in(serving, request.target);
  const auto route = std::ranges::find(routes, path, &Route::path);
  const Tool* const tool = tool_at(path);
  if (route == routes.end() && tool == nullptr) return refusal(404, "there is nothing here");
  const std::string_view method = tool != nullptr ? "POST" : route->method;
  if (request.method != method) return refusal(405, fmt::format("{} takes {} alone", path, method));
  if (method == "POST" && !is_json(request.type)) return refusal(415, "expected JSON");
  if (tool != nullptr) return answer([&] { return tool_response(serving, *tool, request.body); });
  return answer([&] {
    const Question question = method == "POST" ? read_question(request.body) : Question{};
    put_files(serving, question);
    std::string body = route->answer(serving, question);
    if (route->type == json_type) body = page_json(body);
    return Response{200, std::string(route->type), std::move(body)};
  });
}

}  // namespace stepsim
