// This turns a request of a browser into what it is told, without sockets: who may ask, and what
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/player.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// This says what is served, and to whom.
struct Serving {
  Catalogue data;                      // the catalogue
  std::vector<std::string> folders{};  // with scenarios of the user's own, as absolute paths
  std::vector<std::string> hosts{};    // names by which browsers may call, in small letters
  std::uint16_t port = 0;              // where they call
  std::string token{};                 // without it nobody is answered
  bool shut_in = true;                 // the kernel keeps requests to the folders below
  std::vector<std::string> readable{};
  Player player{};  // of what pages show
};

struct Request {
  std::string method, target, host;
  std::string origin{}, type{}, body{};
};

struct Response {
  int status = 200;
  std::string type, body;
};

// Returns whether what stands behind the method of a request holds the token.
bool shows_token(const Serving& serving, std::string_view target);
constexpr std::string_view no_token =
    "the link's token is missing or old: open the link that `stepsim serve` printed";

// Answers a request, once in a process: posted files go into its current folder.
Response respond(const Serving& serving, const Request& request);

// Returns a refusal, as every other answer that is none: {"problems": [{"text": ...}]}.
Response refusal(int status, std::string_view why);

}  // namespace stepsim
