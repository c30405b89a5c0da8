#include "workloads/model/model_catalog.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "workloads/model/hf_config.hpp"

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

}  // namespace

bool is_config_path(std::string_view name_or_path) {
  std::error_code failed;
  return name_or_path.ends_with(".json") || name_or_path.find('/') != std::string_view::npos ||
         std::filesystem::exists(std::filesystem::path(name_or_path) / "config.json", failed);
}

Model load_model(const std::string& data, const std::string& name_or_path) {
  if (is_config_path(name_or_path)) return load_hf_config(name_or_path);
  const Document document = open_entry(data, model_shelf, name_or_path);
  const Table root = document.root();
  root.text("title");
  root.text("source");
  Model model = read_hf_config(root.table("config"), root.text("name"));
  if (root.sound()) check_pins(root, model);
  document.finish();
  return model;
}

}  // namespace stepsim
