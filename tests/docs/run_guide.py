"""Runs the commands of the guides, so that what a reader copies works.

  python run_guide.py run GUIDE.md [--path FOLDER]...   every ```sh block of a guide, in order, in one new folder
  python run_guide.py compare ONE.md OTHER.md           both have the same blocks and the same quoted output
  python run_guide.py quotes GUIDE.md FILE...           every line of a ```cpp block stands in one of the files
  python run_guide.py run-all ROOT [--path FOLDER]...   every text with commands of the project, each as `run` does
  python run_guide.py parse ROOT                        bash reads every block of every text and every script, and
                                                        guides_not_run.txt says why the blocks that do not run do not

The words behind ```sh say what is expected:
  ```sh          exit code 0
  ```sh fails    another exit code; the text of the next ```text block must appear in what the command prints
  ```sh not-run  not run (it needs a GPU, Docker, ...); only compared
Blocks of cpp, python, json, xml and cmake are only compared. A ```text block behind a block that succeeds is also looked
for in its output. In a ```text block, ... stands for anything within a line, and a line that is ... for any number of
lines. COHORT_BIN is the folder of `cohort`.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

BLOCK_SECONDS = 300  # a block takes a few seconds; a hanging one must not use up the whole test's time


@dataclass
class Block:
    line: int
    words: tuple  # of the fence: ("sh", "fails")
    text: str


def blocks_of(path: str) -> list:
    """The fenced blocks of a Markdown file, in order."""
    blocks, words, start, lines = [], None, 0, []
    with open(path, encoding="utf-8") as file:
        content = file.readlines()
    for number, line in enumerate(content, 1):
        fence = re.match(r"\s*```(.*)$", line)
        if not fence:
            if words is not None:
                lines.append(line)
        elif words is None:
            words, start, lines = tuple(fence[1].split()), number, []
        else:
            blocks.append(Block(start, words, "".join(lines)))
            words = None
    if words is not None:
        sys.exit(f"{path}:{start}: the block that begins here is not closed")
    for block in blocks:
        known = {(), ("text",), ("sh",), ("sh", "fails"), ("sh", "not-run"), ("yaml",), ("cpp",), ("python",), ("json",),
                 ("xml",), ("cmake",)}
        if block.words not in known:
            sys.exit(f"{path}:{block.line}: '{' '.join(block.words)}' is no kind of block that this test knows")
    return blocks


def pattern_of(quoted: str) -> re.Pattern:
    """What a quotation matches: blanks at the ends of lines do not count, and '...' stands for what varies."""
    parts = []
    for line in quoted.strip("\n").split("\n"):
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.rstrip().split("...")) + r".*\n")
    return re.compile(r".*?" + r".*?".join(parts) if parts else "")


def without_console_marks(output: str) -> str:
    """Output as a reader sees it: no carriage returns, no rank labels, no times."""
    output = output.replace("\r", "\n")
    output = re.sub(r"^\[rank \d+\] ", "", output, flags=re.M)
    return re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", "", output, flags=re.M) + "\n"


def run_block(block: Block, folder: str, environment: dict) -> tuple:
    """Exit code (None after BLOCK_SECONDS) and output. Every command of the block must succeed, as under set -e."""
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, env=environment, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=BLOCK_SECONDS)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        code, output = None, process.communicate()[0]
    try:
        os.killpg(process.pid, signal.SIGTERM)  # what the block left in the background
    except ProcessLookupError:
        pass
    return code, output


def run(guide: str, folders: list) -> int:
    blocks = blocks_of(guide)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")}
    environment["CUDA_VISIBLE_DEVICES"] = ""  # the quotations are those of a machine without a GPU
    environment["PATH"] = os.pathsep.join([os.environ["COHORT_BIN"], *folders, os.environ["PATH"]])
    failures, ran = [], 0
    with tempfile.TemporaryDirectory(prefix="cohort-guide-") as folder:
        for i, block in enumerate(blocks):
            if block.words not in (("sh",), ("sh", "fails")):
                continue
            ran += 1
            fails = block.words == ("sh", "fails")
            quoted = blocks[i + 1].text if i + 1 < len(blocks) and blocks[i + 1].words == ("text",) else None
            began = time.monotonic()
            code, output = run_block(block, folder, environment)
            problem = ""
            if code is None:
                problem = f"did not end within {BLOCK_SECONDS} s"
            elif fails and code == 0:
                problem = "ended well, but the guide says that it fails"
            elif not fails and code != 0:
                problem = f"ended with exit code {code}"
            elif fails and quoted is None:
                problem = "fails, but the guide quotes no message in a text block behind it"
            elif quoted is not None and not pattern_of(quoted).search(without_console_marks(output)):
                problem = "does not print what the guide quotes:\n" + quoted
            seconds = time.monotonic() - began
            print(f"{'FAILED' if problem else 'ok    '} {seconds:5.1f} s  {os.path.basename(guide)}:{block.line}: "
                  f"{block.text.strip().splitlines()[0]}", flush=True)
            if problem:
                failures.append(block)
                print(f"{problem}\noutput:\n{output}")
    print(f"{ran} blocks run, {len(failures)} failed")
    return 1 if failures or not ran else 0


def texts_of(root: str) -> list:
    """The texts with commands, relative to the project: the guides in English, whose commands the Chinese ones share,
    the README and those of the examples."""
    found = ["README.md"]
    for folder, _, files in sorted(os.walk(os.path.join(root, "examples"))):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in sorted(files) if name.endswith(".md")]
    guide = os.path.join("docs", "guide")
    found += [os.path.join(guide, name) for name in sorted(os.listdir(os.path.join(root, guide)))
              if name.endswith(".md")]
    return found


def has(root: str, text: str, *kinds: tuple) -> bool:
    return any(block.words in kinds for block in blocks_of(os.path.join(root, text)))


def run_all(root: str, folders: list) -> int:
    wrong = [text for text in texts_of(root)
             if has(root, text, ("sh",), ("sh", "fails")) and run(os.path.join(root, text), folders) != 0]
    print("every text's commands work" if not wrong else "commands that do not work are in " + ", ".join(wrong))
    return 1 if wrong else 0


def is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return re.match(rb"#!.*\b(?:ba)?sh\b", file.readline()) is not None


def parse(root: str) -> int:
    """Whether bash can read all of it; no command is run."""
    problems, blocks = [], 0
    for text in texts_of(root):
        for block in blocks_of(os.path.join(root, text)):
            if block.words[:1] != ("sh",):
                continue
            blocks += 1
            # A reader replaces <NAME> and ...; bash takes the first for a redirection.
            read = subprocess.run(["bash", "-n"], input=re.sub(r"<[A-Za-z_ ]+>", "NAME", block.text), text=True,
                                  capture_output=True)
            if read.returncode != 0:
                problems.append(f"{text}:{block.line}: {read.stderr.strip()}")
    scripts = [os.path.join(folder, name) for part in ("scripts", "examples", "deploy", "tests/docs")
               for folder, _, files in os.walk(os.path.join(root, part)) for name in sorted(files)]
    scripts = [path for path in scripts if is_script(path)]
    for path in scripts:
        read = subprocess.run(["bash", "-n", path], text=True, capture_output=True)
        if read.returncode != 0:
            problems.append(read.stderr.strip())
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                # Unquoted, the shell takes double quotes out of ${NAME-WORD}; a list of a setting needs them.
                if re.match(r"""[A-Za-z_]+=\$\{[A-Za-z_]+:?-[^}$]*\[\"""", line):
                    problems.append(f"{path}:{number}: the shell takes the double quotes out of this default: {line}")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "guides_not_run.txt"), encoding="utf-8") as file:
        reasons = dict(line.strip().split(": ", 1) for line in file if line.strip() and not line.startswith("#"))
    for text in texts_of(root):
        if has(root, text, ("sh", "not-run")) != (text in reasons):
            problems.append(f"{text}: guides_not_run.txt " + (
                "names it, and all of its blocks run" if text in reasons else "does not say why some blocks do not run"))
    for text in reasons:
        if not os.path.exists(os.path.join(root, text)):
            problems.append(f"guides_not_run.txt names {text}, which is not there")
    print("\n".join(problems) or f"{blocks} blocks and {len(scripts)} scripts can be read")
    return 1 if problems or not blocks or not scripts else 0


def compare(one: str, other: str) -> int:
    """Comments may be translated; commands and quoted output may not differ."""
    def essence(path: str) -> list:
        return [(block.words, re.sub(r"\s*(?:^|\s)# .*$", "", block.text, flags=re.M).split("\n"), block.line)
                for block in blocks_of(path)]

    first, second = essence(one), essence(other)
    for a, b in zip(first, second):
        if a[:2] != b[:2]:
            print(f"{one}:{a[2]} and {other}:{b[2]} differ:\n{a[0]} {a[1]}\n{b[0]} {b[1]}")
            return 1
    if len(first) != len(second):
        print(f"{one} has {len(first)} blocks, {other} has {len(second)}")
        return 1
    print(f"{len(first)} blocks are the same")
    return 0


def quotes(guide: str, files: list) -> int:
    lines = {line.strip() for file in files for line in open(file, encoding="utf-8")} | {"...", ""}
    wrong = [(block.line + 1 + i, line) for block in blocks_of(guide) if block.words == ("cpp",)
             for i, line in enumerate(block.text.splitlines()) if line.strip() not in lines]
    for number, line in wrong:
        print(f"{guide}:{number}: this line stands in none of the files: {line}")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run")
    runner.add_argument("guide")
    runner.add_argument("--path", action="append", default=[], help="further folders of programs")
    comparer = commands.add_parser("compare")
    comparer.add_argument("one")
    comparer.add_argument("other")
    quoter = commands.add_parser("quotes")
    quoter.add_argument("guide")
    quoter.add_argument("files", nargs="+")
    every = commands.add_parser("run-all")
    every.add_argument("root")
    every.add_argument("--path", action="append", default=[], help="further folders of programs")
    parser_ = commands.add_parser("parse")
    parser_.add_argument("root")
    arguments = parser.parse_args()
    if arguments.command == "run-all":
        return run_all(arguments.root, arguments.path)
    if arguments.command == "parse":
        return parse(arguments.root)
    if arguments.command == "run":
        return run(arguments.guide, arguments.path)
    if arguments.command == "quotes":
        return quotes(arguments.guide, arguments.files)
    return compare(arguments.one, arguments.other)


if __name__ == "__main__":
    sys.exit(main())
