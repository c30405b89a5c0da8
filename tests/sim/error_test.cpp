#include "sim/base/error.hpp"

#include "tests/support/catch.hpp"

using namespace stepsim;

TEST_CASE("a problem names file, line, key and message, and leaves out what it lacks", "[sim]") {
  CHECK(to_text(Problem{"a.yaml", 12, "strategy.zero", "expected 0, 1, 2 or 3, found 4"}) ==
        "a.yaml:12: strategy.zero: expected 0, 1, 2 or 3, found 4");
  CHECK(to_text(Problem{"a.yaml", 0, "job", "is missing"}) == "a.yaml: job: is missing");
  CHECK(to_text(Problem{"a.yaml", 3, "", "is no valid YAML"}) == "a.yaml:3: is no valid YAML");
  CHECK(to_text(Problem{"", 0, "", "no such command"}) == "no such command");
}

TEST_CASE("nobody has to read a name of a megabyte", "[sim]") {
  std::string name;
  while (name.size() < 1u << 20) name += "\u00fc";
  const std::string text = to_text(Problem{"a.yaml", 1, "job", "no model \"" + name + "\""});
  CHECK(text.size() < 3000);
  CHECK(text.starts_with("a.yaml:1: job: no model \"\u00fc"));
  CHECK(text.find("\u00fc ... 1046088 bytes more ... \u00fc") != std::string::npos);
  CHECK(text.ends_with("\u00fc\""));
}

TEST_CASE("an error says all its problems, one per line, in their order", "[sim]") {
  const UserError error({{"a.yaml", 2, "x", "is missing"}, {"a.yaml", 1, "y", "unknown key"}});
  CHECK(error.what() == std::string("a.yaml:2: x: is missing\na.yaml:1: y: unknown key"));
  REQUIRE(error.problems().size() == 2);
  CHECK(error.problems()[1].key == "y");
  CHECK(UserError("no such command").what() == std::string("no such command"));
}

TEST_CASE("the nearest name is offered in spite of case, dashes, swaps and slips", "[sim]") {
  const std::vector<std::string> names{"h100-sxm", "h100-pcie", "mi300x", "b200"};
  const auto near = [&](const char* word) { return did_you_mean(word, names); };
  const std::string h100 = " (did you mean \"h100-sxm\"?)";
  CHECK(near("h100sxm") == h100);
  CHECK(near("H100_SXM") == h100);
  CHECK(near("h100 sxm") == h100);
  CHECK(near("h100-smx") == h100);
  CHECK(near("h10-sxm") == h100);
  CHECK(near("MI300") == " (did you mean \"mi300x\"?)");
  CHECK(near("b20") == " (did you mean \"b200\"?)");
}

TEST_CASE("a name with a part too many or too few is near", "[sim]") {
  const std::vector<std::string> names{"a100-8", "h100-8", "mi300x-8-roce"};
  CHECK(did_you_mean("h100-sxm-8", names) == " (did you mean \"h100-8\"?)");
  CHECK(did_you_mean("mi300x-roce", names) == " (did you mean \"mi300x-8-roce\"?)");
  CHECK(did_you_mean("8-h100-dgx", names).empty());
}

TEST_CASE("the end of a path is near where no other path ends so", "[sim]") {
  const std::vector<std::string> names{"strategy.zero", "strategy.tensor_parallel.size",
                                       "strategy.pipeline_parallel.size"};
  CHECK(did_you_mean("zero", names) == " (did you mean \"strategy.zero\"?)");
  CHECK(did_you_mean("size", names).empty());
}

TEST_CASE("of a word that is near none all names are said, or where they stand", "[sim]") {
  CHECK(did_you_mean("banana", std::vector<std::string>{"h100", "mi300x"}, "gpus") ==
        "; expected h100 or mi300x");
  CHECK(did_you_mean("banana", std::vector<std::string>(40, "h100"), "gpus") ==
        "; `stepsim list gpus` names all");
}

TEST_CASE("of two names the one with fewer edits is offered, at a tie the first", "[sim]") {
  CHECK(did_you_mean("strategi", std::vector<std::string>{"strategies", "strategy"}) ==
        " (did you mean \"strategy\"?)");
  CHECK(did_you_mean("node", std::vector<std::string>{"nodex", "nodey"}) ==
        " (did you mean \"nodex\"?)");
}

TEST_CASE("a word that is far from all names gets no offer", "[sim]") {
  const std::vector<std::string> names{"zero", "tp", "a", "offload"};
  const auto word = GENERATE("banana", "xy", "q", "", "<<", "checkpointing");
  CAPTURE(word);
  CHECK(did_you_mean(word, names).empty());
  CHECK(did_you_mean("zero", std::vector<std::string>{}).empty());
}

TEST_CASE("a list of choices reads as a sentence", "[sim]") {
  CHECK(one_of(std::vector<std::string>{}).empty());
  CHECK(one_of(std::vector<std::string>{"a"}) == "a");
  CHECK(one_of(std::vector<std::string>{"a", "b"}) == "a or b");
  CHECK(one_of(std::vector<std::string>{"a", "b", "c"}) == "a, b or c");
}
