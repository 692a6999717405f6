"""Looks for what the documentation names and the repository does not have.

  python check_texts.py names ROOT     paths, subcommands, flags and tests that the texts name exist; every page is linked
                                       from docs/README.md, every subcommand named somewhere
  python check_texts.py pairs ROOT     README.md and docs/guide/ have their Chinese twins, with the same commands and files
  python check_texts.py evidence FILE  the table of claims stays short: 100 rows, 400 characters each

The texts are README*.md, CONTRIBUTING.md, CHANGELOG.md and every .md below docs/. What counts as a name is what stands in
`backticks`, in a link or in a fenced block.
"""
import argparse
import itertools
import os
import re
import sys
from pathlib import Path

from run_guide import blocks_of, compare

MOST_ROWS, MOST_CHARACTERS = 100, 400
TOP_FOLDERS = "docs src tests scripts examples bench cmake".split()


def texts_of(root: Path) -> list:
    return sorted([*root.glob("README*.md"), *root.glob("CONTRIBUTING.md"), *root.glob("CHANGELOG.md"),
                   *root.glob("docs/**/*.md")])


def code_spans(text: str) -> list:
    """What stands in backticks outside fenced blocks; a span may go over a line's end."""
    prose = re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.M | re.S)
    return [re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", prose)]


def links(text: str) -> list:
    prose = re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose))


def expand(word: str) -> list:
    """a/{b,c} as a/b and a/c."""
    parts = [part[1:-1].split(",") if part.startswith("{") else [part] for part in re.split(r"(\{[^{}]*\})", word)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def paths_in(span: str, modules: set) -> list:
    """The words of a span that are paths of this repository, relative to its root."""
    found = []
    for word in re.split(r"[\s|]+", span):
        word = re.sub(r":\d+$", "", word.strip("\"'(),;:")).rstrip(".")
        if not re.fullmatch(r"[\w./*{},+-]+", word) or "..." in word:
            continue
        for path in expand(word):
            first = path.split("/")[0]
            if "/" in path and first in TOP_FOLDERS:
                found.append(path)
            elif "/" in path and first in modules and re.search(r"\.(h|cpp|cu)$", path):
                found.append("src/" + path)
            elif re.fullmatch(r"(README(\.zh)?|CONTRIBUTING|CHANGELOG)\.md|versions\.env|CMakePresets\.json", path):
                found.append(path)
    return found


def exists(root: Path, path: str) -> bool:
    return any(root.glob(path.rstrip("/"))) if "*" in path else (root / path).exists()


class Names:
    """What the sources offer."""

    def __init__(self, root: Path):
        self.modules = {folder.name for folder in (root / "src").iterdir() if folder.is_dir()}
        cli = "\n".join(file.read_text() for ending in ("cpp", "def") for file in (root / "src/cli").glob(f"*.{ending}"))
        jobs = "\n".join(file.read_text() for folder in ("src/train/jobs", "src/policies")
                         for file in (root / folder).rglob("*.cpp"))
        self.subcommands = set(re.findall(r'(?:const Register \w+\(\s*\{|^PROGRAM\()"([a-z-]+)"', cli, re.MULTILINE)) | {"help", "version"}
        self.words = set(re.findall(r'"([a-z][a-z0-9_-]*)"', cli + jobs))
        flags = set(re.findall(r"--([a-z][a-z0-9_-]*)", cli)) | self.words
        self.flags = {flag.replace("_", "-") for flag in flags} | {"help"}
        self.files = {file.name for folder in TOP_FOLDERS for file in (root / folder).rglob("*.*")}
        self.tests = set()
        for file in (root / "tests").rglob("*.cpp"):
            self.tests.update(re.findall(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", file.read_text()))
        for file in (root / "tests").rglob("CMakeLists.txt"):
            self.tests.update(re.findall(r"\b([A-Z]\w+)\.([A-Z]\w+)\b", file.read_text()))
        for file in (root / "src").rglob("*.cpp"):  # a suite may take its name from a typed list in a header
            if "gtest" in file.name:
                self.tests.update(re.findall(r"TEST\((\w+),\s*(\w+)\)", file.read_text()))

    def is_test(self, suite: str, name: str, open_end: bool) -> bool:
        return any((s == suite or (not name and open_end and s.startswith(suite))) and
                   (n.startswith(name) if open_end else n == name) for s, n in self.tests)


def wrong_commands(names: Names, text: str) -> list:
    wrong = []
    for command in re.findall(r"(?:^|[\s`/(])cohort((?: +[^\s|;&>`]+)*)", text):
        words = command.split()
        if not words or not re.fullmatch(r"[a-z][a-z-]*", words[0]):
            continue
        if words[0] not in names.subcommands:
            wrong.append(f"`cohort {words[0]}` is no subcommand")
            continue
        while words[0] == "launch" and (again := [i for i, w in enumerate(words) if i and w in names.subcommands]):
            words = words[again[0]:]
        if words[0] in ("train", "data", "evaluate") and len(words) > 1 and re.fullmatch(r"[a-z][a-z-]*", words[1]):
            if words[1] not in names.words:
                wrong.append(f"`cohort {words[0]} {words[1]}`: there is no {words[1]}")
        for flag in re.findall(r"(?:^|\s)--([a-z][a-z0-9_-]*)", command):
            if flag.replace("_", "-") not in names.flags:
                wrong.append(f"`cohort {words[0]}` has no --{flag}")
    return wrong


def check_names(root: Path) -> list:
    names, wrong = Names(root), []
    for file in texts_of(root):
        text = file.read_text(encoding="utf-8")
        where = file.relative_to(root)
        spans = code_spans(text)
        fenced = [line for block in blocks_of(str(file)) for line in block.text.splitlines()]
        for path in [path for span in [*spans, *fenced] for path in paths_in(span, names.modules)]:
            if not exists(root, path):
                wrong.append(f"{where}: {path} does not exist")
        for link in links(text):
            target = link.split("#")[0]
            if target and "://" not in target and not (file.parent / target).exists():
                wrong.append(f"{where}: the link {link} leads nowhere")
        commands = [block.text.replace("\\\n", " ") for block in blocks_of(str(file)) if block.words[:1] == ("sh",)]
        wrong += [f"{where}: {problem}" for code in [*spans, *commands] for problem in wrong_commands(names, code)]
        for files, folder in re.findall(r"((?:`\w+\.(?:h|cpp|cu)`,? (?:and )?)+)in `(src/[\w/]+)`", re.sub(r"\s+", " ", text)):
            wrong += [f"{where}: there is no {name} in {folder}" for name in re.findall(r"`([^`]+)`", files)
                      if not (root / folder / name).is_file()]
        for span in spans:
            if re.fullmatch(r"\w+\.(h|cpp|cu)", span) and span not in names.files:
                wrong.append(f"{where}: there is no file called {span}")
            test = re.fullmatch(r"(?:\w+/)?([A-Z]\w*)(?:/\d+)?\.([A-Z]\w*)?(\*|\.\.\.)?", span)
            if test and (test[2] or test[3]) and not names.is_test(test[1], test[2] or "", bool(test[3])):
                wrong.append(f"{where}: there is no test {span}")
    return wrong + unnamed(root, names)


def unnamed(root: Path, names: Names) -> list:
    """What exists and no text leads to: pages that docs/README.md does not link, subcommands that nobody explains, third
    parts that the build looks for and the page on them does not list."""
    wrong, index = [], root / "docs/README.md"
    if index.exists():
        linked = {(index.parent / link.split("#")[0]).resolve() for link in links(index.read_text(encoding="utf-8"))}
        wrong = [f"docs/README.md does not lead to {page.relative_to(root)}" for page in sorted(root.glob("docs/**/*.md"))
                 if page != index and page.resolve() not in linked]
    parts = root / "docs/design/rules_and_parts.md"
    listed = parts.read_text(encoding="utf-8").lower() if parts.exists() else None
    for file in sorted(root.glob("cmake/*.cmake")) if listed is not None else []:
        looked_for = re.findall(r"^\s*(?:find_package\((\w+)|find_\w+\(COHORT_(\w+?)_(?:INCLUDE|LIBRARY)|pkg_check_modules\(COHORT_(\w+))",
                                file.read_text(encoding="utf-8"), re.MULTILINE)
        for name in sorted({"".join(names_of) for names_of in looked_for} - {"Threads", "PkgConfig"}):
            if name.lower().replace("_", "/") not in listed:
                wrong.append(f"{parts.relative_to(root)} does not list {name}, which {file.relative_to(root)} looks for")
    everything = "\n".join(file.read_text(encoding="utf-8") for file in texts_of(root))
    return wrong + [f"no text names `cohort {name}`" for name in sorted(names.subcommands - {"help", "version"})
                    if f"cohort {name}" not in everything]


def check_pairs(root: Path) -> list:
    wrong = []
    guide, chinese = root / "docs/guide", root / "docs/zh"
    pairs = [(root / "README.md", root / "README.zh.md")]
    for name in sorted({file.name for folder in (guide, chinese) for file in folder.glob("*.md")}):
        pairs.append((guide / name, chinese / name))
    modules = Names(root).modules
    for one, other in pairs:
        missing = [file for file in (one, other) if not file.exists()]
        if missing:
            wrong.append(f"{missing[0].relative_to(root)} is missing")
            continue
        if compare(str(one), str(other)):
            wrong.append(f"{one.relative_to(root)} and {other.relative_to(root)} have other blocks")

        def files(text: Path) -> set:
            content = text.read_text(encoding="utf-8")
            named = {path for span in code_spans(content) for path in paths_in(span, modules)}
            for link in links(content):
                if "://" not in link and not link.startswith("#"):
                    named.add(os.path.relpath((text.parent / link.split("#")[0]).resolve(), root.resolve()))
            # A page of one language leads to the pages of that language.
            return {re.sub(r"^docs/(zh|guide)/", "guide/", path).replace("README.zh.md", "README.md") for path in named}

        difference = files(one) ^ files(other)
        if difference:
            wrong.append(f"{one.relative_to(root)} and {other.relative_to(root)}: only one of them names "
                         f"{', '.join(sorted(difference))}")
    return wrong


def check_evidence(file: Path) -> list:
    wrong, rows = [], 0
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if cells[0] == "claim" or set(cells[0]) <= set("- "):
            continue
        rows += 1
        if len(line) > MOST_CHARACTERS:
            wrong.append(f"{file.name}:{number}: {len(line)} characters, at most {MOST_CHARACTERS}")
        if len(cells) != 4 or not all(cells):
            wrong.append(f"{file.name}:{number}: a row is claim, command, figure, machine and date")
        elif not re.search(r"\b20\d\d-\d\d-\d\d\b", cells[3]):
            wrong.append(f"{file.name}:{number}: there is no date behind the machine")
    if not rows or rows > MOST_ROWS:
        wrong.append(f"{file.name}: {rows} rows, at most {MOST_ROWS}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["names", "pairs", "evidence"])
    parser.add_argument("where", type=Path)
    arguments = parser.parse_args()
    check = {"names": check_names, "pairs": check_pairs, "evidence": check_evidence}[arguments.check]
    wrong = check(arguments.where)
    for line in wrong:
        print(line)
    print(f"{len(wrong)} problem(s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
