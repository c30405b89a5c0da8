#include "cli/sweep_files.hpp"

#include <cstdio>
#include <filesystem>
#include <string_view>

#include "cli/outputs.hpp"
#include "cli/screen.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// A process that was killed while it wrote leaves its unfinished copy behind.
void sweep_up(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  const std::string unfinished = fs::path(file).filename().string() + ".tmp-";
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, failed))
    if (entry.path().filename().string().starts_with(unfinished)) fs::remove(entry.path(), failed);
}

}  // namespace

void require_own_names(const std::string& stem, std::span<const std::string> inputs) {
  for (const std::string_view ending : {".csv", ".h5", ".journal"})
    require_no_input(stem + std::string(ending), inputs);
}

void write_tables(const std::string& stem, const SweepTable& table) {
  sweep_up(stem + ".csv");
  write_file(stem + ".csv", csv_of(table));
  write_shard(stem, table);
}

void write_shard(const std::string& stem, const SweepTable& table) {
  sweep_up(stem + ".h5");
  write_sweep(stem + ".h5", table);
}

int finish_sweep(const std::string& journal, const SweepTable& table, int code) {
  if (table.unanswered == 0) {
    if (!journal.empty()) fs::remove(journal);
    return code;
  }
  say(stderr, "stepsim: {} of {} points got no answer; their rows say why{}\n", table.unanswered,
      table.rows.size(), journal.empty() ? "" : ". The same command computes only those again");
  return exit_code::bug;
}

}  // namespace stepsim
