#include "scenarios/foreign/text/shell_tests.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/letters.hpp"

namespace stepsim {

ShellVerdict verdict(bool value) {
  return value ? ShellVerdict::yes : ShellVerdict::no;
}
ShellVerdict turned(ShellVerdict value, bool negated) {
  if (!negated || value == ShellVerdict::open) return value;
  if (value == ShellVerdict::ran) return ShellVerdict::open;
  return verdict(value == ShellVerdict::no);
}

bool has_unknown(const ShellText& text) {
  return std::any_of(text.begin(), text.end(),
                     [](const Letter& letter) { return letter.unknown >= 0; });
}

namespace {

std::optional<std::int64_t> whole_in(const ShellText& text) {
  return number_from<std::int64_t>(plain(text));
}

ShellVerdict compared(const ShellText& left, const std::string& sign, const ShellText& right) {
  if (has_unknown(left) || has_unknown(right)) return ShellVerdict::open;
  const bool same = fnmatch(plain(right).c_str(), plain(left).c_str(), 0) == 0;
  if (sign == "=" || sign == "==") return verdict(same);
  if (sign == "!=") return verdict(!same);
  const auto a = whole_in(left), b = whole_in(right);
  if (!a || !b) return ShellVerdict::open;
  if (sign == "-eq") return verdict(*a == *b);
  if (sign == "-ne") return verdict(*a != *b);
  if (sign == "-lt") return verdict(*a < *b);
  if (sign == "-le") return verdict(*a <= *b);
  if (sign == "-gt") return verdict(*a > *b);
  return sign == "-ge" ? verdict(*a >= *b) : ShellVerdict::open;
}

// Judges the parts between two joints: one that is `enough` decides, else one that is open.
template <class Test>
ShellVerdict decided_by(Fields words, const std::array<std::string_view, 2>& joints,
                        ShellVerdict enough, const Test& test) {
  ShellVerdict result = turned(enough, true);
  for (std::size_t from = 0;;) {
    std::size_t end = from;
    while (end < words.size() && std::ranges::find(joints, plain(words[end])) == joints.end())
      ++end;
    const ShellVerdict part = test(words.subspan(from, end - from));
    if (part == enough || (part == ShellVerdict::open && result != enough)) result = part;
    if (end == words.size()) return result;
    from = end + 1;
  }
}

ShellVerdict tested_alone(Fields words) {
  if (words.empty()) return ShellVerdict::no;
  bool negated = false;
  for (; !words.empty() && plain(words[0]) == "!"; words = words.subspan(1)) negated = !negated;
  if (negated || words.empty()) return turned(tested_alone(words), negated);
  if (words.size() == 1)
    return has_unknown(words[0]) ? ShellVerdict::open : verdict(!plain(words[0]).empty());
  if (words.size() == 3) return compared(words[0], plain(words[1]), words[2]);
  const std::string sign = plain(words[0]);
  if (words.size() != 2 || (sign != "-z" && sign != "-n") || has_unknown(words[1]))
    return ShellVerdict::open;
  return turned(verdict(words[1].empty()), sign == "-n");
}

}  // namespace

bool asks_for_emptiness(Fields words) {
  if (words.size() == 2) return plain(words[0]) == "-z" || plain(words[0]) == "-n";
  return words.size() == 3 && (words[0].empty() || words[2].empty());
}

ShellVerdict tested(Fields words) {
  return decided_by(words, {"||", "-o"}, ShellVerdict::yes, [](Fields any) {
    return decided_by(any, {"&&", "-a"}, ShellVerdict::no, tested_alone);
  });
}

}  // namespace stepsim
