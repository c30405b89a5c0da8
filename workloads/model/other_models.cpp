#include "workloads/model/other_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

Document other_models_of(const Catalogue& data) {
  return read_document(data.file("workloads/other_models.yaml"));
}

struct Diffusion {
  std::string word, title;
};

std::vector<Diffusion> diffusion_words(const Table& root) {
  std::vector<Diffusion> all;
  for (const Table& family : root.tables("diffusion"))
    for (std::string& word : family.texts("words"))
      all.push_back({std::move(word), family.text("title")});
  return all;
}

const Diffusion* first_word_in(const std::vector<Diffusion>& words, std::string_view text) {
  const auto found = std::ranges::find_if(
      words, [&](const Diffusion& each) { return text.find(each.word) != text.npos; });
  return found == words.end() ? nullptr : &*found;
}

}  // namespace

std::string why_not_modelled(const Catalogue& data, std::string_view name) {
  const Document document = other_models_of(data);
  const Table root = document.root();
  const std::string small = in_small_letters(name);
  const std::vector<Diffusion> words = diffusion_words(root);
  if (const Diffusion* found = first_word_in(words, small))
    return fmt::format("{}, and {}", found->title, root.text("diffusion_is"));
  for (const Table& family : root.tables("families"))
    for (const std::string& word : family.texts("words"))
      if (small.find(word) != std::string::npos) return family.text("say");
  return "";
}

std::optional<DiffusionNamed> diffusion_in(const Catalogue& data, std::string_view text) {
  const Document document = other_models_of(data);
  const std::vector<Diffusion> words = diffusion_words(document.root());
  const std::string small = in_small_letters(text);
  int line = 1;
  for (std::size_t begin = 0; begin < small.size(); ++line) {
    const std::size_t end = std::min(small.find('\n', begin), small.size());
    const std::string_view part = std::string_view(small).substr(begin, end - begin);
    if (const Diffusion* found = first_word_in(words, part))
      return DiffusionNamed{line, fmt::format("\"{}\" tells of {}: {}", found->word, found->title,
                                              document.root().text("diffusion_is"))};
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace stepsim
