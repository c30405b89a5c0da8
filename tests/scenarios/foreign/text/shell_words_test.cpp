// Scripts are read, and nothing of them runs.
#include "scenarios/foreign/text/shell_words.hpp"

#include <fmt/format.h>

#include "scenarios/foreign/launch/launches.hpp"
#include "scenarios/foreign/text/shell_arithmetic.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/mutated_text.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();
using Given = std::vector<std::pair<std::string, std::string>>;

// The last command's words, in brackets: "[python][a.py]"; those that are not known with why.
std::string words(const std::string& script, const Given& given = {}) {
  const ShellScript read = read_shell_script(script, "own.sh", given);
  std::string text;
  if (read.commands.empty()) return text;
  for (const ShellWord& word : read.commands.back().words)
    text += fmt::format("[{}{}]", word.text, word.unknown.empty() ? "" : "|" + word.unknown);
  return text;
}

std::vector<Launch> launches(const std::string& script, const Given& given = {}) {
  return launches_in(data, read_shell_script(script, "own.sh", given));
}

std::string message(const std::string& script) {
  try {
    read_shell_script(script, "own.sh", {});
  } catch (const UserError& error) {
    return to_text(error.problems().front());
  }
  return "";
}

}  // namespace

TEST_CASE("words of a script: quotes, comments and lines that go on", "[scenarios][shell]") {
  CHECK(words("run a 'b  c' \"d e\" f\\ g # h\n") == "[run][a][b  c][d e][f g]");
  CHECK(words("run a \\\n  b \\\n  c\n") == "[run][a][b][c]");
  CHECK(words("run 'it''s' \"a\\\"b\" '' x#y") == "[run][its][a\"b][][x#y]");
  CHECK(words("run a 2>&1 >log.txt | tee out") == "[tee][out]");
  CHECK(words("time run a >/dev/null 2>&1 &") == "[run][a]");
}

TEST_CASE("variables of a script", "[scenarios][shell]") {
  // What nothing sets is empty to a test, as in a run without arguments.
  CHECK(words("M=a\nwhile [[ \"$1\" != \"\" ]]; do M=$1; shift; done\nrun $M") == "[run][a]");
  CHECK(words("if [ -z \"$M\" ]; then M=a; fi\nrun $M") == "[run][a]");
  CHECK(words("run ${A[@]} \"${B[@]}\" c") == "[run][c]");  // no environment has lists
  CHECK(words("source gone.sh\nrun ${A[@]} c") == "[run][|A, which nothing sets][c]");
  CHECK(words("D=$(cd \"$(dirname \"$0\")/..\" && pwd)\nrun $D/x $(basename a/b)") ==
        "[run][../x][b]");
  CHECK(words("A=1\nrun $A ${A} \"${A}b\" '$A'") == "[run][1][1][1b][$A]");
  CHECK(words("export A='x y'\nrun $A \"$A\"") == "[run][x][y][x y]");
  CHECK(words("run ${A:-b} \"${C:-\"d e\"}\" ${F:=g}$F") == "[run][b][d e][gg]");
  CHECK(words("A=\nrun ${A:-b} ${A-c}x ${A:+d} e") == "[run][b][x][e]");
  CHECK(words("A=/x/y.sh\nrun ${A##*/} ${A%.*} ${#A}") == "[run][y.sh][/x/y][7]");
  CHECK(words("A=1\nA+=2\nrun $A") == "[run][12]");
  CHECK(
      words(
          "A=(--x 1 \"b c\") # one\nA+=(\n  --y # two\n  2\n)\nrun \"${A[@]}\" ${A[1]} ${#A[@]}") ==
      "[run][--x][1][b c][--y][2][1][5]");
  CHECK(words("A=2\nrun $((A * 3 + 8 / $A)) $(( (A+1) % 2 ))") == "[run][10][1]");
  CHECK(words("A=2\nrun $(expr 16 / $A) \"$(expr 3 \\* $A)\"") == "[run][8][6]");
  CHECK(words("run $A") == "[run][|A, which nothing sets]");
  CHECK(words("run $A", {{"A", "given"}}) == "[run][given]");
  CHECK(words("A=1\nrun $A $1", {{"A", "given"}, {"1", "x"}}) == "[run][given][x]");
  CHECK(words("run a$1") == "[run][a|$1, which nothing sets]");
}

TEST_CASE("nothing of a script is run", "[scenarios][shell]") {
  CHECK(words("run $(nproc --all) `date`") ==
        "[run][|$(nproc --all) of line 1, which is not run][|`date` of line 1, which is not run]");
  CHECK(words("A=$(nproc)\n\nrun $A") == "[run][|$(nproc) of line 1, which is not run]");
  const ShellScript script = read_shell_script("A=$(nproc)\nrun \"$A\"", "own.sh", {});
  CHECK(script.commands.back().words[1].variable == "A");
}

TEST_CASE("here-documents become variables and files", "[scenarios][shell]") {
  CHECK(words("B=2\nread -r -d '' A <<EOF\n--x 1\n--y $B it's\nEOF\nrun $A") ==
        "[run][--x][1][--y][2][it's]");
  const ShellScript script = read_shell_script(
      "B=2\ncat > own.py <<'EOF'\na = \"$B\"\nEOF\ncat <<-END >other.py\n\tb = $B\n\tEND\nrun\n",
      "own.sh", {});
  CHECK(script.files.at("own.py").text == "a = \"$B\"\n");
  CHECK(script.files.at("own.py").line == 3);
  CHECK(script.files.at("other.py").text == "\tb = 2\n");
  CHECK(script.commands.back().words.front().text == "run");
}

TEST_CASE("an if that can be decided is decided", "[scenarios][shell]") {
  const std::string choice = "if [ \"$A\" -gt 1 ]; then B=many; else B=one; fi\nrun $B";
  CHECK(words("A=2\n" + choice) == "[run][many]");
  CHECK(words("A=1\n" + choice) == "[run][one]");
  CHECK(words("A=$(nproc)\n" + choice) == "[run][|the `if` of line 2]");
  CHECK(words("B=1\nif [ -f x ]; then C=2; fi\nrun $B $C") == "[run][1][|the `if` of line 2]");
  CHECK(words("if [ -z \"$1\" ]; then exit 1; fi\nrun") == "[run]");
  CHECK(words("A=2; if [ $# -lt 2 ]; then A=1; exit 1; fi\nrun $A") == "[run][2]");
  CHECK(words("A=2; if [ $# -lt 2 ]; then exit; fi\nrun $A") == "");
  CHECK(words("if [ $# -lt 2 ]; then echo usage; exit 1; fi\nrun") == "[run]");
  CHECK(words("if [ $# -lt 2 ]; then train; exit 1; fi\nrun") == "[train]");
  CHECK(words("A=x\n[[ $A == x && -n $A ]] && B=1 || B=2\nrun $B") == "[run][1]");
  CHECK(words("A=b\ncase $A in a) X=1 ;; b|c) X=2 ;; *) X=3 ;; esac\nrun $X") == "[run][2]");
  CHECK(words("while [[ $# -gt 0 ]]; do X=$1; shift; done\nrun ${X:-none}") == "[run][none]");
}

TEST_CASE("functions, loops and scripts in words", "[scenarios][shell]") {
  CHECK(words("main() {\n  go \"$1\"\n}\ngo() { run \"$1\" $#; }\nmain a b") == "[run][a][1]");
  CHECK(words("if [[ \"${BASH_SOURCE[0]}\" == \"${0}\" ]]; then run \"$@\"; fi") == "[run]");
  const ShellScript loop = read_shell_script("for A in x y\ndo\n  run $A\ndone\n", "own.sh", {});
  REQUIRE(loop.commands.size() == 2);
  CHECK(loop.commands.front().words.back().text == "x");
  CHECK(loop.notes ==
        std::vector<std::string>{"the `for` of line 1 is read turn by turn, first with x"});
  CHECK(words("A=\"--x 1\nB=2\"\nsrun bash -c \"run $A\" | tee log") == "[tee][log]");
  CHECK(read_shell_script("A='-m x'\nbash -c \"run $A\"", "own.sh", {})
            .commands.front()
            .words.size() == 3);
}

TEST_CASE("each word has its line", "[scenarios][shell]") {
  const ShellScript script =
      read_shell_script("A=(\n  --x 1\n)\nrun \\\n  a \\\n  \"${A[@]}\"\n", "own.sh", {});
  std::string lines;
  for (const ShellWord& word : script.commands.front().words)
    lines += fmt::format("{} ", word.line);
  CHECK(lines == "4 5 2 2 ");
}

TEST_CASE("what is never closed is said by line", "[scenarios][shell]") {
  CHECK(message("a\nrun \"b\n") == "own.sh:2: a \" is never closed");
  CHECK(message("a\nrun $(b\n") == "own.sh:2: a ( is never closed");
  CHECK(message("if a\nthen b\n") == "own.sh:1: `if` begins here and has no `fi`");
  CHECK(message("for a in b\nrun\n") == "own.sh:1: `for` begins here and has no `do`");
}

TEST_CASE("conditions of very many words, and brackets in brackets", "[scenarios][shell]") {
  const auto many = [](std::string_view text) {
    std::string all;
    for (int i = 0; i < 100'000; ++i) all += text;
    return all;
  };
  CHECK(words("if [[ " + many("! ") + "a ]]; then run yes; else run no; fi") == "[run][yes]");
  CHECK(words("if [[ a" + many(" && a") + " ]]; then run yes; else run no; fi") == "[run][yes]");
  CHECK(words("if [[ ! a" + many(" || ! a") + " ]]; then run yes; else run no; fi") == "[run][no]");
  CHECK(words("if [[ a && ! a || a && -n b ]]; then run yes; else run no; fi") == "[run][yes]");
  const std::string deep = "own.sh:1: brackets in brackets, too many of them";
  CHECK(message("run " + many("${X:-") + many("}")) == deep);
  CHECK(message("run \"" + many("$(echo \"")) == deep);
}

TEST_CASE("arithmetic of a shell", "[scenarios][shell]") {
  const auto value = [](const char* text) {
    return shell_arithmetic(text, [](const std::string&) { return std::nullopt; });
  };
  CHECK(value("1 + 2 * 3 ** 2 - -4") == 23);
  CHECK(value("(1 < 2) && !0 ? 5 : 6") == 5);
  CHECK(value("7 / 2 + 7 % 4") == 6);
  CHECK_FALSE(value("1 / 0"));
  CHECK_FALSE(value("1 +"));
  CHECK_FALSE(value("x + 1"));
  CHECK_FALSE(value("9223372036854775807 + 1"));
}

TEST_CASE("launchers say program, GPUs and nodes", "[scenarios][shell]") {
  const auto one = [](const std::string& script) {
    const auto all = launches(script);
    if (all.size() != 1) return fmt::format("{} launches", all.size());
    const Launch& launch = all.front();
    std::string text =
        fmt::format("{} {}x{}", launch.program, launch.nodes.value_or(0), launch.gpus.value_or(0));
    for (const ShellWord& word : launch.arguments) text += " " + word.text;
    return text;
  };
  CHECK(one("python -u train.py --a 1") == "train.py 0x0 --a 1");
  CHECK(one("CUDA_VISIBLE_DEVICES=0,1 python3 -m a.b --c") == "a.b 0x2 --c");
  CHECK(one("torchrun --nproc-per-node=4 --nnodes 2 --rdzv_backend c10d -m a.b x.toml") ==
        "a.b 2x4 x.toml");
  CHECK(one("python -m torch.distributed.run --nproc_per_node 8 a.py") == "a.py 0x8");
  CHECK(one("accelerate launch --multi_gpu --num_processes 16 --num_machines 2 a.py --b") ==
        "a.py 2x8 --b");
  CHECK(one("deepspeed --num_gpus 4 --module a.b --c 1") == "a.b 0x4 --c 1");
  CHECK(one("deepspeed --include localhost:1,2,3 a.py") == "a.py 0x3");
  CHECK(one("nohup env A=1 srun -N 2 torchrun --nproc_per_node 8 a.py &") == "a.py 2x8");
  CHECK(one("ray job submit --address=x --runtime-env-json='{\"a\": 1}' -- python3 -m a.b --c 1") ==
        "a.b 0x0 --c 1");
  CHECK(one("#SBATCH --nodes=4\nsrun bash -c \"torchrun --nnodes $SLURM_NNODES a.py\"") ==
        "a.py 4x0");
  CHECK(one("trl sft --a 1") == "trl sft 0x0 --a 1");
  CHECK(one("llamafactory-cli train a.yaml") == "llamafactory-cli train 0x0 a.yaml");
  CHECK(one("echo python a.py; ls; cat <<EOF\npython a.py\nEOF\n") == "0 launches");
  CHECK(launches("accelerate launch --config_file own.yaml a.py").front().file.text == "own.yaml");
}

TEST_CASE("arguments by name keep their lines", "[scenarios][shell]") {
  const auto launch = launches(
                          "python a.py \\\n  own.yaml \\\n  --a 1 --b \\\n  --c=x --d e f \\\n  "
                          "--lr -1e-5 --a 2 --g $H")
                          .front();
  const Arguments arguments = named_arguments(launch.arguments, "own.sh");
  const Table root = arguments.document.root();
  CHECK(root.integer("a", 0, 9) == 2);
  CHECK(root.origin("a")->line == 5);
  CHECK(root.flag_or("b", false));
  CHECK(root.origin("b")->line == 3);
  CHECK(root.text("c") == "x");
  CHECK(root.texts("d") == std::vector<std::string>{"e", "f"});
  CHECK(root.number("lr", -1, 1) == -1e-5);
  REQUIRE(arguments.others.size() == 1);
  CHECK(arguments.others.front().text == "own.yaml");
  REQUIRE(arguments.unknown.size() == 1);
  CHECK(arguments.unknown.front().key == "g");
  CHECK(unknown_argument_message(arguments.unknown.front()) ==
        "depends on H, which nothing sets: --set H=... says it");
}

TEST_CASE("scripts of any letters are read or refused", "[scenarios][shell]") {
  const std::string seed =
      "#!/bin/bash\nset -e\nA=${B:-\"x y\"}\nC=(--a 1 # b\n \"$A\")\nif [ \"$D\" = 1 ]; then\n "
      "E=$((2+3))\n"
      "else E=$(f \"g\" `h`); fi\nmain() { for i in 1 2; do torchrun --nproc_per_node $E x.py "
      "\"${C[@]}\" --b=${i%1} \\\n --c 'd' <<EOF\n$A\nEOF\ndone; }\ncase $A in x*) main;; *) y;; "
      "esac\n";
  Dice dice(7);
  const std::string letters = "\"'`$(){}[]<>|&;#\\\n =+-*!@x0";
  std::size_t read = 0, refused = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    const std::string text = with_mistakes(seed, letters, dice);
    INFO(text);
    try {
      for (const Launch& launch : launches(text)) named_arguments(launch.arguments, "own.sh");
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
