// These are small statements about figures, "step_time < 60 s and fits": sweeps keep, searches look
// for and claims assert them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"

namespace stepsim {

// A fact is a name's value; nothing: unknown here, which makes every statement about it false.
using Fact = std::variant<std::monostate, double, std::string>;

// A vocabulary is what a statement may speak of.
struct Vocabulary {
  // Returns a number's dimension; a name for which the first says nothing may still be a text.
  std::function<std::optional<Dimension>(std::string_view)> dimension;
  std::function<bool(std::string_view)> is_text;
  std::vector<std::string> names;  // for the nearest one, when a name is misspelt
};

//   statement = conjunction {"or" conjunction}
//   conjunction = negation {"and" negation}
//   negation = ["not"] ("(" statement ")" | "fits" | sum ("<" "<=" ">" ">=" "==" "!=") sum)
//   sum = product {("+" | "-") product}
//   product = atom {("*" | "/") atom}
//   atom = "(" sum ")" | quantity | name | "text"
// Quantities carry their units: 60 s, 80 GB.
class Statement {
 public:
  // `where` goes before messages: "--find". Throws UserError that shows the place.
  static Statement parse(std::string_view text, const Vocabulary& vocabulary,
                         std::string_view where);
  bool holds(const std::function<Fact(std::string_view)>& fact) const;
  const std::string& text() const { return text_; }

  struct Part {
    enum class Kind { number, text, name, sum, comparison, all, any, inverse, truth };
    Kind kind{};
    std::string word{};  // the name, the text, or the sign
    double number = 0;
    std::vector<Part> parts{};
  };

 private:
  std::string text_;
  Part root_;
};

}  // namespace stepsim
