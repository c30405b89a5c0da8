// This writes entries of the catalogue as text, which say only what a fit found.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/studies/fidelity/robust_fit.hpp"

namespace stepsim {

class EntryText {
 public:
  // `like` names what the entry is like in all else. Each source is a comment with its errors.
  EntryText(std::string_view written_by, const std::string& name, const std::string& like,
            std::span<const FittedSource> sources);

  // `name` has points in it: "protocols.simple.efficiency".
  void add(std::string_view name, const std::string& value, const std::string& low,
           const std::string& high);
  const std::string& text() const { return text_; }

 private:
  std::string sources_;
  std::vector<std::string> open_;
  std::string text_;
};

}  // namespace stepsim
