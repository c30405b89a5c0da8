// `serve` shows a page to try settings on, for the browser of whoever started it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/screen.hpp"
#include "cli/serve/offered.hpp"
#include "cli/serve/server.hpp"
#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"
#include "sim/process/worker.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t usual_port = 8420, most_port = 65535;
constexpr std::string_view usual_address = "127.0.0.1";
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

// Returns where browsers find it.
std::string link_of(const Serving& serving, const std::string& address, std::uint16_t port) {
  const std::string place = serving.origin.empty()
                                ? fmt::format("http://{}:{}", host_of(address), port)
                                : serving.origin + serving.root;
  return place + "/?token=";
}

void print_link(const Serving& serving, const std::string& link) {
  const bool named = !serving.tokens.front().name.empty();
  say("{}{}\nOpen this link in a browser{}; Ctrl-C ends the server.\n", link,
      named ? "TOKEN" : serving.tokens.front().token,
      named ? ", with a token of the file for TOKEN" : "");
}

std::vector<NamedToken> read_tokens(const std::string& file) {
  constexpr std::size_t least = 16;
  const Document document = read_document(file);
  const Table root = document.root();
  std::vector<NamedToken> tokens;
  for (const std::string& name : root.keys()) {
    tokens.push_back({name, root.text(name)});
    if (const std::string& token = tokens.back().token;
        token.size() < least || !std::ranges::all_of(token, is_letter_or_digit))
      root.problem(name, fmt::format("expected {} letters and digits, or more", least));
  }
  document.finish();
  if (tokens.empty()) fail(file, "holds no token: expected lines NAME: TOKEN");
  return tokens;
}

void take_public_url(const std::string& url, Serving& serving) {
  const std::size_t host = url.find("://") + 3;
  const std::size_t path = std::min(url.find('/', std::max<std::size_t>(host, 3)), url.size());
  const bool http = url.starts_with("http://") || url.starts_with("https://");
  if (!http || path <= host || url.find_first_of("?#@ ") != std::string::npos)
    throw UserError(fmt::format(
        "--public-url: expected a URL such as https://example.org/stepsim, found \"{}\"", url));
  serving.origin = in_small_letters(url.substr(0, path));
  serving.root = url.substr(path);
  while (serving.root.ends_with('/')) serving.root.pop_back();
  serving.hosts.push_back(serving.origin.substr(host));
}

int open_log(const std::string& file) {
  if (file == "-") return STDERR_FILENO;
  const int log = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (log < 0) fail(file, fmt::format("cannot be written: {}", std::strerror(errno)));
  return log;
}

}  // namespace

int serve_command(const CommandLine& line) {
  const auto options = parse("serve", line.words);
  if (!options) return exit_code::yes;
  const std::string address = options->get("address").value_or(std::string(usual_address));
  const auto log = options->get("log");
  const Listening where{
      address,
      static_cast<std::uint16_t>(count_of(*options, "port", 0, most_port).value_or(usual_port)),
      {.long_ones = std::clamp<std::size_t>(usual_workers() / 2, 2, 8)},
      log ? open_log(*log) : -1};
  if (!is_of_this_machine_alone(address))
    say(stderr,
        "stepsim: warning: everybody who reaches {} can call, and what is said is not "
        "encrypted: whoever sees the link has it\n",
        address);
  Serving serving{
      fence_around(line.data, options->words),
      {std::string(usual_address), "localhost", "[::1]", in_small_letters(host_of(address))},
      0,
      {{"", random_token()}}};
  if (const auto tokens = options->get("tokens")) serving.tokens = read_tokens(*tokens);
  if (const auto url = options->get("public-url")) take_public_url(*url, serving);
  if (!serving.fence.shut_in)
    say(stderr,
        "stepsim: note: this kernel has no Landlock to keep other files from requests, so "
        "no files can be dropped\n");
  for (const Problem& problem : read_offered(serving).left_out)
    say(stderr, "stepsim: note: left out: {}\n", to_text(problem));
  serve(serving, where,
        [&](std::uint16_t port) { print_link(serving, link_of(serving, address, port)); });
  return exit_code::yes;
}

}  // namespace stepsim
