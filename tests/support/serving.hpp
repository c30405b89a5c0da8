// One engine that serves requests by itself, as throughput benchmarks have it do.
#pragma once

#include <cstdint>
#include <functional>

#include "workloads/grpo/engine.hpp"

namespace stepsim {

struct Requests {
  std::int64_t count = 1;
  std::int64_t at_once = 0;  // a new one comes when one is answered; 0: all are there at once
  using Tokens = std::function<std::int64_t(std::uint64_t)>;  // of the n-th
  Tokens prompt, answer;
  std::int64_t asked = 0;  // most tokens of an answer; 0: what it has
  double front = 0;  // s of each in the server, one after the other, before the engine has any
};

struct Served {
  double seconds = 0;      // from the first request to the last token
  double prompted = 0;     // tokens of prompts
  double generated = 0;    // tokens of answers
  double first_token = 0;  // s from a request to its first token, mean
  double per_token = 0;    // s between the tokens behind it, mean over requests
  double latency = 0;      // s from a request to its last token, mean
  double running = 0;      // requests at work, mean over time
  double held = 0;         // with those that wait in the engine
  EngineTotals totals{};
};

// Throws UserError when no request finds room.
Served serve(const DecodeModel& decode, const EngineLimits& limits, const Requests& requests);

}  // namespace stepsim
