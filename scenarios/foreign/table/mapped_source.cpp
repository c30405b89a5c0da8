#include "scenarios/foreign/table/mapped_source.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "scenarios/foreign/table/source_release.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "scenarios/read/releases.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using ForeignWords = std::vector<std::pair<std::string, std::string>>;

// Python, YAML and shells have their own words for the same things.
std::string plain(const std::string& said) {
  const std::string word = in_small_letters(said);
  if (word == "true" || word == "yes" || word == "on") return "true";
  if (word == "false" || word == "no" || word == "off") return "false";
  return said == "None" || said == "null" ? "" : said;
}

// Values that are there and ask for nothing.
bool asks_nothing(const std::string& value) {
  const std::string word = plain(value);
  return word.empty() || word == "none" || word == "false" || word == "0" || word == "0.0" ||
         word == "[]" || word == "\"\"" || word == "-1";
}

// The block, where the pattern is one that the key stands in.
std::string block_of(const std::string& pattern, const std::string& key) {
  return pattern.find('*') == std::string::npos ? key.substr(0, pattern.size()) : key;
}

// A block stands for the keys in it, "quantize*" for everything that begins so.
bool covers(std::string_view pattern, std::string_view key) {
  if (pattern.ends_with(".*")) pattern.remove_suffix(2);
  if (pattern.ends_with('*')) return key.starts_with(pattern.substr(0, pattern.size() - 1));
  return key.starts_with(pattern) && (key.size() == pattern.size() || key[pattern.size()] == '.');
}

const std::string* find_pattern(const std::vector<std::string>& patterns, std::string_view key) {
  const auto place = std::find_if(patterns.begin(), patterns.end(),
                                  [&](const std::string& each) { return covers(each, key); });
  return place == patterns.end() ? nullptr : &*place;
}

ForeignWords words_in(const Table& key, std::string_view name) {
  ForeignWords words;
  if (!key.has(name)) return words;
  const Table table = key.table(name);
  for (const std::string& theirs : table.keys()) words.emplace_back(theirs, table.text(theirs));
  return words;
}

const std::string* find_word(const ForeignWords& words, const std::string& theirs) {
  const auto place = std::find_if(words.begin(), words.end(), [&](const auto& each) {
    return in_small_letters(each.first) == in_small_letters(theirs);
  });
  return place == words.end() ? nullptr : &place->second;
}

// The value of a key that is not modelled with which nothing is missing: {nothing: 1, why: ...}.
std::string usual_value(const Table& reasons, const std::string& key) {
  return reasons.is_mapping(key) ? reasons.table(key).text("nothing") : "";
}

// Finds the nearest name in the key's block: of long paths nothing but the last part can be
// compared.
std::string near_in_block(const std::string& key, const std::vector<std::string>& known) {
  const std::size_t end = key.rfind('.') + 1;
  std::vector<std::string> beside;
  for (const std::string& each : known)
    if (each.rfind('.') + 1 == end && each.compare(0, end, key, 0, end) == 0)
      beside.push_back(each.substr(end));
  return did_you_mean(key.substr(end), beside);
}

// Returns what a text says; of a list the whole in one line.
std::string plain_value(const Table& holder, std::string_view key) {
  const std::string line = holder.one_line(key);
  if (line.find("${") != std::string::npos) return "";  // what another key says
  return line.starts_with('[') || line.starts_with('{') ? line : holder.text_or(key, "");
}

}  // namespace

Document import_facts(const Catalogue& data, std::string_view table) {
  Document facts = read_document(data.file(fmt::format("scenarios/foreign/{}.yaml", table)));
  const std::string base = facts.root().text_or("like", "");
  if (!base.empty()) facts.inherit(import_facts(data, base), {"like"}, {"read", "changes_nothing"});
  return facts;
}

std::vector<MappedKey> mapped_keys(const Document& facts) {
  std::vector<MappedKey> mapped;
  const Table keys = facts.root().table("keys");
  for (const std::string& theirs : keys.keys()) {
    MappedKey key{.theirs = theirs, .ours = ""};
    if (keys.is_mapping(theirs)) {
      const Table table = keys.table(theirs);
      key.ours = table.text("is");
      if (key.ours == "nothing")
        continue;  // read, or of no use, in the program that is like another
      key.words = words_in(table, "words");
      key.near = words_in(table, "near");
      key.absent = table.text_or("absent", "");
      key.nothing = table.text_or("nothing", "");
      key.with = words_in(table, "with");
      key.unless = words_in(table, "unless");
    } else {
      key.ours = keys.text(theirs);
    }
    mapped.push_back(std::move(key));
  }
  return mapped;
}

std::optional<std::string> their_word(const MappedKey& key, const std::string& ours) {
  if (key.words.empty()) return ours;
  const auto place = std::find_if(key.words.begin(), key.words.end(),
                                  [&](const auto& each) { return each.second == ours; });
  return place == key.words.end() ? std::nullopt : std::optional(place->first);
}

std::string first_listed(const std::vector<std::string>& texts) {
  return texts.empty() ? "" : texts.front();
}

MappedSource::MappedSource(const SourceQuestion& question, const Document& source,
                           std::string_view program, std::string_view table, NamesOfKeys names)
    : question_(question),
      source_(source),
      facts_(import_facts(question.data, table)),
      names_(names),
      mapped_(mapped_keys(facts_)),
      variables_(question.variables) {
  result_.file = question.file;
  result_.program = program;
  result_.lines.push_back(
      {"name", yaml_quoted(std::filesystem::path(question.file).stem().string()), "", 0, ""});
  flatten(source.root(), "");
  std::vector<Leaf> last;  // what was set stands behind what the file says
  for (Leaf& leaf : leaves_) {
    std::erase_if(last, [&](const Leaf& each) { return each.name == leaf.name; });
    last.push_back(std::move(leaf));
  }
  leaves_ = std::move(last);
}

void MappedSource::follow_references() {
  constexpr int most = 8;  // one after the other
  for (Leaf& leaf : leaves_)
    for (int turn = 0; turn < most && !leaf.empty; ++turn) {
      const std::string line = leaf.holder.one_line(leaf.key);
      if (line.starts_with('[') || line.starts_with('{')) break;
      const std::string said = leaf.holder.text_or(leaf.key, "");
      if (!said.starts_with("${") || !said.ends_with('}')) break;
      const auto place = std::find_if(leaves_.begin(), leaves_.end(), [&](const Leaf& each) {
        return each.path == said.substr(2, said.size() - 3);
      });
      if (place == leaves_.end() || &*place == &leaf) break;
      leaf.holder = place->holder;
      leaf.key = place->key;
      leaf.empty = place->empty;
    }
}

std::string MappedSource::inherit(const std::string& file) {
  inherited_.push_back(read_document(file));
  for (FileVariable& each : settle_variables(inherited_.back()))
    if (!holds(variables_, each.path, &FileVariable::path) && !source_.peek(each.path))
      variables_.push_back(std::move(each));
  result_.files.push_back(file);
  const std::vector<Leaf> own = std::move(leaves_);
  leaves_.clear();
  flatten(inherited_.back().root(), "");
  for (Leaf& leaf : leaves_) leaf.line = 0;
  std::erase_if(leaves_, [&](const Leaf& leaf) {
    return std::any_of(own.begin(), own.end(),
                       [&](const Leaf& each) { return each.name == leaf.name; });
  });
  leaves_.insert(leaves_.begin(), own.begin(), own.end());
  const Table root = inherited_.back().root();
  const std::string next = root.has("defaults") ? plain_value(root, "defaults") : "";
  return next.starts_with('[') ? first_listed(root.texts("defaults")) : next;
}

void MappedSource::put_model(std::string_view key) {
  const Leaf* leaf = use(key);
  model_key_ = key;
  const Leaf* there = find(key);
  const std::string said = there == nullptr ? "" : there->holder.one_line(there->key);
  // The last part of a path names a model; without that there is nothing to look for.
  if (!question_.decides("model") &&
      !variable_without_value(source_.root(), said.substr(said.rfind('/') + 1)).empty())
    return;
  const std::size_t before = result_.lines.size();
  if (leaf == nullptr)
    assume_model(question_, source_.root(), std::string(key), result_);
  else
    assume_model(question_, leaf->holder, leaf->key, result_);
  if (leaf != nullptr && result_.lines.size() > before) result_.lines.back().key = leaf->path;
}

std::string MappedSource::name_of(const std::string& path) const {
  const auto called = facts_.root().table_if("also_called");
  if (names_ == NamesOfKeys::paths) return called && called->has(path) ? called->text(path) : path;
  if (names_ == NamesOfKeys::low_lines) {
    std::string low = path;
    std::replace(low.begin(), low.end(), '-', '_');
    return low;
  }
  std::string name = path.substr(path.rfind('.') + 1);
  std::replace(name.begin(), name.end(), '_', '-');
  return called && called->has(name) ? called->text(name) : name;
}

void MappedSource::flatten(const Table& table, const std::string& path) {
  for (const std::string& key : table.keys()) {
    const std::string own = path.empty() ? key : fmt::format("{}.{}", path, key);
    if (table.is_mapping(key) && !table.table(key).keys().empty()) {
      flatten(table.table(key), own);
      continue;
    }
    const auto origin = table.origin(key);
    leaves_.push_back({name_of(own), own, table, key, origin ? origin->line : 0, !table.has(key)});
  }
}

const MappedSource::Leaf* MappedSource::find(std::string_view key) const {
  const auto place = std::find_if(leaves_.begin(), leaves_.end(),
                                  [&](const Leaf& leaf) { return leaf.name == key; });
  return place == leaves_.end() || place->empty ? nullptr : &*place;
}

const MappedSource::Leaf* MappedSource::use(std::string_view key) {
  if (!holds(used_, key)) used_.emplace_back(key);
  const Leaf* leaf = find(key);
  return leaf == nullptr || plain(plain_value(leaf->holder, leaf->key)).empty() ? nullptr : leaf;
}

bool MappedSource::says(std::string_view key) {
  return use(key) != nullptr;
}

std::string MappedSource::text(std::string_view key, std::string_view fallback) {
  if (const Leaf* leaf = use(key)) return plain_value(leaf->holder, leaf->key);
  const auto means = left_out_.find(key);
  return means == left_out_.end() ? std::string(fallback) : means->second.value;
}

void MappedSource::take_releases(const std::vector<std::string>& programs) {
  std::vector<std::string> keys;
  for (const Leaf& leaf : leaves_)
    if (!leaf.empty) keys.push_back(leaf.name);
  std::map<std::string, FoundRelease> below;  // that these run on
  for (const std::string& program : programs) {
    auto found = release_around(question_, program, keys);
    if (const auto known = below.find(program); !found && known != below.end())
      found = known->second;
    if (!found && program != programs.front()) continue;
    const std::string release = found ? found->release : assumed_release(question_.data, program);
    for (auto& [other, runs] : releases_below(question_.data, program, release))
      below.try_emplace(other, FoundRelease{runs, release_origin(program, release)});
    for (auto& [key, value] : release_words(question_.data, program, release))
      left_out_.try_emplace(key, std::move(value), release_origin(program, release));
    if (found)
      result_.lines.push_back(
          {fmt::format("{}.{}", releases_block, program), release, found->where, 0, ""});
    if (found && question_.known != nullptr && found->where == question_.known->title)
      result_.lines.back() = {result_.lines.back().path, release, "", 0,
                              fmt::format("the one that {} was written for", found->where)};
  }
}

std::string MappedSource::choice(std::string_view key, std::string_view fallback) {
  std::string said = text(key, fallback);
  const std::vector<std::string> known = facts().table("choices").texts(key);
  if (!said.empty() && !holds(known, said)) problem(key, expected_one_of(known, said));
  return said;
}

bool MappedSource::on(std::string_view key, bool fallback) {
  const std::string word = plain(text(key));
  return word.empty() ? fallback : is_yes(word);
}

std::int64_t MappedSource::whole(std::string_view key, std::int64_t fallback, std::int64_t low,
                                 std::int64_t high) {
  const Leaf* leaf = use(key);
  return leaf == nullptr ? fallback : leaf->holder.integer_or(leaf->key, fallback, low, high);
}

double MappedSource::number(std::string_view key, double fallback, double low, double high) {
  const Leaf* leaf = use(key);
  return leaf == nullptr ? fallback : leaf->holder.number_or(leaf->key, fallback, low, high);
}

std::vector<std::string> MappedSource::texts(std::string_view key) {
  const Leaf* leaf = use(key);
  return leaf == nullptr ? std::vector<std::string>{} : leaf->holder.texts_or(leaf->key);
}

std::vector<std::string> MappedSource::keys_below(std::string_view key) const {
  std::vector<std::string> keys;
  for (const Leaf& leaf : leaves_)
    if (leaf.path.starts_with(fmt::format("{}.", key))) keys.push_back(leaf.path);
  return keys;
}

// A block of keys is no leaf, and stands in the file all the same.
int MappedSource::line_of_block(std::string_view key) const {
  Table at = source_.root();
  for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
    if (!at.is_mapping(key.substr(0, dot))) return 0;
    at = at.table(key.substr(0, dot));
    key.remove_prefix(dot + 1);
  }
  const auto origin = at.is_mapping(key) ? at.origin(key) : std::nullopt;
  return origin ? origin->line : 0;
}

void MappedSource::put(std::string_view path, std::string value, std::string_view key,
                       std::string remark) {
  const Leaf* leaf = find(key);
  result_.lines.push_back({std::string(path), std::move(value),
                           leaf == nullptr ? std::string(key) : leaf->path,
                           leaf == nullptr ? line_of_block(key) : leaf->line, std::move(remark)});
  if (leaf != nullptr && question_.known != nullptr && leaf->line == 0 && !is_set(*leaf))
    result_.lines.back().by = question_.known->title;
  if (const auto means = left_out_.find(key); leaf == nullptr && means != left_out_.end())
    result_.lines.back().remark =
        fmt::format("{} is absent", std::exchange(result_.lines.back().key, means->second.origin));
}

void MappedSource::put_precision(std::string_view key, const std::string& word,
                                 std::string_view place) {
  const Table known = facts().table("precisions");
  if (known.has(word)) return put("strategy.precision", known.text(word), key, word);
  problem(key, fmt::format("{}{}expected {}, found \"{}\"{}", place, place.empty() ? "" : ": ",
                           one_of(known.keys()), word, did_you_mean(word, known.keys())));
}

void MappedSource::put_word(std::string_view path, std::string_view table, const std::string& word,
                            std::string_view key, std::string_view otherwise) {
  const Table words = facts().table(table);
  if (words.has(word)) return put(path, words.text(word), key, word);
  without(key, fmt::format("{}: {}", word, otherwise));
}

void MappedSource::without(std::string_view key, std::string why) {
  unmodelled_.push_back({std::string(key), std::move(why)});
}

void MappedSource::without_memory(std::string_view key, std::string why) {
  unmodelled_.push_back({std::string(key), std::move(why), true});
}

void MappedSource::problem(std::string_view key, std::string_view message) {
  if (const Leaf* leaf = find(key))
    leaf->holder.problem(leaf->key, message);
  else
    source_.root().problem(key, message);
}

void MappedSource::put_mapped() {
  for (const MappedKey& key : mapped_) put_mapped(key);
}

void MappedSource::put_mapped(const MappedKey& key) {
  const auto value_put = [&](std::string_view path) -> const std::string* {
    const auto place = std::find_if(result_.lines.begin(), result_.lines.end(),
                                    [&](const auto& line) { return line.path == path; });
    return place == result_.lines.end() ? nullptr : &place->value;
  };
  const auto stands = [&](const auto& other) {
    const std::string* value = value_put(other.first);
    return value != nullptr && *value == other.second;
  };
  const bool idle = !std::all_of(key.with.begin(), key.with.end(), stands) ||
                    std::any_of(key.unless.begin(), key.unless.end(), stands);
  const Leaf* leaf = use(key.theirs);
  const auto means = left_out_.find(key.theirs);
  const std::string& absent = means == left_out_.end() ? key.absent : means->second.value;
  const std::string said = plain(leaf == nullptr ? absent : plain_value(leaf->holder, leaf->key));
  if (idle || value_put(key.ours) != nullptr || said.empty() || said == key.nothing) return;
  if (key.words.empty()) return put(key.ours, said, key.theirs);
  if (const std::string* ours = find_word(key.words, said))
    return put(key.ours, *ours, key.theirs, *ours == said ? "" : said);
  if (const std::string* ours = find_word(key.near, said)) {
    without(key.theirs, fmt::format("{} is counted as {}", said, *ours));
    return put(key.ours, *ours, key.theirs, said);
  }
  std::vector<std::string> known;
  for (const ForeignWords* words : {&key.words, &key.near})
    for (const auto& [theirs, ours] : *words) known.push_back(theirs);
  problem(key.theirs, expected_one_of(known, said));
}

void MappedSource::look_around() {
  around_ = surroundings_of(question_, document_of(result_));
}

void MappedSource::put_stack(std::string_view list) {
  const std::string vendor = around_.cluster ? around_.cluster->gpu.vendor : "nvidia";
  const Table stacks = facts_.root().table(list);
  const std::vector<std::string> known = stacks.keys();
  const std::string stack =
      first_stack(question_.data, stacks.texts(holds(known, vendor) ? vendor : known.front()));
  result_.lines.push_back(
      {"stack", stack, "", 0, fmt::format("{} on {} GPUs", result_.program, vendor)});
}

// This is what the program's table says of keys, taken out of it once for all that a file has.
struct MappedSource::ToldKeys {
  Table reasons;  // of `without`
  std::vector<std::string> nothing, without, read, names_model;
  std::vector<std::string> all{}, counting{};  // of the program

  // The key that counts and that this one, which the program does not have, is nearest to. One that
  // is nearer to a key without effect has none either.
  std::string misspelt(const std::string& name) const {
    const std::string near = near_in_block(name, counting);
    return !near.empty() && near == near_in_block(name, all) ? near : "";
  }
  // Does the same where nothing but a block that it is in is known, which is let through as a
  // whole: what its classes are called with may be anything, and a slip leaves a name about as long
  // as it was.
  std::string misspelt_in_block(const std::string& name) const {
    const std::string block = name.substr(0, name.rfind('.') + 1);
    if (block.empty() || holds(all, name) || holds(counting, name)) return "";
    std::vector<std::string> as_long;
    std::ranges::copy_if(counting, std::back_inserter(as_long), [&](const std::string& each) {
      return each.starts_with(block) && each.size() <= name.size() + 2 &&
             name.size() <= each.size() + 2;
    });
    const std::string near = near_in_block(name, as_long);
    return !near.empty() && near == near_in_block(name, all) ? near : "";
  }

  explicit ToldKeys(const MappedSource& source)
      : reasons(source.facts_.root().table("not_modelled")),
        nothing(source.facts_.root().texts_or("changes_nothing")),
        without(reasons.keys()),
        read(source.facts_.root().texts_or("read")),
        names_model(source.facts_.root().texts_or("names_model")) {
    const Table keys_there = source.facts_.root().table("keys");
    for (const std::string& key : keys_there.keys())
      if (keys_there.is_mapping(key) && keys_there.table(key).text("is") == "nothing")
        nothing.push_back(key);
    for (const auto* keys : {&nothing, &without, &read}) append(all, *keys);
    for (const MappedKey& each : source.mapped_) all.push_back(each.theirs);
    append(counting, read);
    append(counting, source.used_);
    for (const MappedKey& each : source.mapped_) counting.push_back(each.theirs);
    append(all, source.used_);
  }
};

bool MappedSource::is_set(const Leaf& leaf) const {
  return std::ranges::any_of(question_.settings,
                             [&](const auto& setting) { return setting.first == leaf.path; });
}

// "method" of "job.method", which was put.
std::string MappedSource::near_in_scenario(const Leaf& leaf) const {
  for (const TranslatedLine& line : result_.lines)
    if (line.path.substr(line.path.rfind('.') + 1) == leaf.key)
      return fmt::format(" (did you mean \"{}\"?)", line.path);
  return "";
}

// Tells of a key that counts that the default of a variable is taken for it, or that it has none.
void MappedSource::tell_variable(const Leaf& leaf, const ToldKeys& keys) {
  for (const FileVariable& each : variables_)
    if (each.path == leaf.path || each.path.starts_with(leaf.path + "["))
      result_.assumptions.push_back({leaf.path, each.value,
                                     fmt::format("the default of {}", each.said),
                                     fmt::format("--set {}=VALUE", leaf.path)});
  const std::string variable =
      variable_without_value(source_.root(), leaf.holder.one_line(leaf.key));
  if (variable.empty()) return;
  for (const MappedKey& each : mapped_)
    if (each.theirs == leaf.name && question_.decides(each.ours)) return;
  const bool named =
      question_.decides("model") || holds(result_.lines, "model", &TranslatedLine::path);
  if (named && (leaf.name == model_key_ || holds(keys.names_model, leaf.name))) return;
  leaf.holder.problem(
      leaf.key,
      fmt::format(
          "depends on {}, a variable of the environment, which is not read: --set {}=VALUE says it",
          variable, leaf.path));
}

// Returns the key's fate, and why.
SourceKey MappedSource::sorted(const Leaf& leaf, const ToldKeys& keys) {
  SourceKey key{leaf.path, leaf.line, KeyFate::used, ""};
  const auto told = std::find_if(unmodelled_.begin(), unmodelled_.end(),
                                 [&](const auto& each) { return each.key == leaf.name; });
  const Table& reasons = keys.reasons;
  const auto mapped = std::any_of(mapped_.begin(), mapped_.end(),
                                  [&](const MappedKey& each) { return each.theirs == leaf.name; });
  const std::string* reason = find_pattern(keys.without, leaf.name);
  const bool there = leaf.line > 0 || is_set(leaf);  // not in a file that this one goes on from
  const std::string misspelt = there ? keys.misspelt_in_block(leaf.name) : "";
  std::vector<std::string> paths;
  for (const TranslatedLine& line : result_.lines)
    if (line.key == leaf.path) paths.push_back(line.path);
  if (told != unmodelled_.end()) {
    key.fate = KeyFate::unmodelled;
    key.remark = told->why;
    key.needs_memory = told->needs_memory;
    key.value = plain_value(leaf.holder, leaf.key);
  } else if (leaf.empty) {
    key.fate = KeyFate::without_effect;
    key.remark = "empty";
  } else if (!misspelt.empty()) {
    key.fate = KeyFate::unknown;
    leaf.holder.problem(leaf.key, "unknown key" + misspelt);
  } else if (mapped || holds(used_, leaf.name) || find_pattern(keys.read, leaf.name) != nullptr) {
    key.remark = fmt::format("{}", fmt::join(paths, ", "));
    tell_variable(leaf, keys);
  } else if (reason != nullptr && !asks_nothing(plain_value(leaf.holder, leaf.key)) &&
             plain_value(leaf.holder, leaf.key) != usual_value(reasons, *reason)) {
    key.fate = KeyFate::unmodelled;
    key.key = block_of(*reason, leaf.path);
    key.value = key.key == leaf.path ? plain_value(leaf.holder, leaf.key) : "";
    key.remark =
        reasons.is_mapping(*reason) ? reasons.table(*reason).text("why") : reasons.text(*reason);
  } else if (const std::string* same =
                 reason != nullptr ? reason : find_pattern(keys.nothing, leaf.name)) {
    key.fate = KeyFate::without_effect;
    key.key = block_of(*same, leaf.path);
  } else {
    key.fate = KeyFate::unknown;
    constexpr std::size_t most = 200;  // with so many nobody misspelt one
    const std::string near = ++unknown_ <= most && there ? keys.misspelt(leaf.name) : "";
    const bool counts = !near.empty();  // a program of somebody's own has keys of its own
    if (counts && question_.own_program && !is_set(leaf))
      note(fmt::format("{}: of the program's own, and not read{}", leaf.path, near));
    else if (counts)
      leaf.holder.problem(leaf.key, "unknown key" + near);
    else if (is_set(leaf))  // who types a key wants it read
      leaf.holder.problem(leaf.key, fmt::format("no key of {}, nor of a scenario{}",
                                                result_.program, near_in_scenario(leaf)));
    key.remark = fmt::format("no key of {}, which does not look at it", result_.program);
  }
  return key;
}

Translation MappedSource::finish() {
  const ToldKeys keys(*this);
  for (const Leaf& leaf : leaves_) {
    SourceKey key = sorted(leaf, keys);
    const SourceKey* last = result_.keys.empty() ? nullptr : &result_.keys.back();
    if (last == nullptr || last->key != key.key) result_.keys.push_back(std::move(key));
  }
  source_.finish(Leftovers::allowed);
  return std::move(result_);
}

}  // namespace stepsim
