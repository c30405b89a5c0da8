// The reading of expressions of Python: the grammar, names and their assignments, and functions
// that give back a value without a run. Its parts stand in three files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/text/python_values.hpp"

namespace stepsim::python {

using Kind = PythonValue::Kind;
using Tokens = std::span<const PythonToken>;

inline constexpr const char* too_many = "names that hang on too many others";
inline constexpr std::size_t most_known = 20000;       // names whose values are kept
inline constexpr int deepest_literal = 48;             // names that are assigned names
inline constexpr std::size_t most_reductions = 4000;   // steps of one value: people's take tens
inline constexpr std::size_t most_items = 1u << 12;    // of a list that is put together
inline constexpr std::size_t most_in_file = 1u << 16;  // of all values of a file: may be very many

PythonValue unknown(std::string why, std::string variable = "");
PythonValue of_text(std::string text);
PythonValue of_number(double number, bool whole);
PythonValue of_truth(bool truth);
bool truth_of(const PythonValue& value);
bool is_number(const PythonValue& value);
PythonValue as_number(const PythonValue& value, bool whole);
PythonValue calculated(const std::string& sign, const PythonValue& a, const PythonValue& b);
PythonValue compared(const std::string& sign, const PythonValue& a, const PythonValue& b);
bool same_values(const PythonValue& a, const PythonValue& b);
std::string joined(const std::string& left, const std::string& right);  // of paths

class Evaluation {
 public:
  explicit Evaluation(const PythonFile& file) : file_(file) {}

  PythonValue value(const PythonPlace& place, Tokens tokens);

  // Returns whether a guard holds, where all around `inside` do.
  std::optional<bool> holds(std::size_t scope, int guard, int inside);

 private:
  static constexpr int no = 0, yes = 1, open = 2;

  int around(int guard) const { return file_.guards[static_cast<std::size_t>(guard)].around; }
  bool is_around(int guard, int inside) const;

  int verdict_of(std::size_t scope, int guard);

  bool is(std::string_view text) const;
  bool take(std::string_view text);

  PythonValue tuple();

  // Brackets in brackets, and signs before signs; with names that are assigned names.
  struct Nested {
    int& depth;
    explicit Nested(int& counter) : depth(counter) { ++depth; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --depth; }
    bool too_deep() const { return depth > 200; }
  };

  PythonValue choice();

  PythonValue either();
  PythonValue both();
  PythonValue negation();

  PythonValue comparison();

  PythonValue sum();
  PythonValue product();
  PythonValue power();

  // Reads an atom, and .name, (...) and [...] behind it.
  PythonValue trailed();

  PythonValue atom();

  static PythonValue literal_number(const std::string& text);

  PythonValue listed(std::string_view end);

  PythonValue dictionary(int line);
  static void put(PythonValue& table, const std::string& key, PythonValue item);

  // Up to the bracket that closes the one that was taken.
  void skip_brackets();

  PythonValue filled_in(const PythonToken& token);

  // A dotted name, and what is asked of it.
  PythonValue named(const PythonToken& first);

  PythonValue from_environment(const std::string& name, const PythonValue* fallback);

  const std::string* given(const std::string& name);

  // ---- what is asked of values ----

  // x[key], behind the bracket; `name` is what stands before it.
  PythonValue subscripted(PythonValue value, const std::string& name, int line);

  // A name that is set to a file of settings stands for what that holds.
  PythonValue as_settings(PythonValue value) const;

  PythonValue field(const PythonValue& value, const std::string& name, int line);

  // What a class says of a field: its body, or `self.name = ...` of its methods.
  std::optional<PythonValue> attribute(const std::string& type, const std::string& name);
  std::optional<PythonValue> property_of(const std::string& type, const std::string& name);

  PythonValue method(const PythonValue& value, const std::string& name,
                     const std::vector<PythonValue>& told, int line);

  static PythonValue split(const std::string& text, const std::string& sign);

  // ---- calls ----

  std::vector<PythonValue> arguments(PythonValue* keywords = nullptr);

  PythonValue called(const std::string& name, int line);

  // Functions of Python and of libraries that change no value, or a simple one.
  std::optional<PythonValue> known_call(const std::string& name, const std::string& last,
                                        const std::vector<PythonValue>& told,
                                        const PythonValue& keywords);
  std::optional<PythonValue> library_call(const std::string& name, const std::string& last,
                                          const std::vector<PythonValue>& told,
                                          const PythonValue& keywords);
  PythonValue returned(std::size_t scope, int line, const std::vector<PythonValue>& told,
                       const PythonValue& keywords);
  PythonValue returned(std::size_t scope, int line);

  // ---- names ----

  PythonValue lookup(const std::string& name, int line);
  // config.NAME, of a module that is imported.
  std::optional<PythonValue> of_module(const std::string& before, const std::string& name);
  static PythonValue with_variable(PythonValue value, const std::string& variable,
                                   const std::string& name, int line);

  // "a.b", where the file assigns just that before this place.
  std::optional<PythonValue> assigned_place(const std::string& name);

  PythonValue plain_name(const std::string& name);

  // What a parameter of a function is: what the one who calls it says, the command line, its
  // default.
  std::optional<PythonValue> parameter(std::size_t scope, const std::string& name);
  std::optional<PythonValue> told_by(const PythonCall& call, const std::string& name,
                                     std::size_t index);

  // @hydra.main(config_path="conf", config_name="train")
  std::optional<PythonValue> from_hydra(const PythonTokens& decorator);

  static PythonValue value_given(const std::string& text);
  // Holds what the starter of a file says for an argument of it.
  std::optional<PythonValue> started_with(const std::string& argument) const;

  // Returns what a name is at a place: the last assignment before it that runs; of those that may
  // run all have to say the same. Where all stand behind it, in a loop, these count.
  std::optional<PythonValue> assigned(const PythonPlace& place, const std::string& name);
  std::optional<PythonValue> assigned(const PythonPlace& place, const std::string& name,
                                      bool behind);

  // A call under way, with what it is told.
  struct Frame {
    std::size_t scope;
    std::vector<PythonValue> told;
    PythonValue keywords;
  };
  static constexpr std::size_t deepest_call = 8;

  const PythonFile& file_;
  std::vector<Frame> frames_{};
  Tokens rest_{};
  PythonPlace place_{};
  std::size_t steps_ = 0;
  int nesting_ = 0, depth_ = 0;
};

}  // namespace stepsim::python
