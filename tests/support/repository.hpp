// A folder of files that somebody has, with the top of a repository, as a front door finds it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/translated.hpp"

namespace stepsim {

class Repository {
 public:
  Repository() { std::filesystem::create_directories(folder_.file(".git")); }

  const Repository& with(const std::string& name, const std::string& text) const {
    const std::filesystem::path path(folder_.file(name));
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return *this;
  }
  Translation read(const std::string& name, const std::vector<Setting>& settings = {}) const {
    return translate_source(data, folder_.file(name), settings).value();
  }
  std::string refusal(const std::string& name, const std::vector<Setting>& settings = {}) const {
    try {
      read(name, settings);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace stepsim
