#include "sim/base/xml_elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> entities{
    {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};

bool is_of_name(char c) {
  return is_letter_or_digit(c) || c == '_' || c == '-' || c == ':' || c == '.';
}

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& file)
      : size_(text.size()), rest_(text), file_(file) {}

  std::vector<XmlElement> read() {
    while (true) {
      skip(std::min(rest_.find('<'), rest_.size()));
      if (rest_.empty()) break;
      if (rest_.starts_with("<!--"))
        skip_behind("-->", "a comment");
      else if (rest_.starts_with("<![CDATA["))
        skip_behind("]]>", "a CDATA section");
      else if (rest_.starts_with("<?"))
        skip_behind("?>", "an instruction");
      else if (rest_.starts_with("<!"))
        skip_behind(">", "a declaration");
      else if (rest_.starts_with("</"))
        close();
      else
        open();
    }
    if (!open_.empty())
      reject(fmt::format("the file ends within <{}> of line {}: expected </{}>", holder().name,
                         holder().line, holder().name));
    if (made_.empty()) reject("expected an element such as <platform>, found none");
    return std::move(made_);
  }

 private:
  const XmlElement& holder() const { return made_[open_.back()]; }

  [[noreturn]] void reject(std::string message) const {
    throw UserError({{file_, line_, "", std::move(message)}});
  }

  void skip(std::size_t count) {
    line_ += static_cast<int>(std::ranges::count(rest_.substr(0, count), '\n'));
    rest_.remove_prefix(count);
  }
  void skip_blanks() {
    std::size_t count = 0;
    while (count < rest_.size() && is_space(rest_[count])) ++count;
    skip(count);
  }
  void skip_behind(std::string_view ending, std::string_view what) {
    const std::size_t at = rest_.find(ending);
    if (at == std::string_view::npos)
      reject(fmt::format("{} begins here and never ends: expected \"{}\"", what, ending));
    skip(at + ending.size());
  }

  std::string take_name(std::string_view what) {
    std::size_t count = 0;
    while (count < rest_.size() && is_of_name(rest_[count])) ++count;
    if (count == 0)
      reject(fmt::format("expected {}, found \"{}\"", what, rest_.substr(0, rest_.find('\n'))));
    std::string name(rest_.substr(0, count));
    skip(count);
    return name;
  }

  void close() {
    skip(2);
    const std::string name = take_name("the name of an element");
    skip_blanks();
    if (open_.empty()) reject(fmt::format("</{}> ends nothing", name));
    if (name != holder().name)
      reject(fmt::format("expected </{}> for line {}, found </{}>", holder().name, holder().line,
                         name));
    if (!rest_.starts_with('>')) reject(fmt::format("</{}: expected \">\"", name));
    skip(1);
    open_.pop_back();
  }

  void open() {
    XmlElement element{.line = line_, .at = size_ - rest_.size()};
    skip(1);
    element.name = take_name("the name of an element behind \"<\"");
    if (open_.empty() && !made_.empty())
      reject(fmt::format("<{}> stands outside of <{}>", element.name, made_.front().name));
    if (!open_.empty()) element.inside = holder().name;
    for (skip_blanks(); !rest_.starts_with('>') && !rest_.starts_with("/>"); skip_blanks())
      element.attributes.push_back(take_attribute(element));
    if (rest_.starts_with('>')) open_.push_back(made_.size());
    skip(rest_.starts_with('>') ? 1 : 2);
    made_.push_back(std::move(element));
  }

  std::pair<std::string, std::string> take_attribute(const XmlElement& element) {
    std::string key = take_name(
        fmt::format("an attribute or \">\" in <{} of line {}", element.name, element.line));
    skip_blanks();
    const bool equals = rest_.starts_with('=');
    if (equals) skip(1);
    skip_blanks();
    const char quote = rest_.empty() ? ' ' : rest_.front();
    const std::size_t end = rest_.find(quote, 1);
    if (!equals || (quote != '"' && quote != '\'') || end == std::string_view::npos)
      reject(fmt::format("{}: expected {}=\"...\"", element.name, key));
    std::string value = plain(rest_.substr(1, end - 1));
    skip(end + 1);
    return {std::move(key), std::move(value)};
  }

  static std::string plain(std::string_view text) {
    std::string made;
    while (!text.empty()) {
      const auto known = std::ranges::find_if(
          entities, [&](const auto& entity) { return text.starts_with(entity.first); });
      made += known == entities.end() ? text.front() : known->second;
      text.remove_prefix(known == entities.end() ? 1 : known->first.size());
    }
    return made;
  }

  std::size_t size_;
  std::string_view rest_;
  const std::string& file_;
  int line_ = 1;
  std::vector<XmlElement> made_;
  std::vector<std::size_t> open_;  // of those that have not ended
};

}  // namespace

std::string_view XmlElement::attribute(std::string_view key) const {
  for (const auto& [own, value] : attributes)
    if (own == key) return value;
  return {};
}

std::vector<XmlElement> xml_elements(std::string_view text, const std::string& file) {
  return XmlReader(text, file).read();
}

}  // namespace stepsim
