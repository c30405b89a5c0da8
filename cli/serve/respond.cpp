#include "cli/serve/respond.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>

#include "cli/serve/answers.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
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
          to_json({{"problems", "what is wrong", list_of(problems, parts)}})};
}

// "127.0.0.1" of "127.0.0.1:8420".
std::string without_port(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  const bool port =
      colon != std::string::npos &&
      std::all_of(host.begin() + static_cast<std::ptrdiff_t>(colon) + 1, host.end(), is_digit);
  return port ? host.substr(0, colon) : host;
}

// In a time that does not tell how much of it is right.
bool is_token(const std::string& word, const std::string& token) {
  if (token.empty() || word.size() != token.size()) return false;
  unsigned differ = 0;
  for (std::size_t i = 0; i < word.size(); ++i)
    differ |= static_cast<unsigned char>(word[i]) ^ static_cast<unsigned char>(token[i]);
  return differ == 0;
}

// A page of somebody else's may call by a name that leads here, or ask from where it is.
const char* why_not(const Serving& serving, const Request& request, const std::string& token) {
  if (!holds(serving.hosts, without_port(request.host)))
    return "this server is not called by that name";
  if (!request.origin.empty() && request.origin != "http://" + request.host)
    return "another page may not ask here";
  if (!is_token(token, serving.token))
    return "the link's token is missing or old: open the link that `stepsim serve` printed";
  return nullptr;
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
    return {200, std::string(route.type), route.answer(serving, question)};
  } catch (const UserError& error) {
    return problems_response(422, error.problems());
  } catch (const std::bad_alloc&) {
    return refusal(500, "this machine has too little memory to compute it");
  } catch (const std::exception& error) {
    return refusal(500, fmt::format("this is a bug of ours: {}", error.what()));
  }
}

}  // namespace

Response refusal(int status, std::string_view why) {
  return problems_response(status, {{.message = std::string(why)}});
}

Response respond(const Serving& serving, const Request& request) {
  constexpr std::string_view mark = "?token=";
  const std::size_t end = std::min(request.target.find(mark), request.target.size());
  const std::string path = request.target.substr(0, end);
  const std::string token =
      end < request.target.size() ? request.target.substr(end + mark.size()) : "";
  if (const char* why = why_not(serving, request, token)) return refusal(403, why);
  const auto route = std::ranges::find(routes, path, &Route::path);
  if (route == routes.end()) return refusal(404, "there is nothing here");
  if (request.method != route->method)
    return refusal(405, fmt::format("{} takes {} alone", route->path, route->method));
  if (route->method == "POST" && !request.type.starts_with(json_type))
    return refusal(415, "expected JSON");
  return answer(serving, *route, request);
}

}  // namespace stepsim
