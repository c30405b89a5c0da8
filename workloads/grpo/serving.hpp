// One engine that serves requests by itself, as throughput benchmarks have it do.
#pragma once

#include <cstdint>
#include <functional>

#include "workloads/grpo/engine.hpp"

namespace stepsim {

struct Requests {
  std::int64_t count = 1;
  std::int64_t at_once = 0;  // a new one comes when one is answered; 0: all are there at once
  std::int64_t prompt = 1;   // tokens
  std::function<std::int64_t(std::uint64_t)> answer;  // tokens of the n-th
};

struct Served {
  double seconds = 0;      // from the first request to the last token
  double prompted = 0;     // tokens of prompts
  double generated = 0;    // tokens of answers
  double first_token = 0;  // s from a request to its first token, mean
  double per_token = 0;    // s between the tokens behind it, mean over requests
  double latency = 0;      // s from a request to its last token, mean
};

// Throws UserError when no request finds room.
Served serve(const DecodeModel& decode, const EngineLimits& limits, const Requests& requests);

}  // namespace stepsim
