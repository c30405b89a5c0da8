#include "sim/base/pickle.hpp"

#include <limits>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dice.hpp"

using namespace stepsim;
using namespace std::string_literals;

namespace {

// What the reader says of these bytes; empty: it reads them.
std::string message(const std::string& bytes) {
  try {
    read_pickle(bytes, "f");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string protocol(const std::string& rest, char number = 4) {
  return "\x80"s + number + rest;
}

std::string sample() {
  PickleWriter writer;
  writer.begin_dict().member("whole", std::int64_t{1} << 47).member("flag", true);
  writer.member("number", 0.1).member("text", "a").value("list").begin_list();
  for (const int number : {0, 255, 256, 65535, 65536, -1}) writer.value(number);
  writer.end();
  const std::uint32_t kept = writer.keep();
  writer.value("again").again(kept).value("pair").begin_tuple().value(0).value("a").end().end();
  return writer.take();
}

constexpr std::string_view plain =
    "expected dictionaries, lists, tuples, texts, numbers, flags and None";

}  // namespace

TEST_CASE("what is written as a pickle is read back", "[pickle]") {
  const Pickle pickle = read_pickle(sample(), "f");
  const auto at = [&](std::string_view key) { return *pickle.find(pickle.root(), key); };
  CHECK(pickle.kind(pickle.root()) == Pickle::Kind::dict);
  CHECK(pickle.whole(at("whole")) == std::int64_t{1} << 47);
  CHECK(pickle.flag(at("flag")));
  CHECK(pickle.number(at("number")) == 0.1);
  CHECK(pickle.text(at("text")) == "a");
  std::vector<std::int64_t> numbers;
  for (const Pickle::Id each : pickle.items(at("list"))) numbers.push_back(pickle.whole(each));
  CHECK(numbers == std::vector<std::int64_t>{0, 255, 256, 65535, 65536, -1});
  CHECK(at("again") == at("list"));
  CHECK(pickle.kind(at("pair")) == Pickle::Kind::tuple);
  CHECK(pickle.text(pickle.items(at("pair"))[1]) == "a");
  CHECK_FALSE(pickle.find(pickle.root(), "nowhere"));
}

TEST_CASE("long lists and many texts are written in batches and with wide places", "[pickle]") {
  PickleWriter writer;
  writer.begin_list();
  for (int i = 0; i < 5000; ++i) writer.value(std::to_string(i % 1000));
  writer.end();
  const Pickle pickle = read_pickle(writer.take(), "f");
  REQUIRE(pickle.items(pickle.root()).size() == 5000);
  CHECK(pickle.text(pickle.items(pickle.root())[4999]) == "999");
  CHECK(pickle.size() == 1001);
}

TEST_CASE("whole numbers have up to 64 bits", "[pickle]") {
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{-129}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    const Pickle pickle = read_pickle(PickleWriter().value(number).take(), "f");
    CHECK(pickle.whole(pickle.root()) == number);
  }
  const Pickle padded =
      read_pickle(protocol("\x8a\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff."s), "f");
  CHECK(padded.whole(padded.root()) == -2);
  CHECK(message(protocol("\x8a\x09\0\0\0\0\0\0\0\x80\0."s)) ==
        "f: byte 2: a whole number of more than 64 bits");
}

TEST_CASE("a pickle that would run code is refused by the name of what would", "[pickle]") {
  const std::pair<std::string, std::string> cases[]{{"cos\nsystem\n", "GLOBAL"},
                                                    {"R", "REDUCE"},
                                                    {"b", "BUILD"},
                                                    {"ios\nsystem\n", "INST"},
                                                    {"o", "OBJ"},
                                                    {"\x81", "NEWOBJ"},
                                                    {"\x92", "NEWOBJ_EX"},
                                                    {"\x93", "STACK_GLOBAL"},
                                                    {"\x82\x01", "EXT1"},
                                                    {"\x83\x01", "EXT2"},
                                                    {"\x84\x01", "EXT4"},
                                                    {"P1\n", "PERSID"},
                                                    {"Q", "BINPERSID"}};
  for (const auto& [bytes, name] : cases)
    CHECK(message(protocol("N" + bytes + ".")) ==
          "f: byte 3: " + name +
              " would import or call something, which is never done: " + std::string(plain));
}

TEST_CASE("every byte that is no opcode of plain data is refused where it stands", "[pickle]") {
  std::size_t taken = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const std::string said = message(protocol("N"s + static_cast<char>(opcode)));
    CHECK((said.starts_with("f: byte ") || opcode == '.'));
    taken += said.find("byte 3: there is no opcode") == std::string::npos &&
             said.find(plain) == std::string::npos;
  }
  CHECK(taken == 34);  // opcodes of plain data, of which the file then ends
  CHECK(message(protocol("C\1a.")) ==
        "f: byte 2: SHORT_BINBYTES is not read: " + std::string(plain) + ", of protocol 2 to 5");
  CHECK(message(protocol("\xff.")) == "f: byte 2: there is no opcode 0xff");
}

TEST_CASE("a pickle cut short at any byte is refused", "[pickle]") {
  const std::string whole = sample();
  REQUIRE(message(whole).empty());
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THAT(message(whole.substr(0, size)),
               Catch::StartsWith("f: byte ") && Catch::Contains("expected"));
  CHECK(message(whole.substr(0, whole.size() - 1))
            .ends_with("the file ends: expected 1 byte more, found 0"));
}

TEST_CASE("lengths and places beyond the file are refused", "[pickle]") {
  CHECK(message(protocol("X\xff\xff\xff\xff"s)) ==
        "f: byte 2: the file ends: expected 4294967295 bytes more, found 0");
  CHECK(message(protocol("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"s)) ==
        "f: byte 2: the file ends: expected 18446744073709551615 bytes more, found 0");
  CHECK(message(protocol("\x8b\xff\xff\xff\xff"s)) ==
        "f: byte 2: the file ends: expected 4294967295 bytes more, found 0");
  CHECK(message(protocol("Nr\xff\xff\xff\xff."s)) ==
        "f: byte 3: keeps a value at place 4294967295");
  CHECK(message(protocol("j\xff\xff\xff\xff."s)) ==
        "f: byte 2: asks for the value kept at place 4294967295, and there is none");
}

TEST_CASE("a pickle that contradicts itself is refused", "[pickle]") {
  CHECK(message("").starts_with("f: byte 0: expected a pickle of protocol 2 to 5"));
  CHECK(message("PK\3\4").starts_with("f: byte 0: expected a pickle of protocol 2 to 5"));
  CHECK(message(protocol("N.", 6)) == "f: byte 0: expected protocol 2 to 5, found 6");
  CHECK(message(protocol("e")) == "f: byte 2: takes values up to a mark, and there is none");
  CHECK(message(protocol("a")) == "f: byte 2: takes 1 value, and there are fewer");
  CHECK(message(protocol("](N\x85s")) == "f: byte 6: takes 2 values, and there are fewer");
  CHECK(message(protocol("NNa")) == "f: byte 4: adds to a list, and there is none");
  CHECK(message(protocol("}(Nu.")) == "f: byte 5: a key of a dictionary has no value");
  CHECK(message(protocol("}]Ns.")) == "f: byte 5: a key of a dictionary is a list");
  CHECK(message(protocol("NN.")) == "f: byte 4: ends with 2 values, expected one");
  CHECK(message(protocol("\x94")) == "f: byte 2: keeps a value, and there is none");
}

TEST_CASE("lists inside each other are counted, round in a circle, too", "[pickle]") {
  CHECK(message(protocol(std::string(100, ']') + std::string(99, 'a') + ".")).empty());
  CHECK(message(protocol(std::string(102, ']') + std::string(101, 'a') + ".")) ==
        "f: byte 204: more than 100 values inside each other");
  CHECK(message(protocol("]\x94h\0a."s)).empty());  // it contains itself
  std::string round = "]\x94"s;
  for (int i = 0; i < 200; ++i) round += "h\0a"s;
  CHECK(message(protocol(round + ".")).find("inside each other") != std::string::npos);
}

TEST_CASE("a list of lists that stand for billions is read in as many steps as bytes", "[pickle]") {
  std::string bomb = "(]\x94"s;  // each has the one before it ten times
  for (char i = 0; i < 60; ++i) {
    bomb += "](";
    for (int j = 0; j < 10; ++j) bomb += "h"s + i;
    bomb += "e\x94";
  }
  CHECK(read_pickle(protocol(bomb + "t."), "f").size() == 62);
}

TEST_CASE("pickles with exchanged bytes are read or refused, and nothing else", "[pickle]") {
  Dice dice(1);
  const std::string whole = sample();
  for (int i = 0; i < 20000; ++i) {
    std::string changed = whole;
    for (std::uint32_t j = 0; j <= dice.roll(3); ++j)
      changed[dice.roll(static_cast<std::uint32_t>(whole.size()))] =
          static_cast<char>(dice.roll(256));
    const std::string said = message(changed);
    if (!said.empty() && !said.starts_with("f: byte ")) FAIL(said);
  }
}
