#include "sim/base/pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "sim/base/error.hpp"

namespace stepsim {

// ---- writing

namespace {

constexpr std::size_t batch = 2000;  // values at once: viewers hand them to a function as arguments

constexpr std::size_t largest_pickle = std::size_t{1} << 30;  // of a file
constexpr std::size_t most_pickled = 100'000'000;
constexpr unsigned most_nested = 100;

// No file of plain data needs these opcodes. A byte that stands in neither list is no opcode at
// all.
struct Refused {
  unsigned char opcode;
  std::string_view name;
};
constexpr std::array runs_code{
    Refused{'c', "GLOBAL"},     Refused{'R', "REDUCE"},        Refused{'b', "BUILD"},
    Refused{'i', "INST"},       Refused{'o', "OBJ"},           Refused{0x81, "NEWOBJ"},
    Refused{0x92, "NEWOBJ_EX"}, Refused{0x93, "STACK_GLOBAL"}, Refused{0x82, "EXT1"},
    Refused{0x83, "EXT2"},      Refused{0x84, "EXT4"},         Refused{'P', "PERSID"},
    Refused{'Q', "BINPERSID"},
};
constexpr std::array other_data{
    Refused{'0', "POP"},         Refused{'1', "POP_MARK"},       Refused{'2', "DUP"},
    Refused{'I', "INT"},         Refused{'L', "LONG"},           Refused{'F', "FLOAT"},
    Refused{'S', "STRING"},      Refused{'V', "UNICODE"},        Refused{'g', "GET"},
    Refused{'p', "PUT"},         Refused{'T', "BINSTRING"},      Refused{'U', "SHORT_BINSTRING"},
    Refused{'B', "BINBYTES"},    Refused{'C', "SHORT_BINBYTES"}, Refused{0x8e, "BINBYTES8"},
    Refused{0x8f, "EMPTY_SET"},  Refused{0x90, "ADDITEMS"},      Refused{0x91, "FROZENSET"},
    Refused{0x96, "BYTEARRAY8"}, Refused{0x97, "NEXT_BUFFER"},   Refused{0x98, "READONLY_BUFFER"},
};

}  // namespace

void PickleWriter::enter() {
  if (open_.empty()) return;
  if (open_.back().count == batch && open_.back().ends != 't') {
    (bytes_ += open_.back().ends) += '(';
    open_.back().count = 0;
  }
  ++open_.back().count;
}

void PickleWriter::put_number(std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(number >> (8 * i) & 0xFF);
}

void PickleWriter::put_memo(char small, char large, std::uint32_t id) {
  bytes_ += id < 256 ? small : large;
  put_number(id, id < 256 ? 1 : 4);
}

PickleWriter& PickleWriter::begin(std::string_view container, char ends) {
  enter();
  bytes_ += container;
  open_.push_back({ends, 0});
  return *this;
}

PickleWriter& PickleWriter::end() {
  bytes_ += open_.back().ends;
  open_.pop_back();
  return *this;
}

PickleWriter& PickleWriter::whole(std::int64_t number) {
  enter();
  const auto bits = static_cast<std::uint64_t>(number);
  if (number >= 0 && number < 0x100) {
    bytes_ += 'K';
    put_number(bits, 1);
  } else if (number >= 0 && number < 0x10000) {
    bytes_ += 'M';
    put_number(bits, 2);
  } else if (number == static_cast<std::int32_t>(number)) {
    bytes_ += 'J';
    put_number(bits, 4);
  } else {
    bytes_ += "\x8a\x08";
    put_number(bits, 8);
  }
  return *this;
}

PickleWriter& PickleWriter::value(bool flag) {
  enter();
  bytes_ += flag ? '\x88' : '\x89';
  return *this;
}

PickleWriter& PickleWriter::value(double number) {
  enter();
  bytes_ += 'G';
  const auto bits = std::bit_cast<std::uint64_t>(number);
  for (int i = 7; i >= 0; --i) put_number(bits >> (8 * i), 1);  // the only one that is big-endian
  return *this;
}

PickleWriter& PickleWriter::value(std::string_view text) {
  enter();
  const auto [place, is_new] = texts_.emplace(text, memo_);
  if (!is_new) {
    put_memo('h', 'j', place->second);
    return *this;
  }
  bytes_ += 'X';
  put_number(text.size(), 4);
  bytes_ += text;
  keep();
  return *this;
}

std::uint32_t PickleWriter::keep() {
  put_memo('q', 'r', memo_);
  return memo_++;
}

PickleWriter& PickleWriter::again(std::uint32_t kept) {
  enter();
  put_memo('h', 'j', kept);
  return *this;
}

// ---- reading

std::string_view to_text(Pickle::Kind kind) {
  constexpr std::array<std::string_view, 8> names{"None",     "a flag",      "a whole number",
                                                  "a number", "a text",      "a list",
                                                  "a tuple",  "a dictionary"};
  return names[static_cast<std::size_t>(kind)];
}

double Pickle::number(Id id) const {
  return kind(id) == Kind::whole ? static_cast<double>(whole(id))
                                 : std::bit_cast<double>(value(id).payload);
}

std::string_view Pickle::text(Id id) const {
  const auto place = static_cast<std::uint64_t>(value(id).payload);
  return std::string_view(bytes_).substr(place >> 32, place & 0xFFFFFFFF);
}

std::span<const Pickle::Id> Pickle::items(Id id) const {
  return lists_[static_cast<std::size_t>(value(id).payload)];
}

std::optional<Pickle::Id> Pickle::find(Id dict, std::string_view key) const {
  const auto all = items(dict);
  for (std::size_t i = all.size(); i >= 2; i -= 2)
    if (kind(all[i - 2]) == Kind::text && text(all[i - 2]) == key) return all[i - 1];
  return std::nullopt;
}

// A machine with a stack and a memo. Each opcode takes time for its own bytes and for the values
// that it takes off the stack.
class PickleReader {
 public:
  using Id = Pickle::Id;
  using Kind = Pickle::Kind;

  PickleReader(std::string bytes, const std::string& file) : file_(file) {
    pickle_.bytes_ = std::move(bytes);
  }

  Pickle read() {
    if (all().size() > largest_pickle)
      refuse(fmt::format("has more than {} bytes", largest_pickle));
    if (!all().starts_with('\x80'))
      refuse("expected a pickle of protocol 2 to 5, which begins with the byte 0x80");
    while (!done_) {
      at_ = next_;
      const auto opcode = static_cast<unsigned char>(take(1).front());
      if (!read_plain(opcode) && !read_container(opcode) && !read_memo(opcode))
        refuse_opcode(opcode);
    }
    return std::move(pickle_);
  }

 private:
  std::string_view all() const { return pickle_.bytes_; }

  [[noreturn]] void refuse(const std::string& why) const {
    throw UserError({{file_, 0, fmt::format("byte {}", at_), why}});
  }
  [[noreturn]] void refuse_opcode(unsigned char opcode) const {
    for (const Refused& each : runs_code)
      if (each.opcode == opcode)
        refuse(
            fmt::format("{} would import or call something, which is never done: expected "
                        "dictionaries, lists, tuples, texts, numbers, flags and None",
                        each.name));
    for (const Refused& each : other_data)
      if (each.opcode == opcode)
        refuse(
            fmt::format("{} is not read: expected dictionaries, lists, tuples, texts, numbers, "
                        "flags and None, of protocol 2 to 5",
                        each.name));
    refuse(fmt::format("there is no opcode {:#04x}", opcode));
  }

  std::string_view take(std::uint64_t size) {
    if (size > all().size() - next_)
      refuse(fmt::format("the file ends: expected {} byte{} more, found {}", size,
                         size == 1 ? "" : "s", all().size() - next_));
    const std::string_view part = all().substr(next_, size);
    next_ += size;
    return part;
  }
  // Takes a number, the lowest byte first.
  std::uint64_t take_number(std::size_t bytes) {
    std::uint64_t number = 0;
    const std::string_view part = take(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      number |= static_cast<std::uint64_t>(static_cast<unsigned char>(part[i])) << (8 * i);
    return number;
  }
  std::int64_t take_whole(std::uint64_t size) {
    std::string_view part = take(size);
    if (part.empty()) return 0;
    const bool negative = static_cast<unsigned char>(part.back()) >= 0x80;
    const char fill = negative ? '\xFF' : '\0';
    while (part.size() > 8 && part.back() == fill) part.remove_suffix(1);
    if (part.size() > 8 ||
        (part.size() == 8 && (static_cast<unsigned char>(part[7]) >= 0x80) != negative))
      refuse("a whole number of more than 64 bits");
    std::uint64_t number = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = part.size(); i-- > 0;)
      number = number << 8 | static_cast<unsigned char>(part[i]);
    return static_cast<std::int64_t>(number);
  }

  Pickle::Value& value(Id id) { return pickle_.values_[static_cast<std::size_t>(id)]; }
  void push(Kind kind, std::int64_t payload = 0) {
    if (pickle_.values_.size() == most_pickled)
      refuse(fmt::format("holds more than {} values", most_pickled));
    stack_.push_back(static_cast<Id>(pickle_.values_.size()));
    pickle_.values_.push_back({kind, 0, static_cast<std::uint32_t>(at_), payload});
  }
  void push_text(std::uint64_t size) {
    const std::uint64_t begin = next_;
    take(size);
    push(Kind::text, static_cast<std::int64_t>(begin << 32 | size));
  }
  void push_number() {
    std::uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    push(Kind::number, std::bit_cast<std::int64_t>(bits));
  }

  // Values that this takes off the stack: those above the last mark, or so many.
  static constexpr std::size_t to_mark = std::numeric_limits<std::size_t>::max();
  std::size_t first_of(std::size_t count) {
    if (count == to_mark) {
      if (marks_.empty()) refuse("takes values up to a mark, and there is none");
      const std::size_t first = marks_.back();
      marks_.pop_back();
      return first;
    }
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count)
      refuse(fmt::format("takes {} value{}, and there are fewer", count, count == 1 ? "" : "s"));
    return stack_.size() - count;
  }
  // The values from `first` on go into the container.
  void put_into(Id container, std::size_t first) {
    const Kind kind = value(container).kind;
    if (kind == Kind::dict && (stack_.size() - first) % 2 != 0)
      refuse("a key of a dictionary has no value");
    auto& list = pickle_.lists_[static_cast<std::size_t>(value(container).payload)];
    for (std::size_t i = first; i < stack_.size(); ++i) {
      const Pickle::Value& each = value(stack_[i]);
      const bool is_key = kind == Kind::dict && (i - first) % 2 == 0;
      if (is_key && (each.kind == Kind::list || each.kind == Kind::dict))
        refuse(fmt::format("a key of a dictionary is {}", to_text(each.kind)));
      if (each.height >= most_nested)
        refuse(fmt::format("more than {} values inside each other", most_nested));
      value(container).height =
          std::max(value(container).height, static_cast<std::uint8_t>(each.height + 1));
      list.push_back(stack_[i]);
    }
    stack_.resize(first);
  }
  void build(Kind kind, std::size_t count) {
    const std::size_t first = first_of(count);
    push(kind, static_cast<std::int64_t>(pickle_.lists_.size()));
    pickle_.lists_.emplace_back();
    const Id made = stack_.back();
    stack_.pop_back();
    put_into(made, first);
    stack_.push_back(made);
  }
  void add(Kind kind, std::size_t count) {
    const std::size_t first = first_of(count);
    const std::size_t below = marks_.empty() ? 0 : marks_.back();
    if (first <= below || value(stack_[first - 1]).kind != kind)
      refuse(fmt::format("adds to {}, and there is none", to_text(kind)));
    put_into(stack_[first - 1], first);
  }

  void keep(std::uint64_t place) {
    if (stack_.empty()) refuse("keeps a value, and there is none");
    if (place > pickle_.values_.size()) refuse(fmt::format("keeps a value at place {}", place));
    if (place >= memo_.size()) memo_.resize(place + 1, nothing);
    memo_[place] = stack_.back();
  }
  void get(std::uint64_t place) {
    if (place >= memo_.size() || memo_[place] == nothing)
      refuse(fmt::format("asks for the value kept at place {}, and there is none", place));
    stack_.push_back(memo_[place]);
  }

  void begin_protocol() {
    const auto protocol = take_number(1);
    if (protocol < 2 || protocol > 5)
      refuse(fmt::format("expected protocol 2 to 5, found {}", protocol));
  }
  void stop() {
    if (stack_.size() != 1 || !marks_.empty())
      refuse(fmt::format("ends with {} values, expected one", stack_.size()));
    pickle_.root_ = stack_.front();
    done_ = true;
  }

  bool read_plain(unsigned char opcode) {
    switch (opcode) {
      case 0x80:
        return begin_protocol(), true;
      case 0x95:
        return take(8), true;  // a frame: bytes that writers put out together
      case '.':
        return stop(), true;
      case 'N':
        return push(Kind::none), true;
      case 0x88:
        return push(Kind::flag, 1), true;
      case 0x89:
        return push(Kind::flag, 0), true;
      case 'K':
        return push(Kind::whole, static_cast<std::int64_t>(take_number(1))), true;
      case 'M':
        return push(Kind::whole, static_cast<std::int64_t>(take_number(2))), true;
      case 'J':
        return push(Kind::whole, static_cast<std::int32_t>(take_number(4))), true;
      case 0x8a:
        return push(Kind::whole, take_whole(take_number(1))), true;
      case 0x8b:
        return push(Kind::whole, take_whole(take_number(4))), true;
      case 'G':
        return push_number(), true;
      case 0x8c:
        return push_text(take_number(1)), true;
      case 'X':
        return push_text(take_number(4)), true;
      case 0x8d:
        return push_text(take_number(8)), true;
      default:
        return false;
    }
  }
  bool read_container(unsigned char opcode) {
    switch (opcode) {
      case '(':
        return marks_.push_back(stack_.size()), true;
      case ']':
        return build(Kind::list, 0), true;
      case 'l':
        return build(Kind::list, to_mark), true;
      case 'a':
        return add(Kind::list, 1), true;
      case 'e':
        return add(Kind::list, to_mark), true;
      case ')':
        return build(Kind::tuple, 0), true;
      case 0x85:
        return build(Kind::tuple, 1), true;
      case 0x86:
        return build(Kind::tuple, 2), true;
      case 0x87:
        return build(Kind::tuple, 3), true;
      case 't':
        return build(Kind::tuple, to_mark), true;
      case '}':
        return build(Kind::dict, 0), true;
      case 'd':
        return build(Kind::dict, to_mark), true;
      case 's':
        return add(Kind::dict, 2), true;
      case 'u':
        return add(Kind::dict, to_mark), true;
      default:
        return false;
    }
  }
  bool read_memo(unsigned char opcode) {
    switch (opcode) {
      case 'q':
        return keep(take_number(1)), true;
      case 'r':
        return keep(take_number(4)), true;
      case 0x94:
        return keep(memo_.size()), true;
      case 'h':
        return get(take_number(1)), true;
      case 'j':
        return get(take_number(4)), true;
      default:
        return false;
    }
  }

  static constexpr Id nothing{std::numeric_limits<std::uint32_t>::max()};

  const std::string& file_;
  Pickle pickle_;
  std::size_t at_ = 0, next_ = 0;  // in the file: the opcode, and behind what is read of it
  bool done_ = false;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<Id> memo_;
};

Pickle read_pickle(std::string bytes, const std::string& file) {
  return PickleReader(std::move(bytes), file).read();
}

}  // namespace stepsim
