#include "analysis/studies/sweep/sweep_journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::string_view journal_words = "stepsim sweep";
constexpr int journal_version = 1;

// The first line says who wrote it: version, digest of the sweep, shard, digest of the build.
std::string why_not_ours(std::string_view line, std::string_view identity) {
  if (!line.starts_with(journal_words))
    return "is no journal of a sweep, and stays as it is: give this one another name with --output";
  line.remove_prefix(std::min(journal_words.size() + 1, line.size()));
  int version = 0;
  std::from_chars(line.data(), line.data() + line.size(), version);
  if (version > journal_version)
    return fmt::format(
        "was left by a later stepsim: it is a journal of version {}, and this one "
        "writes version {}",
        version, journal_version);
  line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
  const bool same_sweep =
      line.substr(0, line.rfind(' ')) == identity.substr(0, identity.rfind(' '));
  return fmt::format("was left by another {}: finish that one, or remove the file to start again",
                     same_sweep ? "build of stepsim" : "sweep");
}

// Locks the file for this process alone: a child that still runs when its parent is killed does not
// hold the lock. Such a lock goes as soon as the process closes the file once, through whatever
// descriptor: so this file is opened here alone, and read through the same descriptor (text_in).
bool lock(int file) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(file, F_SETLK, &whole) == 0;
}

std::string text_in(int file, const std::string& path) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t n = ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

std::optional<std::pair<std::size_t, Outcome>> point_in(std::string_view line) {
  const std::size_t first = line.find('\t'), last = line.rfind('\t');
  if (first == std::string_view::npos || last <= first) return std::nullopt;
  if (line.substr(last + 1) != fmt::format("{:016x}", checksum(line.substr(0, last))))
    return std::nullopt;
  std::size_t index = 0;
  const auto read = std::from_chars(line.data(), line.data() + first, index);
  auto outcome = outcome_from(line.substr(first + 1, last - first - 1));
  if (read.ec != std::errc() || !outcome) return std::nullopt;
  return std::pair{index, std::move(*outcome)};
}

}  // namespace

std::uint64_t checksum(std::string_view bytes, std::uint64_t before) {
  for (const char c : bytes) {
    before ^= static_cast<unsigned char>(c);
    before *= 0x100000001b3;
  }
  return before;
}

SweepJournal::SweepJournal(std::string path, std::string_view identity) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
  if (!lock(file_)) {
    ::close(std::exchange(file_, -1));
    fail(path_, "is being written by another sweep");
  }
  const std::string header = fmt::format("{} {} {}\n", journal_words, journal_version, identity);
  const std::string text = text_in(file_, path_);
  std::size_t sound = 0;
  if (!header.starts_with(text)) {  // else its writer was killed within the first line
    if (!text.starts_with(header)) {
      ::close(std::exchange(file_, -1));
      fail(path_, why_not_ours(std::string_view(text).substr(0, text.find('\n')), identity));
    }
    sound = header.size();
    for (std::size_t end = 0; (end = text.find('\n', sound)) != std::string::npos;
         sound = end + 1) {
      auto point = point_in(std::string_view(text).substr(sound, end - sound));
      if (!point) break;
      finished_.insert(std::move(*point));
    }
  }
  if (::ftruncate(file_, static_cast<off_t>(sound)) != 0)
    fail(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
  if (sound > 0) return;
  append(header);
  sync();
  sync_folder_of(path_);
}

SweepJournal::~SweepJournal() {
  if (file_ >= 0) ::close(file_);
}

void SweepJournal::append(std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = ::write(file_, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
    line.remove_prefix(static_cast<std::size_t>(n));
  }
}

void SweepJournal::add(std::size_t index, const Outcome& outcome) {
  const std::string line = fmt::format("{}\t{}", index, to_line(outcome));
  append(fmt::format("{}\t{:016x}\n", line, checksum(line)));
  all_synced_ = false;
  sync_if_due();
}

// A machine that loses power loses what came since.
void SweepJournal::sync_if_due() {
  constexpr std::chrono::seconds often{1};
  const auto now = std::chrono::steady_clock::now();
  if (all_synced_ || now - synced_ < often) return;
  synced_ = now;
  all_synced_ = true;
  sync();
}

void SweepJournal::sync() {
  if (::fdatasync(file_) != 0 && errno != EINVAL && errno != EROFS)
    fail(path_, fmt::format("cannot be written: {}", std::strerror(errno)));
}

}  // namespace stepsim
