// Advice for a file of another program is given in that program's own words, as it would be written
// there, and is tried through the same importer.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepsim {

class FileWords {
 public:
  // Reads the program's table, where the scenario comes from a file of one.
  FileWords(const Catalogue& data, const std::string& source, std::vector<Setting> settings,
            const Scenario& scenario);

  // Returns the same change by the program's keys, as far as it has keys for it and its importer
  // makes the same of them; what it has none for stays as it is. Returns nothing for a change that
  // the program cannot have.
  std::vector<Setting> of(const std::vector<Setting>& change) const;

  // Writes a change as it is to be made: "experts_implementation: grouped_mm"; keys of DeepSpeed's
  // file as they stand there; of a key that the program does not have it says so.
  std::string text(const std::vector<Setting>& change, double rows = 1) const;

 private:
  // A value of a key of ours, or `any`; VALUE in their words stands for it.
  struct Word {
    std::string key, value;
    std::vector<Setting> theirs;  // empty: the program cannot have it
  };

  const Word* find(const Setting& setting) const;
  bool makes_the_same(const std::vector<Setting>& theirs, const std::vector<Setting>& ours) const;

  Catalogue data_;
  std::string source_;
  std::string program_;  // "Axolotl"; empty: a scenario itself
  std::vector<Setting> settings_;
  const Scenario& scenario_;
  std::vector<Word> words_;
};

}  // namespace stepsim
