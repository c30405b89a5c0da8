#include "scenarios/foreign/table/named_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <regex>
#include <string_view>

#include "scenarios/read/entries.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// Returns "Llama-3.2_1B" as "llama321b".
std::string bare_letters(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (is_letter_or_digit(c)) result += small_letter(c);
  return result;
}

// The last part that names a run: "/outputs/094-sft/checkpoint-1188/" as "094-sft".
std::string run_or_model_in(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  const fs::path whole(path);
  if (whole.filename().string().starts_with("checkpoint-")) return whole.parent_path().filename();
  return whole.filename();
}

// Returns what a line "key: value" at the top of a YAML file says, without reading the file as
// YAML: a folder may hold hundreds.
std::string value_in(std::string_view text, std::string_view key) {
  for (std::string_view line : lines_in(text)) {
    if (!line.starts_with(key) || line.size() == key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    line = line.substr(0, line.find(" #"));
    const auto blank = [](char c) {
      return c == ' ' || c == '\t' || c == '\r' || c == '"' || c == '\'';
    };
    while (!line.empty() && blank(line.front())) line.remove_prefix(1);
    while (!line.empty() && blank(line.back())) line.remove_suffix(1);
    return std::string(line);
  }
  return "";
}

struct Earlier {
  std::string file, model;
};

// The file in this folder whose run wrote what is called `name`.
std::optional<Earlier> run_that_wrote(const std::string& name, const std::string& file) {
  constexpr std::uintmax_t largest = 256u << 10;
  if (name.empty()) return std::nullopt;
  const fs::path folder = fs::path(file).parent_path();
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, failed))
    if (const auto ending = entry.path().extension(); (ending == ".yaml" || ending == ".yml") &&
                                                      entry.is_regular_file(failed) &&
                                                      entry.file_size(failed) <= largest)
      files.push_back(folder.empty() ? entry.path().filename() : entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& each : files) {
    const std::string text = read_text(each.string());
    if (run_or_model_in(value_in(text, "output_dir")) != name) continue;
    const std::string model = value_in(text, "base_model");
    if (!model.empty() && run_or_model_in(model) != name) return Earlier{each.string(), model};
  }
  return std::nullopt;
}

// Words of a name that mean another model than the one without them.
constexpr std::array other_models{
    "mini", "small",   "nano",  "tiny",      "vl",       "vision", "omni",   "audio",
    "next", "distill", "coder", "embedding", "reranker", "guard",  "albert", "multilingual"};

// Reads "14b" of "phi-4-14b-sft" in parameters; 0: there is none.
double size_in(std::string_view name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!is_digit(name[at]) || (at > 0 && (is_digit(name[at - 1]) || name[at - 1] == '.')))
      continue;
    double value = 0;
    const auto [rest, failed] = std::from_chars(name.data() + at, name.data() + name.size(), value);
    const std::string_view unit = name.substr(static_cast<std::size_t>(rest - name.data()));
    if (failed != std::errc() || unit.empty() || (unit.size() > 1 && is_letter_or_digit(unit[1])))
      continue;
    if (small_letter(unit.front()) == 'b') return 1e9 * value;
    if (small_letter(unit.front()) == 'm') return 1e6 * value;
  }
  return 0;
}

bool words_hold(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos;
       at = name.find(word, at + 1)) {
    const auto letter = [&](std::size_t place) {
      return place < name.size() && is_letter(name[place]);
    };
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  }
  return false;
}

// The catalogue's name may stand anywhere in the other, but has to end where a word does.
bool stands_in(std::string_view name, std::string_view other) {
  const std::string wanted = bare_letters(name);
  for (std::size_t begin = 0; begin < other.size(); ++begin) {
    std::size_t found = 0, at = begin;
    for (; at < other.size() && found < wanted.size(); ++at) {
      if (!is_letter_or_digit(other[at])) {
        if (found == 0) break;
        continue;
      }
      if (other[at] != wanted[found]) break;
      ++found;
    }
    if (found == wanted.size() && (at == other.size() || !is_letter_or_digit(other[at])) &&
        (begin == 0 || !is_digit(other[begin]) || !is_digit(other[begin - 1])))
      return true;
  }
  return false;
}

// A short name without a size, "gpt2", stands for a kind of model too: what follows it has to say
// that this one was trained on.
bool is_other_by_words(const std::string& name, const std::string& other) {
  constexpr std::size_t short_name = 5;
  constexpr std::array trained{"ft",        "sft",   "dpo",      "lora", "qlora",
                               "finetuned", "tuned", "instruct", "chat", "base"};
  return name.size() <= short_name && size_in(name) == 0 &&
         bare_letters(other) != bare_letters(name) &&
         std::ranges::none_of(trained,
                              [&](std::string_view word) { return words_hold(other, word); });
}

// A model trained from one of the catalogue has the name of that one in its own.
std::string name_within(const Catalogue& data, const std::string& said) {
  const std::string other = in_small_letters(run_or_model_in(said));
  std::string longest;
  for (const std::string& name : names_on(data, model_shelf)) {
    if (name.size() <= longest.size() || !stands_in(name, other)) continue;
    if (std::any_of(other_models.begin(), other_models.end(), [&](std::string_view word) {
          return words_hold(other, word) && !words_hold(name, word);
        }))
      continue;
    longest = name;
  }
  if (longest.empty() || is_other_by_words(longest, other)) return "";
  const double size = size_in(other);
  if (size == 0) return longest;
  const Model model = load_model(data, longest);
  const auto near = [&](double count) {
    constexpr double most_apart = 1.25;
    return size < most_apart * count && count < most_apart * size;
  };
  // Some names of models with experts say how many parameters a token meets.
  return near(static_cast<double>(count_parameters(model).total())) ||
                 near(static_cast<double>(active_parameters(model)))
             ? longest
             : "";
}

// Returns the model that one under another name was trained from, and that name; nothing where the
// name is none of those, or says a size that its family does not have.
std::optional<NamedModel> trained_from(const Catalogue& data, const std::string& said) {
  constexpr double most_apart = 1.15;
  const std::string other = in_small_letters(run_or_model_in(said));
  const double size = size_in(other);
  const Document facts = read_document(data.file("scenarios/foreign/table/trained_from.yaml"));
  std::string longest, model;
  for (const Table& family : facts.root().tables("families")) {
    const std::vector<std::string> called = family.texts("called"), entries = family.texts("from");
    for (const std::string& word : called) {
      constexpr std::size_t short_word = 4;  // which may stand within another name
      if (word.size() <= longest.size() || !words_hold(other, word) ||
          (word.size() < short_word && !other.starts_with(word)))
        continue;
      for (const std::string& entry : entries) {
        const auto count =
            size == 0 ? 0 : static_cast<double>(count_parameters(load_model(data, entry)).total());
        if (size == 0 ? entries.size() > 1 : std::max(size / count, count / size) > most_apart)
          continue;
        longest = word;
        model = entry;
      }
    }
  }
  if (model.empty()) return std::nullopt;
  return NamedModel{model, fmt::format("{} of this size was trained from it", longest), {}};
}

std::optional<NamedModel> follow(const Catalogue& data, const std::string& said,
                                 const std::string& file, int links) {
  constexpr int longest_chain = 16;
  std::error_code failed;
  if (const std::string near = beside(file, said);
      fs::exists(fs::path(near) / "config.json", failed) ||
      (near.ends_with(".json") && fs::is_regular_file(near, failed)))
    return NamedModel{near, "", {}};
  const std::vector<std::string> names = names_on(data, model_shelf);
  if (std::find(names.begin(), names.end(), said) != names.end()) return NamedModel{said, "", {}};
  const std::string own = run_or_model_in(said);
  if (const std::string small = in_small_letters(own);
      std::find(names.begin(), names.end(), small) != names.end())
    return NamedModel{small, fmt::format("it is {} of the catalogue", small), {}};
  // A name of Hugging Face, or the folder that somebody has the model in.
  for (const std::string& each : {said, own})
    if (const std::string found = resolve_model(data, each); found != each)
      return NamedModel{found,
                        is_config_path(found) ? "it is in the local cache of Hugging Face"
                                              : fmt::format("it is {} of the catalogue", found),
                        {}};
  if (links < longest_chain)
    if (const auto earlier = run_that_wrote(run_or_model_in(said), file))
      if (auto model = follow(data, earlier->model, earlier->file, links + 1)) {
        model->how = fmt::format("{} writes it, from {}",
                                 fs::path(earlier->file).filename().string(), earlier->model);
        model->files.push_back(earlier->file);
        return model;
      }
  if (const std::string name = name_within(data, said); !name.empty())
    return NamedModel{name, "by its name", {}};
  return trained_from(data, said);
}

// A name may say "3b" for 3, "30b-a3b" for 30 of which a token meets 3, "a3b" for these alone, in
// billions; 0: it does not say.
struct SizeInName {
  double all = 0, active = 0;
  bool experts() const { return active > 0; }
};

// These families have models of 0.5, 0.6, 1.5 and 1.8 billion.
bool says_half_sizes(const std::string& name) {
  const std::string small = in_small_letters(name);
  return small.find("qwen") != std::string::npos || small.find("-0-") != std::string::npos;
}

// Returns the letters that a name of the catalogue begins with: "gemma".
std::string_view family_in(std::string_view entry) {
  const auto* const end = std::ranges::find_if_not(entry, is_letter);
  return entry.substr(0, static_cast<std::size_t>(end - entry.begin()));
}

// Three letters may end another word: "cutegpt" is none of the family of gpt-neox.
bool says_family(std::string_view family, const std::string& name) {
  const std::string small = in_small_letters(name);
  const std::size_t at = small.find(family);
  constexpr std::size_t short_word = 3;
  return family.size() >= short_word && at != std::string::npos &&
         (family.size() > short_word || at == 0 || !is_letter(small[at - 1]));
}

SizeInName sizes_in(const std::string& name) {
  static const std::regex with_experts(R"((\d+(?:\.\d+)?)b-?a(\d+(?:\.\d+)?)b)", std::regex::icase),
      many(R"((\d+)x(\d+(?:\.\d+)?)b)", std::regex::icase),
      met(R"((?:^|[^a-z0-9])a(\d+(?:\.\d+)?)b(?![a-z0-9]))", std::regex::icase);
  std::smatch found;
  if (std::regex_search(name, found, with_experts))
    return {std::stod(found[1]), std::stod(found[2])};
  if (std::regex_search(name, found, met)) return {0, std::stod(found[1])};
  // "8x7B": attention is there once, and a token meets two.
  if (std::regex_search(name, found, many))
    return {0.8 * std::stod(found[1]) * std::stod(found[2]), 1.75 * std::stod(found[2])};
  // Folders are called "qwen2-5-1-5b", as a point may not stand in their names.
  static const std::regex dashed(R"((?:^|-)([01])-([0-8])b(?![a-z0-9]))", std::regex::icase);
  if (std::regex_search(name, found, dashed) && says_half_sizes(name))
    return {std::stod(found[1]) + std::stod(found[2]) / 10, 0};
  return {size_in(in_small_letters(name)) / 1e9, 0};
}

// Returns how far apart two sizes are: 0 the same, 1 a factor of e.
double distance(const SizeInName& wanted, const Model& model) {
  constexpr double billion = 1e9;
  const auto apart = [](double one, double other) { return std::abs(std::log(one / other)); };
  const double all = static_cast<double>(count_parameters(model).total()) / billion;
  if (!wanted.experts()) return apart(wanted.all, all);
  return std::max(wanted.all > 0 ? apart(wanted.all, all) : 0,
                  apart(wanted.active, static_cast<double>(active_parameters(model)) / billion));
}

struct StandIn {
  std::string entry;
  bool kin = false;  // of the family that the name says
  double apart = 0;  // from the size that is looked for
  std::int64_t longest_sequence = 0;
};

// Returns the model that takes the longest sequences, as far as files ask for them, of those that
// are about as near as the nearest: it refuses least.
const StandIn& stand_in_of(std::vector<StandIn>& candidates) {
  if (std::ranges::any_of(candidates, &StandIn::kin))
    std::erase_if(candidates, [](const StandIn& each) { return !each.kin; });
  constexpr double about = 0.1;
  const StandIn& nearest = *std::ranges::min_element(candidates, {}, &StandIn::apart);
  const StandIn* best = &nearest;
  for (const StandIn& each : candidates)
    if (each.apart <= nearest.apart + about &&
        (each.longest_sequence > best->longest_sequence ||
         (each.longest_sequence == best->longest_sequence && each.apart < best->apart)))
      best = &each;
  return *best;
}

}  // namespace

std::optional<NamedModel> model_of_size(const Catalogue& data,
                                        const std::vector<std::string>& names,
                                        const std::string& kind) {
  for (const std::string& name : names) {
    const SizeInName wanted = sizes_in(run_or_model_in(name));
    if (wanted.all <= 0 && !wanted.experts()) continue;
    const double farthest = wanted.experts() ? 0.7 : 0.25;  // experts are fewer in the catalogue
    std::vector<StandIn> candidates;
    for (const std::string& entry : names_on(data, model_shelf)) {
      if (published_name(data, entry) == entry) continue;  // of a benchmark
      const Model model = load_model(data, entry);
      const double apart = distance(wanted, model);
      constexpr std::int64_t long_enough = 131072;
      // A model that somebody trains today has layers of the usual kind.
      if (model.positions != Positions::rotary || model.norms == Norms::once) continue;
      // One with a tower for images beside its layers is another kind of model.
      if (model.tower ||
          open_entry(data, model_shelf, entry).root().text_or("title", "").find("text tower") !=
              std::string::npos)
        continue;
      const bool kin = says_family(family_in(entry), name) || says_family(family_in(entry), kind);
      // A family has its own widths and words, so its size may be farther off.
      if (!model.mixer && model.experts.has_value() == wanted.experts() &&
          apart < farthest * (kin ? 2 : 1))
        candidates.push_back({entry, kin, apart, std::min(model.longest_sequence, long_enough)});
    }
    if (candidates.empty()) continue;
    const StandIn& found = stand_in_of(candidates);
    const Model model = load_model(data, found.entry);
    return NamedModel{
        found.entry,
        fmt::format(
            "a stand-in{} of {:.3g}B: its own config.json is not here, and \"{}\" says {:.3g}B",
            found.kin ? "" : " of another family",
            static_cast<double>(count_parameters(model).total()) / 1e9, run_or_model_in(name),
            wanted.all > 0 ? wanted.all : wanted.active),
        {}};
  }
  return std::nullopt;
}

std::optional<NamedModel> find_named_model(const Catalogue& data, const std::string& said,
                                           const std::string& file) {
  return follow(data, said, file, 0);
}

bool same_run(const std::string& one, const std::string& other) {
  const std::string name = run_or_model_in(one);
  return !name.empty() && name == run_or_model_in(other);
}

}  // namespace stepsim
