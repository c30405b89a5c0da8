#include "cli/serve/respond.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "analysis/report/page.hpp"
#include "cli/serve/answers.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/machine_error.hpp"
#include "sim/base/record.hpp"

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

struct Target {
  std::string_view path, token;
};
Target target_of(std::string_view target) {
  constexpr std::string_view mark = "?token=";
  const std::size_t end = std::min(target.find(mark), target.size());
  return {target.substr(0, end), target.substr(std::min(end + mark.size(), target.size()))};
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
  const std::string host = in_small_letters(request.host);
  if (!is_called(serving, host)) return "this server is not called by that name and port";
  if (!request.origin.empty() && in_small_letters(request.origin) != "http://" + host)
    return "another page may not ask here";
  return shows_token(serving, request.target) ? "" : no_token;
}

// Returns whether the type is JSON; "application/json; charset=utf-8" is, too.
bool is_json(std::string_view type) {
  return in_small_letters(type.substr(0, type.find_first_of("; \t"))) == json_type;
}

struct Route {
  std::string_view method, path, type;
  std::string (*answer)(const Serving& serving, const Question& question);
};
constexpr std::array routes{
    Route{"GET", "/", html_type, first_page}, Route{"POST", "/step", json_type, step_answer},
    Route{"POST", "/gap", json_type, gap_answer}, Route{"POST", "/file", json_type, file_answer},
    Route{"POST", "/page", html_type, report_page}};

Response answer(const Serving& serving, const Route& route, const Request& request) {
  try {
    const Question question = route.method == "POST" ? read_question(request.body) : Question{};
    put_files(serving, question);
    std::string body = route.answer(serving, question);
    if (route.type == json_type) body = page_json(body);
    return {200, std::string(route.type), std::move(body)};
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

bool shows_token(const Serving& serving, std::string_view target) {
  return is_token(target_of(target).token, serving.token);
}

Response respond(const Serving& serving, const Request& request) {
  if (const std::string_view why = why_not(serving, request); !why.empty())
    return refusal(403, why);
  const auto route = std::ranges::find(routes, target_of(request.target).path, &Route::path);
  if (route == routes.end()) return refusal(404, "there is nothing here");
  if (request.method != route->method)
    return refusal(405, fmt::format("{} takes {} alone", route->path, route->method));
  if (route->method == "POST" && !is_json(request.type)) return refusal(415, "expected JSON");
  return answer(serving, *route, request);
}

}  // namespace stepsim
