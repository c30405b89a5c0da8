#include "scenarios/foreign/table/named_machines.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

// GPUs of a node that is called "mi300x-8": the GPU, letters behind it or none, and their number.
// People leave out what all cards of a maker begin with.
std::uint32_t gpus_of_node(std::string_view node, std::string_view gpu) {
  constexpr std::string_view family = "rtx";
  if (node.starts_with(family) && !gpu.starts_with(family)) node.remove_prefix(family.size());
  if (!node.starts_with(gpu)) return 0;
  node.remove_prefix(gpu.size());
  while (!node.empty() && is_letter(node.front())) node.remove_prefix(1);
  return node.starts_with('-') ? number_from<std::uint32_t>(node.substr(1)).value_or(0) : 0;
}

std::uint32_t largest_node(const Catalogue& data, std::string_view gpu) {
  std::uint32_t largest = 0;
  for (const std::string& node : names_on(data, node_shelf))
    largest = std::max(largest, gpus_of_node(node, gpu));
  return largest;
}

// Finds the smallest node with so many GPUs, of several the one with the shortest name; or several
// of the largest. `count_in` says how many of the GPU a node has.
template <class Count>
void find_node(const Catalogue& data, const Count& count_in, NamedMachine& machine) {
  std::uint32_t largest = 0, smallest = 0;
  std::string of_largest, of_smallest;
  for (const std::string& node : names_on(data, node_shelf)) {
    const std::uint32_t count = count_in(node);
    if (count == 0) continue;
    if (count > largest || (count == largest && node.size() < of_largest.size())) {
      largest = count;
      of_largest = node;
    }
    if (count >= machine.gpus && (smallest == 0 || count < smallest ||
                                  (count == smallest && node.size() < of_smallest.size()))) {
      smallest = count;
      of_smallest = node;
    }
  }
  if (smallest > 0) {
    machine.node = of_smallest;
    machine.whole = smallest == machine.gpus;
  } else if (largest > 0 && machine.gpus % largest == 0) {
    machine.node = of_largest;
    machine.nodes = machine.gpus / largest;
  }
}

// Finds a node that is called by this word.
void find_node(const Catalogue& data, std::string_view gpu, NamedMachine& machine) {
  find_node(
      data, [&](const std::string& node) { return gpus_of_node(node, gpu); }, machine);
}

// Returns the words of a name, as the table has them: "RTX 3090" and "RTX3090" are "3090".
std::vector<std::string> words_of_gpu(std::string_view said) {
  constexpr std::string_view family = "rtx";
  std::vector<std::string> words;
  std::string word;
  for (const char c : in_small_letters(said) + " ") {
    if (is_letter_or_digit(c)) {
      word += c;
      continue;
    }
    if (word.starts_with(family) && word.size() > family.size() && is_digit(word[family.size()]))
      word.erase(0, family.size());
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  }
  return words;
}

// The GPUs of a node of the catalogue, by its own file.
std::uint32_t gpus_in(const Catalogue& data, const std::string& node) {
  const auto said = open_entry(data, node_shelf, node).peek("parts.gpu");
  return number_from<std::uint32_t>(said.value_or("")).value_or(0);
}

std::string gpu_of(const Catalogue& data, const std::string& node) {
  const std::string said = heading_in(file_of(data, node_shelf, node), "gpu");
  return said.empty() ? open_entry(data, node_shelf, node).peek("gpu").value_or("") : said;
}

// Sizes of models are written alike: "8x22b".
bool is_size(std::string_view word) {
  return word.size() > 1 && (word.back() == 'b' || word.back() == 'm') &&
         std::all_of(word.begin(), word.end() - 1, is_digit);
}

}  // namespace

std::optional<NamedMachine> machine_in_name(const Catalogue& data, std::string_view name) {
  const std::string text = in_small_letters(name);
  for (std::size_t x = text.find('x', 1); x != std::string::npos; x = text.find('x', x + 1)) {
    std::size_t begin = x, end = x + 1;
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    while (end < text.size() && is_letter_or_digit(text[end])) ++end;
    const std::string_view gpu = std::string_view(text).substr(x + 1, end - x - 1);
    if (begin == x || (begin > 0 && is_letter_or_digit(text[begin - 1])) || gpu.size() < 2 ||
        is_size(gpu) || std::none_of(gpu.begin(), gpu.end(), is_digit))
      continue;
    NamedMachine machine{.words = std::string(name.substr(begin, end - begin))};
    std::from_chars(text.data() + begin, text.data() + x, machine.gpus);
    if (machine.gpus == 0 || machine.gpus > 1u << 16) continue;
    find_node(data, gpu, machine);
    return machine;
  }
  return std::nullopt;
}

std::optional<NamedMachine> gpu_in_name(const Catalogue& data, std::string_view name,
                                        std::uint32_t gpus) {
  const std::string text = in_small_letters(name);
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_letter_or_digit(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    const bool letters = std::any_of(word.begin(), word.end(), is_letter);
    const bool digits = std::any_of(word.begin(), word.end(), is_digit);
    if (word.size() >= 3 && letters && digits && !is_size(word)) {
      NamedMachine machine{.words = std::string(name.substr(begin, end - begin)), .gpus = gpus};
      if (gpus == 0) machine.gpus = largest_node(data, word);
      if (machine.gpus > 0) find_node(data, word, machine);
      if (!machine.node.empty()) return machine;
    }
    begin = std::max(end, begin + 1);
  }
  return std::nullopt;
}

std::optional<CalledGpu> called_gpu(const Catalogue& data, std::string_view said) {
  const Document document = read_document(data.file("scenarios/foreign/table/gpu_names.yaml"));
  const Table root = document.root();
  std::string rented = in_small_letters(said);
  if (rented.starts_with("ml.")) rented.erase(0, 3);
  CalledGpu called;
  const Table instances = root.table("instances");
  if (instances.is_mapping(rented)) {
    const Table each = instances.table(rented);
    called = {each.text("gpu"), static_cast<std::uint32_t>(each.integer("count", 1, 1 << 10))};
  } else {
    const std::vector<std::string> words = words_of_gpu(said);
    for (const Table& each : root.tables("gpus")) {
      const std::vector<std::string> wanted = each.texts("words");
      if (!std::ranges::all_of(wanted, [&](const auto& word) { return holds(words, word); }))
        continue;
      called.gpu = each.text("gpu");
      called.node = each.text_or("node", "");
      break;
    }
  }
  if (called.gpu.empty()) return std::nullopt;
  called.is_modelled = is_on(data, gpu_shelf, called.gpu);
  return called;
}

std::optional<NamedMachine> machine_called(const Catalogue& data, std::string_view said,
                                           std::uint32_t gpus) {
  const auto called = called_gpu(data, said);
  if (!called) return gpu_in_name(data, said, gpus);  // nodes have names that no GPU has: "h800-8"
  if (!called->is_modelled) return std::nullopt;
  NamedMachine machine{.words = std::string(said),
                       .gpus = gpus > 0 ? gpus : std::max(called->count, 1u)};
  const auto of_this_gpu = [&](const std::string& node) {
    if (!called->node.empty() && node != called->node) return 0U;
    return gpu_of(data, node) == called->gpu ? gpus_in(data, node) : 0;
  };
  find_node(data, of_this_gpu, machine);
  return machine.node.empty() ? std::nullopt : std::optional(machine);
}

}  // namespace stepsim
