// A UserError says what the user did wrong so that it can be put right: place, key, expectation and
// nearest name.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace stepsim {

// A fault of form is one that nothing could mean, as an unknown key; a fault against a rule says
// clearly what cannot be, as more nodes than there are. A study of many scenarios takes the second
// as an answer.
enum class Fault : std::uint8_t { form, rule };

struct Problem {
  std::string file{};
  int line = 0;  // 0: the problem has no line
  std::string key{}, message{};
  Fault fault = Fault::form;

  static auto fields(auto& self) {
    return std::tie(self.file, self.line, self.key, self.message, self.fault);
  }
};

// Writes "a.yaml:12: strategy.zero: expected 0, 1, 2 or 3, found 4".
std::string to_text(const Problem& problem);

// A UserError is one or more mistakes in the input. It is caught only in main, which exits with
// code 2.
class UserError : public std::runtime_error {
 public:
  explicit UserError(std::string_view message, Fault fault = Fault::form);
  explicit UserError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// Throws a UserError about a file as a whole.
[[noreturn]] void fail(const std::string& file, std::string message);

// " (did you mean "h100-sxm"?)", or nothing when no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// Does the same; where none is near it names all of them if they are few, else the list that names
// them.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         std::string_view list);

// Writes "a, b or c".
std::string one_of(std::span<const std::string> candidates);

// Writes "expected a, b or c, found "d" (did you mean "c"?)".
std::string expected_one_of(std::span<const std::string> candidates, std::string_view found);

// No study may take it for an answer about its input, as it may a UserError: caught in main and
// between processes alone.
class MachineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stepsim
