// Time that work takes of processors: this process, and children that have ended.
#pragma once

#include <sys/resource.h>

#include <functional>

namespace stepsim {

inline double processor_seconds() {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    sum += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return sum;
}

inline double processor_seconds_of(const std::function<void()>& act) {
  const double begin = processor_seconds();
  act();
  return processor_seconds() - begin;
}

}  // namespace stepsim
