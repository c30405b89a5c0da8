"""make_records.py STEPSIM [FILE]: the records that the program prints with --json, as types; without FILE held against stepsim/records.py."""
import pathlib
import re
import subprocess
import sys

program = sys.argv[1]
stored = pathlib.Path(__file__).parent / "stepsim/records.py"
document = subprocess.run([program, "list", "--json-schemas"], check=True, capture_output=True, text=True).stdout

plain = {"text": "str", "number": "float", "true or false": "bool", "object": "dict[str, Any]", "list": "list[Any]"}


def type_of(words):
    """'number, s, or null' as 'float | None'."""
    words, null = re.subn(r",? or null$", "", words)
    kind = "list[float]" if words.startswith("[low, high]") else plain[re.split(r", ", words)[0]]
    return kind + (" | None" if null else "")


def class_name(words):
    return "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", words))


class Record:
    """Keys with their types, and the records inside."""

    def __init__(self, stem, name=""):
        self.stem, self.name, self.keys, self.inside = stem, name or stem, {}, {}

    def add(self, path, words, what):
        head, dot, rest = path.partition(".")
        key, listed = head.removesuffix("[]"), head.endswith("[]")
        if not dot and not listed:
            self.keys[key] = (type_of(words), what)
        elif dot:
            inner = self.inside.setdefault(key, Record(self.stem + class_name(key)))
            inner.add(rest, words, what)

    def flat(self):
        """A key with a dot in it looks like one in a record, but nothing says that there is such a record."""
        for key in [each for each in self.inside if each not in self.keys]:
            inner = self.inside.pop(key)
            inner.flat()
            self.keys.update({f"{key}.{name}": value for name, value in inner.keys.items()})
        for inner in self.inside.values():
            inner.flat()

    def text(self):
        """Types of what is inside, and of itself; of keys that depend on the input nothing is said."""
        text, lines = "", []
        for key, (kind, what) in self.keys.items():
            inner = self.inside.get(key)
            if inner and not any(name.isupper() for name in inner.keys):
                text += inner.text()
                kind = kind.replace("dict[str, Any]", inner.name).replace("list[Any]", f"list[{inner.name}]")
            elif inner:
                kind = kind.replace("list[Any]", "list[dict[str, Any]]")
            if not key.isupper():
                lines.append(f'        "{key}": "{kind}",  # {what}\n')
        return text + f'{self.name} = TypedDict(\n    "{self.name}",\n    {{\n{"".join(lines)}    }},\n    total=False,\n)\n\n'


records, record = [], None
head = Record("Head", "Result")
for line in document.split("\n"):
    title = re.fullmatch(r"## (.*?)(?: \(schema \d+\))?", line)
    row = re.fullmatch(r"\| `([^`]+)` \| (.*?) \| (.*) \|", line)
    if title:
        stem = class_name(title[1])
        record = head if title[1] in ("In front of every result", "What was asked") else Record(stem, stem + "Result")
        if record is not head:
            records.append(record)
    elif row:
        record.add(row[1], row[2], row[3])

text = '"""What the program prints with --json. Made by make_records.py; docs/json.md says more."""\n\n'
text += "from typing import Any, TypedDict\n\n"
for each in [head, *records]:
    each.flat()
    text += each.text()
text = text.rstrip("\n") + "\n"
if len(sys.argv) > 2:
    pathlib.Path(sys.argv[2]).write_text(text)
elif stored.read_text() != text:
    sys.exit(f"{stored} is not what the program prints: python/make_records.py {program} {stored} makes it anew")
