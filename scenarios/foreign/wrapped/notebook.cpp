#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "scenarios/foreign/table/named_machines.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

// Pictures in outputs are texts of megabytes, and nothing that is looked for is in them. Halves of
// letters beyond 16 bits, "\ud83e", are no letters to a reader of YAML.
std::string without_pictures(std::string_view json) {
  constexpr std::size_t longest = 50000;
  std::string result;
  for (std::size_t at = 0; at < json.size();) {
    if (json[at] != '"') {
      result += json[at++];
      continue;
    }
    std::size_t end = at + 1;
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, json.size());
    const std::size_t from = result.size();
    if (end - at > longest)
      result += "\"\"";
    else
      result += json.substr(at, end - at);
    for (std::size_t half = result.find("\\ud", from); half != std::string::npos;
         half = result.find("\\ud", half + 1))
      if (half + 3 < result.size() && in_small_letters(result.substr(half + 3, 1)) >= "8")
        result[half + 2] = '0';
    at = end;
  }
  return result;
}

// A text is one, or a list of its lines.
std::string text_at(const Table& table, std::string_view key) {
  if (!table.has(key)) return "";
  if (!table.one_line(key).starts_with('[')) return table.text_or(key, "");
  std::string text;
  for (const std::string& line : table.texts_or(key)) text += line;
  return text;
}

std::string_view without_indent(std::string_view line) {
  const std::size_t from = line.find_first_not_of(" \t");
  return from == std::string_view::npos ? "" : line.substr(from);
}

// Takes a cell apart into lines of Python and of a shell; each keeps its place.
class CellReader {
 public:
  explicit CellReader(WrappedSource& source) : source_(source) {}

  void add(std::string_view text) {
    const std::vector<std::string_view> lines = lines_in(text);
    const int first = line_ + 1;
    source_.cells.push_back({static_cast<int>(source_.cells.size()) + 1, first});
    const std::size_t head = static_cast<std::size_t>(
        std::find_if(lines.begin(), lines.end(),
                     [](std::string_view line) { return !without_indent(line).empty(); }) -
        lines.begin());
    const std::string_view begin = head < lines.size() ? without_indent(lines[head]) : "";
    if (!begin.starts_with("%%")) return add_lines(lines);
    const std::vector<std::string_view> words = split(begin.substr(2), ' ');
    const std::string_view magic = words.front();
    if (magic == "bash" || magic == "sh" || magic == "shell" || magic == "script") {
      for (std::size_t i = 0; i < lines.size(); ++i) put("", i <= head ? "" : lines[i]);
    } else if (magic == "writefile" && words.size() > 1) {
      std::string body;
      for (std::size_t i = head + 1; i < lines.size(); ++i) body += std::string(lines[i]) + '\n';
      source_.files[std::string(words.back())] = {body, first + static_cast<int>(head) + 1};
      for (std::size_t i = 0; i < lines.size(); ++i) put("", "");
    } else if (magic.starts_with("time") || magic.starts_with("capture")) {
      std::vector<std::string_view> rest = lines;
      rest[head] = "";
      add_lines(rest);
    } else {
      for (std::size_t i = 0; i < lines.size(); ++i) put("", "");
    }
  }

  void leave_out(std::string_view text) {
    source_.cells.push_back({static_cast<int>(source_.cells.size()) + 1, line_ + 1});
    for (std::size_t i = lines_in(text).size(); i > 0; --i) put("", "");
  }

 private:
  void put(std::string_view python, std::string_view shell) {
    source_.python += std::string(python) + '\n';
    source_.shell += std::string(shell) + '\n';
    ++line_;
  }

  void add_lines(const std::vector<std::string_view>& lines) {
    bool goes_on = false;  // a command over several lines
    for (const std::string_view line : lines) {
      const std::string_view said = without_indent(line);
      const std::string indent(line.substr(0, line.size() - said.size()));
      if (goes_on) {
        put("", line);
      } else if (said.starts_with('!')) {
        put(indent + "pass", said.substr(said.starts_with("!!") ? 2 : 1));
      } else if (said.starts_with('%')) {
        put(indent + "pass", command_of(said.substr(1)));
      } else if (said.ends_with('?') && said.find_first_of(" #'\"") == std::string_view::npos) {
        put(indent + "pass", "");
        continue;
      } else if (const std::size_t sign = line.find("= !"); sign != std::string_view::npos) {
        put(std::string(line.substr(0, sign)) + "= None", "");
        continue;
      } else {
        put(line, "");
        continue;
      }
      goes_on = line.ends_with('\\');
    }
  }

  // Line magics that do what a command does.
  static std::string command_of(std::string_view magic) {
    const std::size_t blank = std::min(magic.find(' '), magic.size());
    const std::string_view name = magic.substr(0, blank), rest = magic.substr(blank);
    if (name == "env" || name == "set_env") return fmt::format("export{}", rest);
    if (name == "run") return fmt::format("python{}", rest);
    return name == "pip" || name == "sx" || name == "system"
               ? std::string(name == "pip" ? magic : rest)
               : "";
  }

  WrappedSource& source_;
  int line_ = 0;
};

constexpr std::array gpu_marks{"Tesla ", "NVIDIA ", "GeForce ", "AMD Instinct "};

// Returns what a line of nvidia-smi's table, or of what a library prints, calls the GPU.
std::string gpu_in_output(const Catalogue& data, std::string_view line) {
  constexpr std::size_t longest = 40;
  for (const std::string_view mark : gpu_marks) {
    const std::size_t at = line.find(mark);
    if (at == std::string_view::npos) continue;
    std::string_view name = line.substr(at, longest);
    name = name.substr(0, std::min(name.find("  "), name.find_first_of(".,|")));
    if (name.find_first_of("0123456789") != std::string_view::npos && called_gpu(data, name))
      return std::string(name);
  }
  return "";
}

void find_gpu_in_outputs(const Catalogue& data, const Table& cell, WrappedSource& source) {
  if (!source.gpu.empty() || !cell.has("outputs")) return;
  const std::string outputs = cell.one_line("outputs");
  if (std::ranges::none_of(gpu_marks, [&](std::string_view mark) {
        return outputs.find(mark) != std::string::npos;
      }))
    return;
  for (const Table& output : cell.tables("outputs")) {
    const std::string text = text_at(output, "text");
    for (const std::string_view line : lines_in(text)) {
      source.gpu = gpu_in_output(data, line);
      if (source.gpu.empty()) continue;
      source.why_gpu =
          fmt::format("the output of code cell {} shows {}", source.cells.size(), source.gpu);
      return;
    }
  }
}

// Colab's V100 and A100 are those with less memory.
void find_gpu_in_metadata(const Table& metadata, WrappedSource& source) {
  const auto take = [&](std::string said, std::string_view key) {
    source.why_gpu = fmt::format("the notebook's {} is {}", key, said);
    source.gpu = said == "A100" ? "A100 40GB" : std::move(said);
  };
  if (const auto colab = metadata.table_if("colab")) {
    if (const std::string said = colab->text_or("gpuType", ""); !said.empty())
      return take(said, "gpuType");
    const bool asks = metadata.text_or("accelerator", "") == "GPU";
    if (asks) {
      source.gpu = "T4";
      source.why_gpu = "the notebook's accelerator is Colab's usual GPU, a T4";
    }
    return;
  }
  if (const auto kaggle = metadata.table_if("kaggle"))
    if (const std::string said = kaggle->text_or("accelerator", "");
        !said.empty() && said != "none")
      take(said == "gpu" ? "P100" : said, "accelerator");
}

bool has_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}
bool trains(std::string_view cell) {
  return has_word(cell, {"Trainer("});
}
bool loads(std::string_view cell) {
  return has_word(cell, {"ForCausalLM.from_pretrained(", "LanguageModel.from_pretrained(",
                         "FastModel.from_pretrained("});
}

// Returns which of the trainings each cell belongs to, from 0 on: one begins where a model is
// loaded behind a trainer. Cells behind the last trainer belong to the last.
std::vector<std::size_t> trainings_of(const std::vector<std::string>& cells) {
  const auto last = std::find_if(cells.rbegin(), cells.rend(), trains);
  const auto behind = static_cast<std::size_t>(cells.rend() - last);
  std::vector<std::size_t> all;
  std::size_t now = 0;
  bool trained = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (trained && i < behind && loads(cells[i])) {
      ++now;
      trained = false;
    }
    all.push_back(now);
    trained = trained || trains(cells[i]);
  }
  return all;
}

// The first trainer of each training, for the message.
std::string places_of_trainers(const std::vector<std::string>& cells,
                               const std::vector<std::size_t>& trainings) {
  std::vector<std::string> places;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (trains(cells[i]) && trainings[i] == places.size())
      places.push_back(fmt::format("code cell {}", i + 1));
  return fmt::format("{}", fmt::join(places, ", "));
}

// Returns which cells say nothing of the training that is asked about: models and trainers of
// others, and all behind its last trainer, where people try what came out.
std::vector<bool> others_of(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& trainings, std::size_t number) {
  const std::size_t own = number > 0 ? number - 1 : 0;
  std::size_t behind = cells.size();
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (trains(cells[i]) && trainings[i] == own) behind = i + 1;
  std::vector<bool> others;
  for (std::size_t i = 0; i < cells.size(); ++i)
    others.push_back(i >= behind ||
                     (trainings[i] != own && (trains(cells[i]) || loads(cells[i]) ||
                                              has_word(cells[i], {"Config(", "Arguments("}))));
  return others;
}

}  // namespace

WrappedSource read_notebook(const Catalogue& data, const std::string& file, std::size_t number) {
  const Document document = parse_document(without_pictures(read_text(file)), file);
  const Table root = document.root();
  if (!root.has("cells")) fail(file, "is no notebook of this format: it has no cells");
  WrappedSource source{.title = "a Jupyter notebook"};
  std::vector<std::string> cells;
  const std::vector<Table> all = root.tables("cells");
  for (const Table& cell : all)
    if (cell.text_or("cell_type", "") == "code") cells.push_back(text_at(cell, "source"));
  const std::vector<std::size_t> trainings = trainings_of(cells);
  const std::size_t count = trainings.empty() ? 1 : trainings.back() + 1;
  if (number > count || (number == 0 && count > 1))
    throw UserError(
        {{file, 0, "",
          fmt::format("trains {} model{}, one after the other, in {}: --launch N says "
                      "which, from 1 to {}",
                      count, count == 1 ? "" : "s", places_of_trainers(cells, trainings), count)}});
  const std::vector<bool> others = others_of(cells, trainings, number);
  CellReader reader(source);
  std::size_t place = 0;
  for (const Table& cell : all) {
    if (cell.text_or("cell_type", "") != "code") continue;
    if (others[place])
      reader.leave_out(cells[place]);
    else
      reader.add(cells[place]);
    find_gpu_in_outputs(data, cell, source);
    ++place;
  }
  if (source.gpu.empty())
    if (const auto metadata = root.table_if("metadata")) find_gpu_in_metadata(*metadata, source);
  source.gpus = 1;
  source.why_gpus = "a notebook is one process";
  source.nothing =
      "its code cells call no trainer of transformers or TRL, and none of its ! lines starts a "
      "training";
  return source;
}

}  // namespace stepsim
