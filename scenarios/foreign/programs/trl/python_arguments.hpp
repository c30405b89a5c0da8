// Reads what the constructors of a Python program are told, under the names that a command line of
// TRL has for it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/programs/trl/python_source.hpp"
#include "scenarios/foreign/text/python_modules.hpp"
#include "sim/base/config.hpp"
#include "sim/base/error.hpp"

namespace stepsim {

// The last part of a dotted name: "SFTConfig" of "trl.SFTConfig".
std::string last_part_of(const std::string& name);
// Returns what a call is told by this keyword; null: it is not told.
const PythonTokens* keyword_of(const PythonCall& call, std::string_view name);

class PythonArguments {
 public:
  // `words` is the table `python` of trl.yaml: which classes and names mean what.
  PythonArguments(const PythonProgram& program, const PythonQuestion& question, Table words);

  void add_calls();
  Arguments finish();

  // The trainer as it is named, and the one of transformers or TRL that it is or derives from.
  const std::string& trainer() const { return trainer_; }
  const std::string& known_trainer() const { return known_; }
  int trainer_line() const { return trainer_line_; }
  bool is_loop() const { return loop_; }
  std::int64_t devices() const { return devices_; }
  bool shards() const { return shards_; }

 private:
  using Kind = PythonValue::Kind;

  void add(const PythonCall& call);
  void add_value(const std::string& key, const PythonTokens& tokens, const PythonCall& call,
                 int line);
  void put(const std::string& key, const PythonValue& value, int line);
  void put_text(const std::string& key, const std::string& yaml, int line);
  void add_keywords(const PythonCall& call, const std::string& front);
  void add_items(const PythonCall& call, const PythonCall::Keyword& keyword,
                 const std::string& front, const std::vector<std::string>& wanted);
  void add_parsed_file(const PythonCall& call);
  void add_model(const PythonCall& call);
  void add_adapter(const PythonCall& call);
  void add_trainer(const PythonCall& call);
  void add_settings_classes();
  void add_fit(const std::vector<PythonCall>& calls);
  void add_loop(const std::vector<PythonCall>& calls);
  void add_named(const std::string& key, std::string_view names, const PythonPlace& step);
  void refuse_reinforcement(const PythonCall& backward) const;
  void add_micro_batches(const std::vector<PythonCall>& calls);
  void add_optimizer(const PythonCall& call);
  void add_loader(const PythonCall& call);
  void add_lightning(const PythonCall& call);
  void add_autocast(const PythonCall& call);
  void add_deepspeed_of(const PythonCall& call);
  void add_deepspeed(const PythonValue& settings, int line);
  void add_cut(const std::vector<PythonCall>& calls);
  PythonValue longest_told(const std::vector<PythonCall>& calls, int& line) const;
  void add_frozen();
  bool is_trainer(const PythonCall& call) const;
  bool is_lightning(const PythonCall& call) const;
  std::string known_base(const std::string& name) const;
  bool is_listed(std::string_view list, const std::string& name) const;
  bool is_from_elsewhere(const std::string& name) const;
  bool counts(const std::string& name) const;
  bool is_settings(const std::string& name) const;
  void keep_own_settings(std::vector<PythonCall>& calls) const;
  void find_live_scopes();
  std::vector<PythonCall> live_calls();
  int line_of(const PythonCall& call, int line) const;

  const PythonProgram& program_;
  const PythonFile& file_;
  const PythonQuestion& question_;
  Table words_;
  std::vector<NamedValue> all_{};
  std::vector<UnknownArgument> unknown_{};
  std::set<std::string> seen_{};
  std::vector<bool> live_{};  // of the scopes: a run may come to them
  std::string trainer_{}, known_{};
  int trainer_line_ = 0;
  std::int64_t devices_ = 0;
  bool model_ = false, settings_ = false, loop_ = false, finds_matrices_ = false,
       of_transformers_ = false, adapters_off_ = false, handed_optimizer_ = false, shards_ = false;
  std::optional<Problem> unread_{};  // of a trainer that nothing is known of
};

}  // namespace stepsim
