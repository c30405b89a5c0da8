#include "sim/engine/simgrid/platform_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

namespace sg4 = simgrid::s4u;

// These are global for the handler of signals, which may not do much.
int out_of_stop = -1;
long asked_from = -1, asked_to = -1;

extern "C" void say_stopped(int) {
  char text[64];
  const int size = std::snprintf(text, sizeof text, "\nstopped %ld %ld\n", asked_from, asked_to);
  if (size > 0 && write(out_of_stop, text, static_cast<std::size_t>(size)) > 0) _exit(1);
  _exit(2);
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void write_hosts(std::FILE* out, const std::vector<sg4::Host*>& hosts) {
  for (const sg4::Host* host : hosts) {
    std::fprintf(out, "host %s\n", one_line(host->get_name()).c_str());
    for (const auto& [key, value] : *host->get_properties())
      if (key.find_first_of(" \n") == std::string::npos)
        std::fprintf(out, "prop %s %s\n", key.c_str(), one_line(value).c_str());
  }
}

void write_ways(std::FILE* out, const std::vector<sg4::Host*>& hosts) {
  std::unordered_map<const sg4::Link*, std::size_t> numbers;
  for (std::size_t from = 0; from < hosts.size(); ++from)
    for (std::size_t to = 0; to < hosts.size(); ++to) {
      if (from == to) continue;
      asked_from = static_cast<long>(from);
      asked_to = static_cast<long>(to);
      std::vector<sg4::Link*> links;
      double latency = 0;
      try {
        hosts[from]->route_to(hosts[to], links, &latency);
      } catch (const std::exception&) {
        links.clear();  // a zone that knows of no route says so, in words of its own
      }
      for (const sg4::Link* link : links)
        if (numbers.try_emplace(link, numbers.size()).second)
          std::fprintf(out, "line %.17g %d %s\n", link->get_bandwidth(),
                       link->get_sharing_policy() == sg4::Link::SharingPolicy::FATPIPE ? 1 : 0,
                       one_line(link->get_name()).c_str());
      std::fprintf(out, "way %zu %zu %.17g", from, to, latency);
      for (const sg4::Link* link : links) std::fprintf(out, " %zu", numbers.at(link));
      std::fputc('\n', out);
    }
}

}  // namespace

extern "C" void stepsim_read_platform(const char* file, int to) {
  std::FILE* out = fdopen(to, "w");
  if (out == nullptr || dup2(to, STDERR_FILENO) < 0) _exit(2);
  out_of_stop = to;
  try {
    std::string name = "stepsim", quiet = "--log=root.thresh:critical";
    char* words[] = {name.data(), quiet.data(), nullptr};
    int count = 2;
    sg4::Engine engine(&count, words);
    for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, say_stopped);
    engine.load_platform(file);
    const std::vector<sg4::Host*> hosts = engine.get_all_hosts();
    write_hosts(out, hosts);
    std::fflush(out);
    write_ways(out, hosts);
    std::fprintf(out, "end\n");
    std::fflush(out);
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(out, "wrong %s\n", one_line(error.what()).c_str());
    std::fflush(out);
    _exit(1);
  }
}
