#include "workloads/model/model_catalog.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "workloads/model/hf_cache.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/other_models.hpp"

namespace stepsim {
namespace {

// The pinned figures are published ones: dimensions that miss them are wrong.
void check_pins(const Table& root, const Model& model) {
  constexpr std::int64_t most = std::int64_t{1} << 53;  // whole numbers up to here are exact
  const ParameterCount count = count_parameters(model);
  const auto check = [&](std::string_view key, std::int64_t pinned, std::int64_t counted) {
    if (root.sound() && pinned != counted)
      root.problem(key, fmt::format("the file pins {}, but its dimensions give {}: {} {}", pinned,
                                    counted, counted > pinned ? counted - pinned : pinned - counted,
                                    counted > pinned ? "more" : "fewer"));
  };
  check("parameters", root.integer("parameters", 1, most), count.total());
  check("buffers", root.integer_or("buffers", 0, 0, most), count.buffers);
}

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

// Returns the name in small letters, without the words that say how a copy's tensors are stored.
std::string as_first_stored(std::string name) {
  constexpr std::array words{"-bnb-4bit", "-unsloth", "-bf16", "-hf", "-fp8"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view word : words)
      if (name.size() > word.size() && name.ends_with(word)) {
        name.resize(name.size() - word.size());
        found = true;
      }
  }
  return name;
}

}  // namespace

bool is_config_path(std::string_view name_or_path) {
  std::error_code failed;
  return name_or_path.ends_with(".json") || name_or_path.find('/') != std::string_view::npos ||
         std::filesystem::exists(std::filesystem::path(name_or_path) / "config.json", failed);
}

std::string resolve_model(const Catalogue& data, const std::string& name) {
  const bool id = is_hf_id(name);
  if (name.empty() || (!id && is_config_path(name))) return name;
  std::string last = last_part(in_small_letters(name));
  if (is_on(data, model_shelf, last)) return last;
  const std::vector<std::string> entries = names_on(data, model_shelf);
  // A model of the same name by somebody else is a copy of it; an exact name is better.
  const std::string plain = as_first_stored(last);
  std::string copied;
  for (const std::string& entry : entries) {
    const Document document = open_entry(data, model_shelf, entry);
    std::vector<std::string> ids = document.root().texts_or("also");
    ids.push_back(document.root().text_or("hub", ""));
    for (const std::string& each : ids) {
      const std::string known = in_small_letters(each);
      if (known == in_small_letters(name)) return entry;
      if (copied.empty() && !known.empty() && as_first_stored(last_part(known)) == plain)
        copied = entry;
    }
    if (copied.empty() && entry == plain) copied = entry;
  }
  std::string local = id ? cached_config(data.hub(), name).value_or("") : "";
  if (!local.empty()) return local;
  return copied.empty() ? name : copied;
}

std::string unknown_id_text(const Catalogue& data, const std::string& id) {
  if (const std::string why = why_not_modelled(data, id); !why.empty())
    return fmt::format("\"{}\" is {}", id, why);
  const std::string& hub = data.hub();
  return fmt::format(
      "\"{}\" is neither a model of the catalogue (`stepsim list models`), nor a folder or file "
      "here, nor in the local cache of Hugging Face{}",
      id, hub.empty() ? "" : fmt::format(" ({})", hf_folder(hub, id).string()));
}

std::string published_name(const Catalogue& data, const std::string& name) {
  if (is_config_path(name) || is_hf_id(name)) return name;
  return open_entry(data, model_shelf, name).root().text_or("hub", name);
}

Model load_model(const Catalogue& data, const std::string& name_or_path) {
  const std::string resolved = resolve_model(data, name_or_path);
  if (is_hf_id(resolved)) throw UserError(unknown_id_text(data, resolved));
  if (is_config_path(resolved)) return load_hf_config(resolved);
  const Document document = open_entry(data, model_shelf, resolved);
  const Table root = document.root();
  root.text("title");
  root.text_or("hub", "");
  root.texts_or("also");
  root.text("source");
  Model model = read_hf_config(root.table("config"), root.text("name"));
  if (root.sound())
    check_pins(root, model);
  else  // they are no unknown keys
    for (const char* key : {"parameters", "buffers"}) root.has(key);
  document.finish();
  return model;
}

}  // namespace stepsim
