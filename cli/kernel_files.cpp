#include "cli/kernel_files.hpp"

#include "topology/catalog.hpp"

namespace stepsim {

std::vector<CsvTable> read_kernel_tables(const std::string& data,
                                         std::span<const std::string> files) {
  std::vector<CsvTable> tables;
  for (const std::string& file : files) tables.push_back(read_csv(file));
  if (tables.empty())
    for (const char* file : {"scenarios/measured/gemm.csv", "scenarios/measured/attention.csv"})
      tables.push_back(read_csv(data_file(data, file)));
  return tables;
}

}  // namespace stepsim
