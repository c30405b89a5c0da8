// The sockets under `serve`. A process of its own for each request, so that one that takes long,
// or crashes, takes nobody along; the server itself keeps nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/serve/respond.hpp"

namespace stepsim {

struct Listening {
  std::string address;     // of this machine
  std::uint16_t port = 0;  // 0: a free one
};

// Until SIGINT or SIGTERM. `ready` hears of the port when browsers can call. Throws UserError where
// nobody can listen.
void serve(const Serving& serving, const Listening& where,
           const std::function<void(std::uint16_t port)>& ready);

// Whether only programs of this machine can call there. Throws UserError where it is no address.
bool is_of_this_machine_alone(const std::string& address);

}  // namespace stepsim
