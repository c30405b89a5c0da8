#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "scenarios/foreign/table/named_machines.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_count = 1 << 20;

std::optional<std::int64_t> count_at(const Table& table, std::string_view key) {
  if (!table.has(key)) return std::nullopt;
  const std::string said = table.one_line(key);
  const std::size_t from = said.find_first_not_of("'\"");
  std::int64_t count = 0;
  if (from == std::string::npos) return std::nullopt;
  const auto [end, failed] = std::from_chars(said.data() + from, said.data() + said.size(), count);
  const bool whole = end == said.data() + said.size() || *end == '\'' || *end == '"';
  return failed == std::errc() && whole && count > 0 && count <= most_count ? std::optional(count)
                                                                            : std::nullopt;
}

// A word of a command, and the words of a list or of a text.
std::vector<std::string> words_at(const Table& table, std::string_view key) {
  if (is_list(table, key)) {
    const std::vector<std::string> values = table.values(key);
    const bool all_plain = std::ranges::none_of(
        values, [](const std::string& each) { return each.starts_with('{') || each.empty(); });
    return all_plain ? table.texts(key) : std::vector<std::string>{};
  }
  return is_text(table, key) ? std::vector{table.text_or(key, "")} : std::vector<std::string>{};
}

int line_of(const Table& table, std::string_view key) {
  const auto origin = table.origin(key);
  return origin ? origin->line : 1;
}

// Gathers commands in the lines of the file, and what is said of the machine.
class JobReader {
 public:
  JobReader(const Catalogue& data, WrappedSource& source) : data_(data), source_(source) {}

  // SkyPilot: https://docs.skypilot.co, "SkyPilot YAML", of 0.10.
  void read_task(const Table& root) {
    if (const auto resources = root.table_if("resources")) read_accelerators(*resources);
    std::string begin = environment(root, "envs");
    source_.nodes = count_at(root, "num_nodes");
    begin += fmt::format("export SKYPILOT_NUM_NODES={} SKYPILOT_NUM_GPUS_PER_NODE={}; ",
                         source_.nodes.value_or(1), source_.gpus.value_or(1));
    for (const std::string_view key : {"setup", "run"})
      if (is_text(root, key)) add_script(root, key, begin);
  }

  // Anything with commands in it, however deep.
  void read_anywhere(const Table& table, int depth = 0) {
    constexpr int deepest = 40;
    if (depth > deepest) return;
    read_machine(table);
    add_commands(table);
    for (const std::string& key : table.keys()) {
      if (table.is_mapping(key)) {
        read_anywhere(table.table(key), depth + 1);
      } else if (is_list(table, key) && table.one_line(key).find('{') != std::string::npos) {
        for (const Table& each : table.tables(key)) read_anywhere(each, depth + 1);
      }
    }
  }

  // The clusters of MosaicML hand the program these settings as a file, and count all GPUs.
  void read_parameters(const Table& root, std::string_view text) {
    constexpr std::int64_t each = 8;
    constexpr std::string_view head = "parameters:";
    if (!root.is_mapping("parameters")) return;
    std::string block;
    bool inside = false;
    int line = 0, first = 1;
    for (const std::string_view said : lines_in(text)) {
      ++line;
      const bool indented =
          said.empty() || std::string_view(" #\r").find(said.front()) != std::string_view::npos;
      inside = said.starts_with(head) || (inside && indented);
      if (said.starts_with(head)) first = line + 1;
      if (inside && indented) block += std::string(said) + '\n';
    }
    source_.files["parameters.yaml"] = {block, first};
    const auto compute = root.table_if("compute");
    const auto gpus = compute ? count_at(*compute, "gpus") : std::nullopt;
    if (!gpus || source_.gpus || (*gpus > each && *gpus % each != 0)) return;
    source_.nodes = std::max<std::int64_t>(*gpus / each, 1);
    source_.gpus = std::min(*gpus, each);
    source_.why_gpus = fmt::format("gpus of compute is {}", *gpus);
  }

  // Files of a ConfigMap: programs lie beside the commands, scripts are as good as commands.
  void read_config_map(const Table& root) {
    const auto files = root.table_if("data");
    if (!files) return;
    for (const std::string& name : files->keys()) {
      if (!is_text(*files, name)) continue;
      if (name.ends_with(".sh"))
        add_script(*files, name, "");
      else
        source_.files[name] = {files->text_or(name, ""), line_of(*files, name) + 1};
    }
  }

 private:
  void add(int line, const std::string& text) {
    const int there = static_cast<int>(std::ranges::count(source_.shell, '\n')) + 1;
    source_.shell += in_line(std::max(line - there, 0) + 1, text);
    if (!text.ends_with('\n')) source_.shell += '\n';
  }

  // A text of several lines begins in the line behind its key.
  void add_script(const Table& table, std::string_view key, const std::string& begin) {
    const std::string text = table.text_or(key, "");
    const bool block = text.find('\n') != std::string::npos;
    add(line_of(table, key) + (block ? 1 : 0), begin + text);
  }

  std::string environment(const Table& table, std::string_view key) const {
    std::string text;
    const auto put = [&](const std::string& name, const std::string& value) {
      const bool fits =
          !name.empty() && !is_digit(name.front()) &&
          std::ranges::all_of(name, [](char c) { return is_letter_or_digit(c) || c == '_'; });
      if (fits) text += fmt::format("export {}={}; ", name, shell_quoted(value));
    };
    if (const auto all = table.table_if(key); all && table.is_mapping(key)) {
      for (const std::string& name : all->keys())
        if (is_text(*all, name)) put(name, all->text_or(name, ""));
    } else if (is_list(table, key) && table.one_line(key).find('{') != std::string::npos) {
      for (const Table& each : table.tables(key))
        if (is_text(each, "name") && is_text(each, "value"))
          put(each.text_or("name", ""), each.text_or("value", ""));
    }
    return text;
  }

  void take_gpu(const std::string& said, std::string_view key) {
    if (!source_.gpu.empty() || !called_gpu(data_, said)) return;
    source_.gpu = said;
    source_.why_gpu = fmt::format("{} says {}", key, said);
  }

  // "A100:8", {A100: 8}, or a choice of several, of which the first is taken.
  void read_accelerators(const Table& resources) {
    constexpr std::string_view key = "accelerators";
    std::string said;
    if (const auto all = resources.table_if(key); resources.is_mapping(key) && all) {
      for (const std::string& name : all->keys())
        if (said.empty())
          said = fmt::format("{}:{}", name, is_text(*all, name) ? all->text_or(name, "1") : "1");
    } else if (const std::vector<std::string> words = words_at(resources, key); !words.empty()) {
      said = words.front();
    }
    for (const std::string_view choice : {"any_of", "ordered"})
      if (said.empty() && is_list(resources, choice)) {
        for (const Table& each : resources.tables(choice)) {
          read_accelerators(each);
          if (source_.gpus) return;
        }
      }
    if (said.empty()) return;
    const std::size_t colon = std::min(said.find(':'), said.size());
    std::int64_t count = 1;
    if (colon < said.size())
      std::from_chars(said.data() + colon + 1, said.data() + said.size(), count);
    source_.gpu = said.substr(0, colon);
    source_.why_gpu = fmt::format("accelerators says {}", said);
    source_.gpus = std::clamp<std::int64_t>(count, 1, most_count);
    source_.why_gpus = fmt::format("accelerators says {}", said);
  }

  void read_machine(const Table& table) {
    for (const std::string_view bounds : {"limits", "requests"})
      if (const auto limits = table.table_if(bounds); limits && !source_.gpus)
        for (const std::string_view key : {"nvidia.com/gpu", "amd.com/gpu"})
          if (const auto count = count_at(*limits, key)) {
            source_.gpus = count;
            source_.why_gpus = fmt::format("{} of {} is {}", key, bounds, *count);
          }
    // Replicas of PyTorchJob are nodes; of others the first that says how many holds.
    if (const auto replicas = table.table_if("pytorchReplicaSpecs")) {
      std::int64_t nodes = 0;
      for (const std::string& role : replicas->keys())
        if (replicas->is_mapping(role))
          nodes += count_at(replicas->table(role), "replicas").value_or(1);
      source_.nodes = nodes;
    }
    for (const std::string_view key : {"numNodes", "num_nodes", "parallelism", "nodes", "gpuCount"})
      if (const auto count = count_at(table, key)) {
        auto& place = key == "gpuCount" ? source_.gpus : source_.nodes;
        if (!place) place = count;
        if (key == "gpuCount" && source_.why_gpus.empty())
          source_.why_gpus = fmt::format("gpuCount is {}", *count);
      }
    for (const std::string& key : table.keys()) {
      const std::string small = in_small_letters(key);
      const bool names_it = std::ranges::any_of(
          std::array{"gpu", "accelerator", "instance"},
          [&](const char* word) { return small.find(word) != std::string::npos; });
      if (names_it && is_text(table, key)) take_gpu(table.text_or(key, ""), key);
    }
    if (is_text(table, "key") && is_list(table, "values"))
      for (const std::string& each : words_at(table, "values"))
        take_gpu(each, table.text_or("key", ""));
  }

  // [bash, -c, SCRIPT], the words of a command, or a script.
  void add_commands(const Table& table) {
    std::vector<std::string> words;
    int line = 0;
    for (const std::string_view key : {"command", "entrypoint", "arguments", "args"}) {
      const std::vector<std::string> here = words_at(table, key);
      if (here.empty()) continue;
      if (line == 0 || here.front().find('\n') != std::string::npos)
        line = line_of(table, key) + (here.front().find('\n') != std::string::npos ? 1 : 0);
      words.insert(words.end(), here.begin(), here.end());
      if (!is_list(table, key) && words.size() == 1 &&
          here.front().find(' ') != std::string::npos) {
        add(line, environment(table, "env") + here.front());  // a script by itself
        words.clear();
      }
    }
    for (const std::string& each : words_at(table, "commands"))
      add(line_of(table, "commands") + 1, environment(table, "env") + each);
    if (words.empty()) return;
    const auto shell = std::ranges::find_if(words, [](const std::string& word) {
      return word.starts_with('-') && word.ends_with('c') && word.size() < 5;
    });
    const bool is_shell = words.front().ends_with("sh") && shell != words.end();
    std::string text = environment(table, "env");
    if (is_shell) {
      for (auto each = shell + 1; each != words.end(); ++each) text += *each + "\n";
    } else {
      for (const std::string& word : words) text += filled(word) + " ";
    }
    add(line, text);
  }

  // Kubernetes fills in $(NAME).
  static std::string filled(const std::string& word) {
    const std::size_t from = word.find("$("), end = word.find(')', from);
    const bool variable = from != std::string::npos && end != std::string::npos && end > from + 2 &&
                          std::all_of(word.begin() + static_cast<std::ptrdiff_t>(from) + 2,
                                      word.begin() + static_cast<std::ptrdiff_t>(end),
                                      [](char c) { return is_letter_or_digit(c) || c == '_'; });
    if (!variable) return shell_quoted(word);
    return fmt::format("{}\"${{{}}}\"{}", from > 0 ? shell_quoted(word.substr(0, from)) : "",
                       word.substr(from + 2, end - from - 2),
                       end + 1 < word.size() ? shell_quoted(word.substr(end + 1)) : "");
  }

  const Catalogue& data_;
  WrappedSource& source_;
};

bool has_line(std::string_view text, std::string_view begin) {
  return text.starts_with(begin) || text.find(fmt::format("\n{}", begin)) != std::string_view::npos;
}

bool is_task(std::string_view text) {
  return has_line(text, "run:") &&
         std::ranges::any_of(std::array{"resources:", "setup:", "workdir:", "num_nodes:", "envs:"},
                             [&](const char* key) { return has_line(text, key); });
}

// Files of anybody's own with a launch line in them; others of that kind are none of a job.
bool holds_launch(std::string_view text) {
  const auto has = [&](const char* word) { return text.find(word) != std::string_view::npos; };
  return std::ranges::any_of(std::array{"command:", "commands:", "args:", "entrypoint:"}, has) &&
         std::ranges::any_of(std::array{"torchrun", "composer", "accelerate", "deepspeed", "python",
                                        "llamafactory-cli", "axolotl", "swift"},
                             has);
}

// Documents of one file, each with as many empty lines before it as stand before it there.
std::vector<std::string> documents_in(std::string_view text) {
  std::vector<std::string> all(1);
  int line = 0;
  for (const std::string_view each : lines_in(text)) {
    ++line;
    if (each.starts_with("---"))
      all.push_back(in_line(line + 1, ""));
    else
      all.back() += std::string(each) + '\n';
  }
  std::erase_if(all, [](const std::string& each) {
    return std::ranges::all_of(lines_in(each), [](std::string_view part) {
      const std::size_t from = part.find_first_not_of(" \t\r");
      return from == std::string_view::npos || part[from] == '#';
    });
  });
  return all;
}

bool is_kubernetes(std::string_view text) {
  return has_line(text, "apiVersion:") && has_line(text, "kind:");
}

}  // namespace

bool is_job_file(std::string_view text) {
  return is_kubernetes(text) || is_task(text);
}

std::optional<WrappedSource> read_job_file(const Catalogue& data, std::string_view text,
                                           const std::string& file) {
  const bool kubernetes = is_kubernetes(text);
  if (!kubernetes && !is_task(text) && !holds_launch(text)) return std::nullopt;
  WrappedSource source{.title = kubernetes      ? "a file of Kubernetes"
                                : is_task(text) ? "a task of SkyPilot"
                                                : "a job's file"};
  JobReader reader(data, source);
  for (const std::string& part : documents_in(text)) {
    const Document document = parse_document(part, file);
    const Table root = document.root();
    if (kubernetes && is_text(root, "kind") && root.text_or("kind", "") == "ConfigMap") {
      reader.read_config_map(root);
    } else if (!kubernetes && is_task(text)) {
      reader.read_task(root);
    } else {
      reader.read_anywhere(root);
      reader.read_parameters(root, part);
    }
  }
  source.nothing = "none of its commands starts a training";
  if (!kubernetes && !is_task(text) && source.shell.empty()) return std::nullopt;
  return source;
}

}  // namespace stepsim
