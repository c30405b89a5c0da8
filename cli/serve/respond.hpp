// This turns a request of a browser into what it is told, without sockets: who may ask, and what
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/serve/fence.hpp"

namespace stepsim {

struct NamedToken {
  std::string name, token;  // the name is of whoever has it; "": of one link for all
};

// This says what is served, and to whom.
struct Serving {
  Fence fence;
  std::vector<std::string> hosts{};  // names by which browsers may call, in small letters
  std::uint16_t port = 0;            // where they call
  std::vector<NamedToken> tokens{};  // without one of them nobody is answered
  std::string origin{};              // of the pages that a proxy shows, https://example.org
  std::string root{};                // its path to this server: /stepsim; "" for /
};

struct Request {
  std::string method, target, host;
  std::string origin{}, type{}, body{}, authorization{};
};

struct Response {
  int status = 200;
  std::string type, body;
};

// Returns whose token a request holds, in its target or as "Bearer TOKEN"; null where it has none.
const NamedToken* token_in(const Serving& serving, std::string_view target,
                           std::string_view authorization);
// Returns the path of a target, as it is without a proxy.
std::string_view path_in(const Serving& serving, std::string_view target);
constexpr std::string_view no_token =
    "the link's token is missing or old: open the link that `stepsim serve` printed";

// Answers a request, once in a process: posted files go into its current folder.
Response respond(const Serving& serving, const Request& request);

// Returns a refusal, as every other answer that is none: {"problems": [{"text": ...}]}.
Response refusal(int status, std::string_view why);

}  // namespace stepsim
