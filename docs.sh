#!/usr/bin/env bash
# Makes a site of the pages: ./docs.sh, then open build/site/index.html. Links are checked first, those that lead to
# files beside the pages take these along.
set -euo pipefail
root=$(readlink -f "${BASH_SOURCE[0]%/*}")
source "$root/cmake/ensure.sh"
cd "$root"
ensure_packages mkdocs python3
/usr/bin/python3 -B tests/check_pages.py .
rm -rf build/pages
mkdir -p build/pages
/usr/bin/python3 -B - <<'end'
import pathlib, re, shutil

root, out = pathlib.Path.cwd(), pathlib.Path("build/pages")
queue, seen = [root / "README.md", *sorted((root / "docs").rglob("*.md"))], set()
while queue:
    page = queue.pop().resolve()
    if page in seen or not page.is_file():
        continue
    seen.add(page)
    target = out / page.relative_to(root)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(page, target)
    if page.suffix == ".md":
        text = page.read_text()
        # A folder is shown by the page in it, where there is one.
        folders = {link for link in re.findall(r"\]\(([^)#\s:]+)\)", text) if (page.parent / link).is_dir()}
        for link in folders:
            inside = page.parent / link / "README.md"
            text = text.replace(f"]({link})", f"]({link.rstrip('/')}/README.md)") if inside.exists() else re.sub(rf"\[([^\]]*)\]\({re.escape(link)}\)", r"\1", text)
            queue.append(inside)
        target.write_text(text)
        queue += [page.parent / link for link in re.findall(r"\]\(([^)#\s:]+)", text)]
end
mkdocs build --quiet --strict
say "build/site/index.html"
