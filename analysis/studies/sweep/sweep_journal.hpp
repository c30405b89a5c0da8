// The points of a sweep that are done, on disk as soon as they are: what a killed sweep resumes
// from.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "analysis/studies/outcome/metrics.hpp"

namespace stepsim {

// The journal has one line per point with its own checksum; a line that was cut off is dropped.
class SweepJournal {
 public:
  // Makes the file, or goes on with it if it is `identity`'s. Throws UserError when it belongs to
  // another sweep, or when somebody else is writing it.
  SweepJournal(std::string path, std::string_view identity);
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;
  ~SweepJournal();

  const std::map<std::size_t, Outcome>& finished() const { return finished_; }
  void add(std::size_t index, const Outcome& outcome);
  // To be called once a second at least: what was added is on the drive two seconds later.
  void sync_if_due();

 private:
  void append(std::string_view line);
  void sync();

  std::string path_;
  int file_ = -1;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
  bool all_synced_ = true;
  std::map<std::size_t, Outcome> finished_;
};

// Returns FNV-1a of 64 bits: a name for content, no protection against anybody.
std::uint64_t checksum(std::string_view bytes, std::uint64_t before = 0xcbf29ce484222325);

}  // namespace stepsim
