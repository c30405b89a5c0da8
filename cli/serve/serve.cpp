// `serve` shows a page to try settings on, for the browser of whoever started it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <random>

#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/screen.hpp"
#include "cli/serve/offered.hpp"
#include "cli/serve/server.hpp"
#include "cli/serve/shut_in.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/machine_error.hpp"
#include "sim/process/worker.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t usual_port = 8420, most_port = 65535;
constexpr std::string_view usual_address = "127.0.0.1";
constexpr std::array serve_option_specs{
    OptionSpec{"port", "N", "where the page is (default: 8420; 0: a free port)"},
    OptionSpec{"address", "ADDRESS",
               "another address of this machine than 127.0.0.1: then others reach it, too"}};
constexpr Usage serve_usage{
    "stepsim serve [FOLDER...] [options]",
    "A page in the browser on which one picks model, machine and settings, or drops a file, and "
    "sees at once how long a step takes, where the time goes and whether it fits; two settings "
    "beside each other, with the gap by setting. It prints a link with a token, and who does not "
    "have that is refused. Scenarios of the FOLDERs are offered beside those of the catalogue; no "
    "other file is read. Ctrl-C ends it.",
    serve_option_specs,
    "  stepsim serve\n"
    "  stepsim serve ~/runs --port 0\n"
    "  ssh -L 8420:127.0.0.1:8420 cluster stepsim serve\n",
    64};

std::string absolute_folder(const std::string& folder) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) throw UserError({{folder, 0, "", "is no folder"}});
  return fs::canonical(folder).string();
}

// Makes the catalogue's folders absolute, and leaves out the models that other programs keep: those
// folders were not given.
Catalogue absolute_catalogue(const Catalogue& data) {
  return Catalogue(mapped(data.folders(), absolute_folder));
}

// Returns the parts of each catalogue alone, as it may stand in a checkout with other things.
std::vector<std::string> catalogue_folders(const Catalogue& data) {
  std::vector<std::string> folders;
  for (const std::string& folder : data.folders())
    for (const std::string_view part : {"scenarios", "topology", "workloads", "claims"})
      folders.push_back(fmt::format("{}/{}", folder, part));
  return folders;
}

std::string random_token() {
  std::random_device source;
  std::string token;
  for (int words = 0; words < 4; ++words) token += fmt::format("{:08x}", source());
  return token;
}

// Returns what a browser writes for an address.
std::string host_of(const std::string& address) {
  return address.find(':') == std::string::npos ? address : fmt::format("[{}]", address);
}

void print_link(const Serving& serving, const std::string& address, std::uint16_t port) {
  say("http://{}:{}/?token={}\nOpen this link in a browser; Ctrl-C ends the server.\n",
      host_of(address), port, serving.token);
}

}  // namespace

int serve_command(const CommandLine& line) {
  const auto options = parse(serve_usage, line.words);
  if (!options) return exit_code::yes;
  const std::string address = options->get("address").value_or(std::string(usual_address));
  const Listening where{
      address,
      static_cast<std::uint16_t>(count_of(*options, "port", 0, most_port).value_or(usual_port)),
      {.long_ones = std::clamp<std::size_t>(usual_workers() / 2, 2, 8)}};
  if (!is_of_this_machine_alone(address))
    say(stderr,
        "stepsim: warning: everybody who reaches {} can call, and what is said is not "
        "encrypted: whoever sees the link has it\n",
        address);
  Serving serving{.data = absolute_catalogue(line.data),
                  .folders = mapped(options->words, absolute_folder),
                  .hosts = {std::string(usual_address), "localhost", "[::1]",
                            in_small_letters(host_of(address))},
                  .token = random_token(),
                  .shut_in = can_shut_in()};
  serving.readable = catalogue_folders(serving.data);
  append(serving.readable, serving.folders);
  try {
    load_simgrid();  // before requests are kept from other files
    serving.player = Player(EngineChoice::automatic);
  } catch (const MachineError& error) {
    say(stderr, "stepsim: note: {}\n", error.what());
  }
  if (!serving.shut_in)
    say(stderr,
        "stepsim: note: this kernel has no Landlock to keep other files from requests, so "
        "no files can be dropped\n");
  for (const Problem& problem : read_offered(serving).left_out)
    say(stderr, "stepsim: note: left out: {}\n", to_text(problem));
  serve(serving, where, [&](std::uint16_t port) { print_link(serving, address, port); });
  return exit_code::yes;
}

}  // namespace stepsim
