#include "analysis/studies/claims/claim_sentence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"

namespace stepsim {
namespace {

constexpr double judged_tolerance = 0.1;

enum class Bound : std::uint8_t { about, at_least, at_most };

std::vector<std::string> words_of(const std::string& sentence) {
  std::vector<std::string> words{""};
  for (const char c : sentence)
    if (!is_space(c))
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  if (words.back().ends_with('.')) words.back().pop_back();
  if (words.back().empty()) words.pop_back();
  return words;
}

// "b" for B, or as its file is called.
bool also_called(const ClaimScenario& scenario, const std::string& name) {
  return in_small_letters(scenario.alias) == name || scenario.source == name ||
         std::filesystem::path(scenario.source).filename() == name ||
         std::filesystem::path(scenario.source).stem() == name;
}

// Reads a sentence word by word.
class SentenceReader {
 public:
  SentenceReader(const std::string& sentence, const SentenceQuestion& question)
      : sentence_(sentence), question_(question), words_(words_of(sentence)) {}

  Claim read() {
    const std::size_t subject = scenario();
    Claim claim;
    claim.id = claim.text = sentence_;
    claim.scenarios = question_.scenarios;
    claim.assertions.push_back(assertion(subject));
    if (next_ != words_.size()) unreadable();
    return claim;
  }

 private:
  [[noreturn]] void unreadable() const {
    const std::string at = next_ < words_.size() ? fmt::format("at \"{}\"", words_[next_])
                                                 : std::string("where it ends");
    throw UserError(fmt::format(
        "\"{}\" cannot be read {}; such sentences can: \"A is faster than B\", \"A is 2x faster "
        "than "
        "B\", \"A is at least "
        "20 % slower than B\", \"A needs 20 % less memory than B\", \"A needs under 70 GB\", \"A "
        "takes at most 20 s\", \"A takes about 30 h in all\", \"A costs under 500\", \"A fits\", "
        "\"A does not fit\"",
        sentence_, at));
  }

  bool take(std::string_view word) {
    if (next_ >= words_.size() || words_[next_] != word) return false;
    ++next_;
    return true;
  }
  bool take(std::string_view first, std::string_view second) {
    if (next_ + 1 >= words_.size() || words_[next_] != first || words_[next_ + 1] != second)
      return false;
    next_ += 2;
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) unreadable();
  }

  std::size_t scenario() {
    if (next_ >= words_.size()) unreadable();
    const std::string& name = words_[next_];
    auto place = std::ranges::find(question_.scenarios, name, &ClaimScenario::alias);
    if (place == question_.scenarios.end())
      place = std::ranges::find_if(
          question_.scenarios, [&](const ClaimScenario& each) { return also_called(each, name); });
    if (place == question_.scenarios.end()) {
      const auto named = mapped(question_.scenarios, [](const ClaimScenario& each) {
        return fmt::format("{} is {}", each.alias, each.source);
      });
      throw UserError(fmt::format("\"{}\": there is no scenario \"{}\": {}", sentence_, name,
                                  fmt::join(named, ", ")));
    }
    ++next_;
    return static_cast<std::size_t>(place - question_.scenarios.begin());
  }

  Bound bound() {
    if (take("about")) return Bound::about;
    if (take("at", "least") || take("over") || take("above") || take("more", "than"))
      return Bound::at_least;
    if (take("at", "most") || take("under") || take("below") || take("less", "than"))
      return Bound::at_most;
    return Bound::about;
  }

  // This reads "2x", "2 x", "2 times" as 2, and "20%", "20 %" as 0.2 with `share`.
  struct Factor {
    double value = 0;
    bool share = false;
  };
  Factor factor() {
    if (next_ >= words_.size()) unreadable();
    const std::string& word = words_[next_];
    double value = 0;
    const char* const end = word.data() + word.size();
    const auto [at, failed] = std::from_chars(word.data(), end, value);
    if (failed != std::errc() || value <= 0) unreadable();
    const std::string_view unit(at, static_cast<std::size_t>(end - at));
    if (unit == "x" || unit == "%") {
      ++next_;
      return {unit == "%" ? value / 100 : value, unit == "%"};
    }
    if (!unit.empty()) unreadable();
    ++next_;
    if (take("x") || take("times")) return {value, false};
    if (take("%") || take("percent")) return {value / 100, true};
    unreadable();
  }

  double quantity(Dimension dimension) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{1}}) {
      if (next_ + count > words_.size()) continue;
      const std::string text = count == 2 ? words_[next_] + " " + words_[next_ + 1] : words_[next_];
      const auto read = parse_quantity(text);
      if (!read || read->dimension != dimension || read->value <= 0) continue;
      next_ += count;
      return read->value;
    }
    unreadable();
  }

  Assertion assertion(std::size_t subject) {
    if (take("fits")) return fits(subject, true);
    if (take("does", "not")) {
      expect("fit");
      return fits(subject, false);
    }
    if (take("is")) return speed(subject);
    if (take("needs") || take("uses")) return memory(subject);
    if (take("takes")) return time(subject);
    if (take("costs")) return cost(subject);
    unreadable();
  }

  Assertion value_of(std::size_t subject, const std::string& metric, Dimension dimension) const {
    Assertion made{.quantity = {}, .dimension = dimension, .low = {}, .high = {}};
    made.quantity.kind = ClaimQuantity::Kind::value;
    made.quantity.metrics = {{subject, metric}};
    made.quantity.text = fmt::format("{}.{}", question_.scenarios[subject].alias, metric);
    return made;
  }

  static void put(Assertion& assertion, Bound bound, double value,
                  double tolerance = judged_tolerance) {
    if (bound != Bound::at_most)
      assertion.low = bound == Bound::about ? value * (1 - tolerance) : value;
    if (bound != Bound::at_least)
      assertion.high = bound == Bound::about ? value * (1 + tolerance) : value;
  }

  Assertion fits(std::size_t subject, bool wanted) const {
    Assertion made = value_of(subject, "fits", Dimension::ratio);
    (wanted ? made.low : made.high) = wanted ? 1 : 0;
    return made;
  }

  // `more`: the subject has more of the metric, where the sentence says so.
  Assertion ratio(std::size_t subject, const std::string& metric, Bound bound, Factor factor,
                  bool more) {
    expect("than");
    const std::size_t other = scenario();
    const double size = factor.share ? factor.value : factor.value - 1;
    if (!more && factor.share && factor.value >= 1) unreadable();
    // "3x slower" has a third of the rate; "20 % less" has four fifths of it.
    const double value = more ? 1 + size : factor.share ? 1 - factor.value : 1 / factor.value;
    if (!more && bound != Bound::about)
      bound = bound == Bound::at_least ? Bound::at_most : Bound::at_least;
    Assertion made = value_of(subject, metric, Dimension::ratio);
    made.quantity.kind = ClaimQuantity::Kind::ratio;
    made.quantity.metrics.push_back({other, metric});
    made.quantity.text += fmt::format(" / {}.{}", question_.scenarios[other].alias, metric);
    // A small change must not be within the tolerance of none.
    const double half = std::abs(value - 1) / 2 / value;
    put(made, bound, value, std::min(judged_tolerance, half));
    return made;
  }

  Assertion speed(std::size_t subject) {
    constexpr Factor at_all{1 + 1e-6, false};
    if (take("faster")) return ratio(subject, "tokens_per_second", Bound::at_least, at_all, true);
    if (take("slower")) return ratio(subject, "tokens_per_second", Bound::at_least, at_all, false);
    const Bound said = bound();
    const Factor by = factor();
    const bool faster = take("faster");
    if (!faster) expect("slower");
    return ratio(subject, "tokens_per_second", said, by, faster);
  }

  Assertion memory(std::size_t subject) {
    const Bound said = bound();
    if (next_ < words_.size() && is_factor()) {
      const Factor by = factor();
      const bool more = take("more");
      if (!more) expect("less");
      expect("memory");
      return ratio(subject, "peak_memory", said, by, more);
    }
    Assertion made = value_of(subject, "peak_memory", Dimension::bytes);
    put(made, said, quantity(Dimension::bytes));
    take("of", "memory");
    return made;
  }

  bool is_factor() const {
    const std::string& word = words_[next_];
    if (word.ends_with('x') || word.ends_with('%')) return true;
    if (next_ + 1 >= words_.size()) return false;
    const std::string& unit = words_[next_ + 1];
    return unit == "x" || unit == "times" || unit == "%" || unit == "percent";
  }

  Assertion time(std::size_t subject) {
    const Bound said = bound();
    const double seconds = quantity(Dimension::seconds);
    // Nobody counts a step in hours.
    constexpr double hour = 3600;
    const bool whole = take("in", "all") || (!take("a", "step") && seconds >= hour);
    Assertion made = value_of(subject, whole ? "wall" : "step_time", Dimension::seconds);
    put(made, said, seconds);
    return made;
  }

  Assertion cost(std::size_t subject) {
    const Bound said = bound();
    if (!question_.price)
      throw UserError(fmt::format(
          "\"{}\": what does a GPU cost? say --price N, for a GPU and an hour", sentence_));
    const double money = quantity(Dimension::ratio);
    Assertion made = value_of(subject, "gpu_time", Dimension::seconds);
    put(made, said, 3600 * money / *question_.price);
    return made;
  }

  const std::string& sentence_;
  const SentenceQuestion& question_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

}  // namespace

Claim claim_of_sentence(const std::string& sentence, const SentenceQuestion& question) {
  return SentenceReader(sentence, question).read();
}

}  // namespace stepsim
