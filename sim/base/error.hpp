// What the user did wrong, said so that it can be put right: place, key, expectation, nearest name.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace stepsim {

// Whether a file says something that nothing could mean, or says clearly what cannot be: an unknown
// key, or more nodes than there are. A study of many scenarios takes the second as an answer.
enum class Fault : std::uint8_t { form, rule };

struct Problem {
  std::string file{};
  int line = 0;  // 0: the problem has no line
  std::string key{};
  std::string message{};
  Fault fault = Fault::form;

  static auto fields(auto& self) {
    return std::tie(self.file, self.line, self.key, self.message, self.fault);
  }
};

// "a.yaml:12: strategy.zero: expected 0, 1, 2 or 3, found 4"
std::string to_text(const Problem& problem);

// One or more mistakes in the input. Caught only in main, which exits with code 2.
class UserError : public std::runtime_error {
 public:
  explicit UserError(std::string_view message, Fault fault = Fault::form);
  explicit UserError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// What is wrong with a file as a whole.
[[noreturn]] void fail(const std::string& file, std::string message);

// " (did you mean "h100-sxm"?)", or nothing when no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// The same; where none is near all of them if they are few, else the list that names them.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         std::string_view list);

// "a, b or c"
std::string one_of(std::span<const std::string> candidates);

}  // namespace stepsim
