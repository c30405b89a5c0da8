#include "sim/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

std::string all_of(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += to_text(problem);
  }
  return text;
}

// Nobody reads on.
std::vector<Problem> first_of(std::vector<Problem> problems) {
  constexpr std::size_t most = 200;
  if (problems.size() <= most + 1) return problems;  // the last of them may count others
  const std::size_t more = problems.size() - most;
  problems.resize(most);
  const Problem& last = problems.back();
  problems.push_back({last.file, last.line, "", fmt::format("and {} more", more), last.fault});
  return problems;
}

// Edits that turn one word into the other, or `enough` where that many do not; a swap of neighbours
// counts as one.
std::size_t distance(std::string_view a, std::string_view b, std::size_t enough) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= enough) return enough;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
    // A swap of neighbours goes back by two rows at most.
    if (std::min(std::ranges::min(last), std::ranges::min(before)) >= enough) return enough;
  }
  return last[b.size()];
}

std::string simplified(std::string_view word) {
  std::string plain;
  for (const char c : word)
    if (c != '-' && c != '_' && c != ' ' && c != '.')
      plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return plain;
}

std::vector<std::string> parts_of(std::string_view word) {
  std::vector<std::string> parts(1);
  for (const char c : word)
    if (c == '-' || c == '_' || c == ' ')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// "h100-8" is "h100-sxm-8" with a part left out: near, however many letters that part has.
bool leaves_out_parts(std::span<const std::string> few, std::span<const std::string> many) {
  std::size_t met = 0;
  for (const std::string& part : many)
    if (met < few.size() && part == few[met]) ++met;
  return few.size() > 1 && met == few.size();
}

// Keeps ends of lines only before indented lines, such as an expression with its mark below: so no
// line of somebody else's text can pass for a message.
std::string in_own_lines(std::string_view text) {
  std::string result;
  for (const std::string_view line : split(text, '\n')) {
    if (line.data() != text.data()) result += line.starts_with("  ") ? "\n" : "\\u000a";
    result += on_one_line(line);
  }
  return result;
}

}  // namespace

// Cuts a long text between letters of UTF-8.
std::string readable(std::string_view text) {
  constexpr std::size_t longest = 4000, head = 2000, tail = 500;
  if (text.size() <= longest) return in_own_lines(text);
  const auto inside = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  std::size_t from = head, to = text.size() - tail;
  while (from > 0 && inside(from)) --from;
  while (to < text.size() && inside(to)) ++to;
  return fmt::format("{} ... {} bytes more ... {}", in_own_lines(text.substr(0, from)), to - from,
                     in_own_lines(text.substr(to)));
}

std::string to_text(const Problem& problem) {
  std::string place = on_one_line(problem.file);
  if (problem.line > 0) place += fmt::format(":{}", problem.line);
  if (!place.empty()) place += ": ";
  if (!problem.key.empty()) place += readable(problem.key) + ": ";
  return place + readable(problem.message);
}

UserError::UserError(std::string_view message, Fault fault)
    : UserError(std::vector<Problem>{
          {.file = "", .line = 0, .key = "", .message = std::string(message), .fault = fault}}) {}

UserError::UserError(std::vector<Problem> problems)
    : std::runtime_error(all_of(first_of(problems))), problems_(first_of(std::move(problems))) {}

void fail(const std::string& file, std::string message) {
  throw UserError({{file, 0, "", std::move(message)}});
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t longest =
      100;  // beyond it nobody misspelt a name, and comparing takes long
  if (word.size() > longest) return "";
  const std::string plain = simplified(word);
  if (plain.size() < 2) return "";
  const std::string* nearest = nullptr;
  // Two edits would turn a short word into any other.
  std::size_t best = (plain.size() < 4 ? 1 : std::max<std::size_t>(2, plain.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(plain, simplified(candidate), best);
    if (edits < best) {
      best = edits;
      nearest = &candidate;
    }
  }
  // "zero" is the end of "strategy.zero", and of nothing else.
  const auto ends = [&](const std::string& candidate) {
    return candidate.ends_with(word) && candidate[candidate.size() - word.size() - 1] == '.';
  };
  if (nearest == nullptr && std::ranges::count_if(candidates, ends) == 1)
    nearest = &*std::ranges::find_if(candidates, ends);
  const std::vector<std::string> parts = parts_of(word);
  for (const std::string& candidate : candidates) {
    if (nearest != nullptr) break;
    const std::vector<std::string> theirs = parts_of(candidate);
    if (leaves_out_parts(theirs, parts) || leaves_out_parts(parts, theirs)) nearest = &candidate;
  }
  return nearest == nullptr ? "" : fmt::format(" (did you mean \"{}\"?)", *nearest);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         std::string_view list) {
  constexpr std::size_t few = 12;
  std::string near = did_you_mean(word, candidates);
  if (!near.empty() || candidates.empty()) return near;
  if (candidates.size() <= few) return fmt::format("; expected {}", one_of(candidates));
  return fmt::format("; `stepsim list {}` names all", list);
}

std::string one_of(std::span<const std::string> candidates) {
  std::string text;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i > 0) text += i + 1 == candidates.size() ? " or " : ", ";
    text += candidates[i];
  }
  return text;
}

std::string expected_one_of(std::span<const std::string> candidates, std::string_view found) {
  return fmt::format("expected {}, found \"{}\"{}", one_of(candidates), found,
                     did_you_mean(found, candidates));
}

}  // namespace stepsim
