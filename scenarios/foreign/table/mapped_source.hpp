// Reads a file of settings by a table that says which of its keys is which key of a scenario. The
// writers in scenarios/foreign/write/ walk the same tables.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// A file may say these at the most.
inline constexpr std::int64_t most_rows = 1 << 16;  // of a micro-batch, and micro-batches of a step
inline constexpr std::int64_t most_tokens = 1 << 24;
inline constexpr std::int64_t most_lora_rank = 1 << 16;

// A key of another program that says what one key of a scenario says.
struct MappedKey {
  std::string theirs;  // "training.seq_len"
  std::string ours;    // "job.sequence"
  // These are their word and ours; of theirs in `near` the scenario only knows something that is
  // near to it.
  std::vector<std::pair<std::string, std::string>> words{}, near{};
  std::string absent{};   // what leaving it out means, in their words; empty: nothing
  std::string nothing{};  // a value that asks for nothing, in their words
  // Keys of the scenario, and the values beside which alone this one counts.
  std::vector<std::pair<std::string, std::string>> with{};
  std::vector<std::pair<std::string, std::string>> unless{};  // the same, beside which it does not
};

// Reads the table of a program, and the one that it is `like:`. `table` is its path below
// scenarios/foreign/: "programs/verl/verl".
Document import_facts(const Catalogue& data, std::string_view table);
std::vector<MappedKey> mapped_keys(const Document& facts);

// Returns their words for a value of the scenario; nothing where they have none.
std::optional<std::string> their_word(const MappedKey& key, const std::string& ours);

// This says how a file's keys are called: by their paths ("training.seq_len"), by paths in which
// dashes and low lines mean the same ("num-layers": "num_layers"), or, where blocks only sort them,
// by their last parts with dashes ("model.num_layers": "num-layers").
enum class NamesOfKeys : std::uint8_t { paths, low_lines, last_parts };

// Returns the first text; "" where nothing is listed.
std::string first_listed(const std::vector<std::string>& texts);

class MappedSource {
 public:
  // `program` is what people call it, `table` the file of its keys as import_facts() takes it.
  MappedSource(const SourceQuestion& question, const Document& source, std::string_view program,
               std::string_view table, NamesOfKeys names = NamesOfKeys::paths);

  // ---- what the file says; a key asked for counts as used ----
  bool says(std::string_view key);
  std::string text(std::string_view key, std::string_view fallback = "");
  // One of those that the table has for it among its `choices`, which is a problem otherwise.
  std::string choice(std::string_view key, std::string_view fallback = "");
  bool on(std::string_view key, bool fallback = false);
  std::int64_t whole(std::string_view key, std::int64_t fallback, std::int64_t low,
                     std::int64_t high);
  double number(std::string_view key, double fallback, double low, double high);
  std::vector<std::string> texts(std::string_view key);
  // All keys below this one that are there.
  std::vector<std::string> keys_below(std::string_view key) const;

  // A value that is "${another.key}" is what stands there.
  void follow_references();

  // Takes what a file of the same kind says besides, where this one says nothing, and returns the
  // file that that one goes on from in turn.
  std::string inherit(const std::string& file);

  // Takes the releases of programs that the file is run by, its own first: what leaving out keys
  // means follows from them. The release is what the command line, the file, files beside it or
  // keys that few releases have say; of the first one, else, the one that is taken.
  void take_releases(const std::vector<std::string>& programs);

  // ---- what becomes of it ----
  // The model that is named there: of the catalogue, a folder, or what an earlier run wrote.
  void put_model(std::string_view key);
  void put(std::string_view path, std::string value, std::string_view key, std::string remark = "");
  // Puts a number, or true or false.
  template <std::integral Value>
  void put(std::string_view path, Value value, std::string_view key, std::string remark = "") {
    put(path, fmt::format("{}", value), key, std::move(remark));
  }
  // Puts how products are multiplied, in the program's word for it: its table `precisions`. `place`
  // is where the word stands, if not at the key.
  void put_precision(std::string_view key, const std::string& word, std::string_view place = "");
  // Puts what the table of this name says of a word of the program's; `otherwise` is what is taken
  // for one that it does not know.
  void put_word(std::string_view path, std::string_view table, const std::string& word,
                std::string_view key, std::string_view otherwise);
  // The key was read, and the result is without it, or with something near to it.
  void without(std::string_view key, std::string why);
  // The same, and what is needed of memory is counted too low.
  void without_memory(std::string_view key, std::string why);
  void problem(std::string_view key, std::string_view message);
  void note(std::string text) { result_.notes.push_back(std::move(text)); }
  // Puts what the table says of each key that stands in it, and was not put before.
  void put_mapped();
  // The first stack of the table that the catalogue has for the machine's vendor.
  void put_stack(std::string_view list = "stacks");

  const SourceQuestion& question() const { return question_; }
  Table root() const { return source_.root(); }
  Table facts() const { return facts_.root(); }
  const SourceSurroundings& around() const { return around_; }
  Translation& result() { return result_; }
  // Model and machine are put; from now on they are known.
  void look_around();
  // Sorts the keys, throws what is wrong.
  Translation finish();

 private:
  struct Leaf {
    std::string name;
    std::string path;  // in the file
    Table holder;
    std::string key;
    int line = 0;
    bool empty = false;
  };

  void flatten(const Table& table, const std::string& path);
  std::string name_of(const std::string& path) const;
  const Leaf* find(std::string_view key) const;
  const Leaf* use(std::string_view key);
  int line_of_block(std::string_view key) const;
  void put_mapped(const MappedKey& key);
  bool is_set(const Leaf& leaf) const;
  std::string near_in_scenario(const Leaf& leaf) const;
  struct ToldKeys;
  void tell_variable(const Leaf& leaf, const ToldKeys& keys);
  SourceKey sorted(const Leaf& leaf, const ToldKeys& keys);

  const SourceQuestion& question_;
  const Document& source_;
  Document facts_;
  NamesOfKeys names_;
  std::vector<MappedKey> mapped_;
  std::string model_key_;  // what names the model
  struct WordOfRelease {
    std::string value, origin;
  };
  std::map<std::string, WordOfRelease, std::less<>> left_out_;  // what keys mean then
  std::vector<FileVariable> variables_;
  std::vector<Document> inherited_;  // which leaves look into
  std::vector<Leaf> leaves_;
  std::size_t unknown_ = 0;  // of these: keys that the program does not have
  std::vector<std::string> used_;
  struct Unmodelled {
    std::string key, why;
    bool needs_memory = false;
  };
  std::vector<Unmodelled> unmodelled_;
  SourceSurroundings around_;
  Translation result_;
};

}  // namespace stepsim
