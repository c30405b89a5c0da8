# check_framework_names.py ROOT: what a framework does is data. Names of frameworks stand in stacks, recipes and tables of rows,
# not in literals or identifiers of the code, but for what is listed here.
import pathlib
import re
import sys

NAMES = ("megatron kempner internevo composer foundry litgpt levanter torchtune torchtitan prime-rl prime_rl fms swift nemo bridge "
         "deepspeed liger axolotl trl llama-factory openrlhf verl accelerate automodel mosaic xtuner primus").split()
FOLDERS = "sim topology workloads scenarios analysis cli".split()
# Readers and writers of a framework's own files, and the tables of keys with their sentences.
OWN_FORMATS = ("scenarios/foreign/", "scenarios/keys/")
# Keys of a scenario, some of them open-instruct's, and words that name a kernel: deepspeed, deepspeed_zpg, strategy.deepspeed.
KEYS = re.compile(r"(job\.|strategy\.)?deepspeed(_[a-z]+)*|moe\.kernel")
# Models that are called like a framework.
MODELS = re.compile(r"nemotron")
# Messages that give a rule's reason, examples in help, and the commands that read frameworks' files.
REASONS = ("scenarios/rules/expert_rules.cpp", "scenarios/rules/offload_rules.cpp", "scenarios/rules/pipeline_rules.cpp", "cli/fit.cpp",
           "cli/export.cpp", "cli/import.cpp", "cli/source_options.hpp", "cli/source_options.cpp")

# Names that are no other word or key: identifiers may not hold them either. Comments may say whose way something is.
OWN_WORDS = ("megatron kempner internevo litgpt levanter torchtune torchtitan prime_rl axolotl llama_factory openrlhf automodel xtuner "
             "primus").split()
IDENTIFIER = re.compile("|".join(OWN_WORDS), re.IGNORECASE)

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENT = re.compile(r'//[^\n]*|("(?:[^"\\\n]|\\.)*")')


def offences(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            name = path.relative_to(root).as_posix()
            if name.startswith(OWN_FORMATS) or name in REASONS:
                continue
            code = COMMENT.sub(lambda found: found.group(1) or "", path.read_text())
            for number, line in enumerate(code.split("\n"), 1):
                if line.startswith("#include"):
                    continue
                for word in IDENTIFIER.findall(LITERAL.sub("", line)):
                    yield f"{name}:{number}: an identifier names {word}: say what it does, not who does it"
                for literal in LITERAL.findall(line):
                    rest = MODELS.sub("", KEYS.sub("", literal).lower())
                    for word in NAMES:
                        if re.search(r"(?<![a-z])" + re.escape(word), rest):
                            yield f"{name}:{number}: \"{literal}\" names {word}: a stack, a recipe or a key table says it"


found = list(offences(pathlib.Path(sys.argv[1])))
print("\n".join(found))
sys.exit(bool(found))
