"""check_pages.py ROOT [--by-page]: the hand-written pages are short, their links lead somewhere, and reasons name rows that exist.

A word is what stands between blanks and has a letter or a digit. Counted are all pages of the project but CHANGELOG.md, pages that
commands print (docs/json.md, docs/keys.md), and console blocks, whose output documented.py compares. Tables, commands and examples count.
"""
import csv
import fnmatch
import pathlib
import re
import sys

MOST_WORDS = 31000
PRINTED = {"CHANGELOG.md", "docs/json.md", "docs/keys.md"}
CONSOLE = re.compile(r"^```console\n.*?^```$", re.S | re.M)
CODE = re.compile(r"^```.*?^```$", re.S | re.M)

root = pathlib.Path(sys.argv[1]).resolve()
folders = [root / "docs", *(path.parent for path in root.glob("*/README.md")), root / "sim/base"]
pages = {root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"}
pages |= {page for folder in folders for page in (folder.rglob("*.md") if folder.name == "docs" else folder.glob("*.md"))}
problems = []


def words(text):
    return sum(1 for word in CONSOLE.sub("", text).split() if re.search(r"\w", word))


def anchors(page):
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


counts = {}
for page in sorted(pages):
    name, text = str(page.relative_to(root)), page.read_text()
    if name not in PRINTED:
        counts[name] = words(text)
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            problems.append(f"{name}: there is no {link}")
        elif anchor and anchor not in anchors(target):
            problems.append(f"{name}: no heading of {path or name} gives #{anchor}")

# Sources, data and tests name pages, too.
for folder in ("sim", "topology", "workloads", "scenarios", "analysis", "cli", "python", "claims"):
    for file in (root / folder).rglob("*"):
        if file.suffix in (".hpp", ".cpp", ".py", ".yaml", ".md", ".js"):
            for name in re.findall(r"(?<![\w/.])docs/(?:step/|decisions/|explain/)?[\w-]+\.md\b", file.read_text()):
                if not (root / name).exists():
                    problems.append(f"{file.relative_to(root)}: there is no {name}")

# The glossary names keys that exist.
keys = set()
block = ""
for line in (root / "docs/keys.md").read_text().splitlines():
    if heading := re.match(r"## ([\w.]+)(?: \(.*)?$", line):
        block = heading[1]
        keys.add(block)
    elif key := re.match(r"\| `(\w+)` \|", line):
        keys.add(f"{block}.{key[1]}")
for key in re.findall(r"`((?:job|strategy)\.[\w.]+)`", (root / "docs/glossary.md").read_text()):
    if key not in keys:
        problems.append(f"docs/glossary.md: there is no key {key}")

rows = {row["id"] for table in (root / "scenarios/measured").glob("*/*.csv") for row in csv.DictReader(table.open())}
for reason in csv.DictReader((root / "scenarios/measured/why.csv").open()):
    for pattern in reason["rows"].split():
        if not fnmatch.filter(rows, pattern):
            problems.append(f"scenarios/measured/why.csv: no row is called {pattern}")

total = sum(counts.values())
if "--by-page" in sys.argv:
    print("\n".join(f"{count:6} {name}" for name, count in sorted(counts.items(), key=lambda each: each[1])))
if total >= MOST_WORDS:
    problems.append(f"the hand-written pages have {total} words, and should have fewer than {MOST_WORDS}: cut what a reader does not need")
print("\n".join(problems) if problems else f"{total} words in {len(counts)} pages; every link leads somewhere")
sys.exit(bool(problems))
