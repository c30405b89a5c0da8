// Python files are read for values, and nothing of them runs.
#include "scenarios/foreign/text/python_values.hpp"

#include <fmt/format.h>

#include "scenarios/foreign/programs/trl/python_source.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/mutated_text.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

// What `x` is behind this text.
std::string value_behind(const std::string& text) {
  PythonFile file = read_python(text + "\nf(x)\n", "own.py");
  file.environment["SET"] = "7";
  const auto calls = calls_in(file, [](const std::string& name) { return name == "f"; });
  const PythonValue value = value_of(file, place_of(calls.back()), calls.back().positional.front());
  switch (value.kind) {
    case PythonValue::Kind::none:
      return "None";
    case PythonValue::Kind::truth:
      return value.number != 0 ? "True" : "False";
    case PythonValue::Kind::number:
      return fmt::format("{}", value.number);
    case PythonValue::Kind::text:
      return "'" + value.text + "'";
    case PythonValue::Kind::list:
      return fmt::format("{} items", value.items.size());
    case PythonValue::Kind::table:
      return fmt::format("{} keys", value.keys.size());
    case PythonValue::Kind::object:
      return "an object of " + value.text;
    case PythonValue::Kind::unknown:
      return "? " + value.text;
  }
  return "";
}

}  // namespace

TEST_CASE("literals of Python, and names for them", "[scenarios][python]") {
  CHECK(value_behind("x = 3 + 4 * 2 ** 3 // 5 - -1") == "10");
  CHECK(value_behind("x = 1.5e-5") == "1.5e-05");
  CHECK(value_behind("x = 'a' \"b\" r'\\c'") == "'ab\\c'");
  CHECK(value_behind("x = '''a\nb'''") == "'a\nb'");
  CHECK(value_behind("y = 3\nx = f'{y}-sft'") == "'3-sft'");
  CHECK(value_behind("x = [1, 'b', (2, 3),]") == "3 items");
  CHECK(value_behind("x = None") == "None");
  CHECK(value_behind("x: int = 5  # five") == "5");
  CHECK(value_behind("a, x = 1, 2") == "2");
  CHECK(value_behind("x = 1 if 2 > 3 else 4") == "4");
  CHECK(value_behind("x = not (1 < 2 and False) or None") == "True");
  CHECK(value_behind("x = (1 +\n     2)\n") == "3");
  CHECK(value_behind("x = max(2, int('3'))") == "3");
  CHECK(value_behind("x = 1_000") == "1000");
}

TEST_CASE("functions and the environment of Python", "[scenarios][python]") {
  CHECK(value_behind("def g():\n    a = 2\n    return a, a * 3\n\ny, x = g()") == "6");
  CHECK(value_behind("import os\nx = int(os.environ.get('SET', '1'))") == "7");
  CHECK(value_behind("x = os.getenv('OTHER', 'b')") == "'b'");
  CHECK(value_behind("x = os.environ['OTHER']") == "? OTHER, which nothing sets");
  CHECK(value_behind("x = os.environ.get('OTHER')") == "None");
  CHECK(value_behind("p.add_argument('--max-len', type=int, default=64)\nx = args.max_len") ==
        "64");
  CHECK(value_behind("x = load(3)") == "? load() of line 1, which is not run");
  CHECK(value_behind("x = 1\nif y:\n    x = 2") == "? x, which lines 1 and 3 set");
  CHECK(value_behind("x = y\ny = x") == "? names that hang on too many others");
  CHECK(value_behind("x = 1 / 0") == "? a division by zero");
  CHECK(value_behind("x = {a for a in b}").starts_with("? "));
  CHECK(value_behind("x = [a for a in b]") == "? a list that a loop makes");
}

TEST_CASE("assignments under conditions, and one after the other", "[scenarios][python]") {
  CHECK(value_behind("x = 1\nx = 2") == "2");
  CHECK(value_behind("x = 1\nx = x + 2") == "3");
  CHECK(value_behind("x = 1\nx += 2") == "3");
  CHECK(value_behind("x = 1\nif True:\n    x = 2\nelse:\n    x = 3") == "2");
  CHECK(value_behind("x = 1\nif False: x = 2\nelif 1 < 2: x = 4") == "4");
  CHECK(value_behind("try:\n    x = 1\nexcept Error:\n    x = 2") == "1");
  CHECK(value_behind("if y:\n    x = 2\nelse:\n    x = 2") == "2");
  CHECK(value_behind("if __name__ == '__main__':\n    x = 5\n") == "5");
  CHECK(value_behind("x = 'bf16' if torch.cuda.is_bf16_supported() else 'fp16'") == "'bf16'");
  CHECK(value_behind("x = torch.backends.mps.is_available()") == "False");
}

TEST_CASE("tables, classes and parameters of Python", "[scenarios][python]") {
  CHECK(value_behind("c = {'lora': {'r': 8}}\nx = c['lora']['r']") == "8");
  CHECK(value_behind("c = dict(a=1)\nx = c.get('b', 7)") == "7");
  CHECK(value_behind("c = {}\nc['a'] = 4\nx = c['a']") == "4");
  CHECK(value_behind("x = {'use_reentrant': False}") == "1 keys");
  CHECK(value_behind("class C:\n    a = 3\nx = C.a") == "3");
  CHECK(value_behind("@dataclass\nclass C:\n    a: int = field(default=3)\nc = C(a=5)\nx = c.a") ==
        "5");
  CHECK(value_behind("@dataclass\nclass C:\n    a: int = 3\nx = parsed.a") == "3");
  CHECK(value_behind("class C:\n    def __init__(self, n=2):\n        self.n = n\nx = C(6).n") ==
        "6");
  CHECK(value_behind("def g(a, b=2):\n    return a * b\nx = g(4)") == "8");
  CHECK(value_behind(
            "def g(n, d):\n    return os.getenv(n, d)\ny = g('A', '1')\nx = g('B', '2')") == "'2'");
  CHECK(value_behind("x = 'a/b-4bit'.endswith('4bit')") == "True");
  CHECK(value_behind("x = 'LoRA'.lower() in ['lora', 'full']") == "True");
  CHECK(value_behind("x = os.path.join('a', 'b')") == "'a/b'");
  CHECK(value_behind("@click.option('--rank', default=12)\ndef main(rank):\n    x = rank\nx = "
                     "args.rank") == "12");
}

TEST_CASE("a setting is a variable, a key or a field of the program", "[scenarios][python]") {
  PythonFile file = read_python("f(args.model, config['rows'], n)\n", "own.py");
  file.given = {{"model", "a/b"}, {"rows", "4"}, {"n", "2"}};
  const auto calls = calls_in(file, [](const std::string& name) { return name == "f"; });
  const auto value = [&](std::size_t i) {
    return value_of(file, place_of(calls[0]), calls[0].positional[i]);
  };
  CHECK(value(0).text == "a/b");
  CHECK(value(1).number == 4);
  CHECK(value(2).number == 2);
  CHECK(file.asked.size() == 3);
}

TEST_CASE("trainers of a Python file", "[scenarios][python]") {
  const auto training = read_python_training(
      "from trl import *\nargs = DPOConfig(beta=0.1,\n    max_length=n)\n"
      "model = AutoModelForCausalLM.from_pretrained('a/b', attn_implementation='sdpa')\n"
      "t = trl.DPOTrainer(model, args=args, peft_config=LoraConfig(r=8, "
      "target_modules=['q_proj']))\n",
      {.data = data, .file = "own.py"});
  REQUIRE(training);
  CHECK(training->launch.program == "DPOTrainer");
  const Table root = training->arguments.document.root();
  CHECK(root.text("model_name_or_path") == "a/b");
  CHECK(root.origin("model_name_or_path")->line == 4);
  CHECK(root.integer("lora_r", 1, 99) == 8);
  CHECK(root.flag_or("use_peft", false));
  REQUIRE(training->arguments.unknown.size() == 1);
  CHECK(training->arguments.unknown.front().key == "max_length");
  CHECK(training->arguments.unknown.front().word.line == 3);
  CHECK_FALSE(read_python_training("x = 1\n", {.data = data, .file = "own.py"}));
}

TEST_CASE("a Python file without a launcher is one process", "[scenarios][python]") {
  const std::string text =
      "model, t = FastLanguageModel.from_pretrained(model_name='a/b', max_seq_length=99)\n"
      "trainer = SFTTrainer(model=model, args=SFTConfig(max_steps=3))\n";
  const PythonQuestion question{.data = data, .file = "own.py"};
  const auto alone = read_python_training(text, question);
  REQUIRE(alone);
  CHECK(alone->launch.alone);
}

TEST_CASE("values nested in each other are given up", "[scenarios][python]") {
  const auto many = [](std::string_view text) {
    std::string all;
    for (int i = 0; i < 100'000; ++i) all += text;
    return all;
  };
  const std::string deep = "? brackets in brackets, too many of them";
  CHECK(value_behind("x = " + many("-") + "1") == deep);
  CHECK(value_behind("x = 2" + many("**2")).starts_with("? "));
  CHECK(value_behind("x = " + many("(") + "1" + many(")")).starts_with("? "));
  CHECK(value_behind("x = ((((((((((1))))))))))") == "1");
}

TEST_CASE("very many values that each take long are given up together", "[scenarios][python]") {
  std::string text = "y20 = 1\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("y{0} = y{1} + y{1}\n", i, i + 1);
  text += "f(y10, y0";
  for (int i = 0; i < 5000; ++i) text += fmt::format(", k{}=y0", i);
  const PythonFile file = read_python(text + ")\n", "own.py");
  const auto calls = calls_in(file, [](const std::string& name) { return name == "f"; });
  REQUIRE(calls.size() == 1);
  const auto value = [&](const PythonTokens& tokens) {
    return value_of(file, place_of(calls[0]), tokens);
  };
  // Names are worked out once.
  CHECK(value(calls[0].positional[0]).number == 1024);
  CHECK(value(calls[0].positional[1]).number == 1 << 20);
  CHECK(file.steps < 20'000);
  for (const auto& keyword : calls[0].keywords) value(keyword.value);
  CHECK(file.steps < 80'000);
}

TEST_CASE("Python files of any letters are read or refused", "[scenarios][python]") {
  const std::string seed =
      "import os\nN = int(os.environ.get('N', '4'))\ndef f(a):\n    b = N // 2 if a else [1, 'x']\n"
      "    return b, f\"{N:>3}\"\nm = X.from_pretrained(\"a/b\", c=f(1))\n"
      "c = SFTConfig(\n  max_length=N * 512, # c\n  packing=True, optim='adamw_torch',)\n"
      "t = SFTTrainer(model=m, args=c)\n"
      "w = [\"accelerate\", \"launch\", \"--num_processes\", \"2\", __file__]\n";
  Dice dice(11);
  const std::string letters = "\"'()[]{}#\\\n =+-*/,:.f0N";
  std::size_t read = 0, refused = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    const std::string text = with_mistakes(seed, letters, dice);
    INFO(text);
    try {
      read_python_training(text, {.data = data, .file = "own.py"});
      ++read;
    } catch (const UserError& error) {
      CHECK_FALSE(error.problems().empty());
      ++refused;
    }
  }
  CHECK(read > 100);
  CHECK(refused > 100);
}

}  // namespace stepsim
