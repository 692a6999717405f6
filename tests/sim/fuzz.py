"""Damages model files for a given time and runs `cohort simulate` on every mutant: it has to end as a model that is stepped
or with an error message (exit code 1), within limits of time and memory. Anything else is kept.

    python tests/sim/fuzz.py SECONDS FOLDER-FOR-FINDINGS MODEL... [--cohort build/release/bin/cohort] [--first SAMPLE]

A mutant is a function of its file and sample number. Prints how many mutants of which file were tried and how they ended;
exit code 1 when one was kept. Its short form runs in tests/sim/fuzz_test.cpp.
"""
import argparse
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

SECONDS_PER_MUTANT = 60
BYTES_PER_MUTANT = 8 << 30
HOSTILE = ["nan", "-1", "1e308", "-1e308", "0", "1e-300", "99999999999999999999", "2147483648", "'", "<", "\\0", "&#0;",
           "inf", "-", "0 0 0 0 0 0 0 0 0 0", "", "world", "../../../../../x", "1e10 1e10 1e10", "true", "\udcff\udcfe"]
WORDS = [" size='1'", " mass='0'", " type='mesh'", " type='free'", " quat='0 0 0 0'", " range='1 -1'", " density='-5'",
         " condim='7'", " class='none'", " solref='0 0'", " gear='nan'", " armature='-1'", " margin='1e9'", " timestep='0'",
         " limited='true'", " axis='0 0 0'", "<freejoint/>", "<geom/>", "<body/>", "<joint/>", "<site name='x'/>",
         "<include file='x'/>", "<replicate count='9999'>", "</body>", "<!--", "<geom size='0 0 0'/>", "<inertial mass='0'/>"]


def mutant(text, draw):
    for _ in range(draw.randint(1, 3)):
        if len(text) < 9:
            break
        at = draw.randrange(len(text) - 1)
        length = draw.randint(1, 40)
        kind = draw.randrange(8)
        if kind == 0:
            text = text[:at] + chr(ord(text[at]) ^ 1 << draw.randrange(7)) + text[at + 1:]
        elif kind == 1:
            text = text[:at] + text[at + length:]
        elif kind == 2:
            text = text[:at] + text[at:at + length] + text[at:]
        elif kind == 3:
            digit = next((i for i in range(at, len(text)) if text[i].isdigit()), None)
            if digit is not None:
                text = text[:digit] + draw.choice(HOSTILE) + text[digit + 1:]
        elif kind == 4:  # the whole value of an attribute
            begin = text.find('="', at)
            end = text.find('"', begin + 2) if begin >= 0 else -1
            if end >= 0:
                text = text[:begin + 2] + draw.choice(HOSTILE) + text[end:]
        elif kind == 5:  # an attribute or an element more
            end = next((i for i in range(at, len(text)) if text[i] in "/>"), None)
            if end is not None:
                text = text[:end] + draw.choice(WORDS) + text[end:]
        elif kind == 6:  # a line elsewhere
            begin = text.find("\n", at)
            end = text.find("\n", begin + 1) if begin >= 0 else -1
            if end >= 0:
                place = draw.randrange(len(text))
                text = text[:place] + text[begin:end] + text[place:]
        else:
            text = text[:at + 1]
    return text


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES_PER_MUTANT, BYTES_PER_MUTANT))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("seconds", type=float)
    parser.add_argument("findings", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--cohort", default=str(root / "build/release/bin/cohort"))
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    counts = {model: {"models": 0, "errors": 0, "kept": 0} for model in arguments.models}
    begin, sample = time.monotonic(), arguments.first
    while time.monotonic() - begin < arguments.seconds:
        for model in arguments.models:
            if time.monotonic() - begin >= arguments.seconds:
                break
            text = mutant(model.read_text(errors="surrogateescape"), random.Random(f"{model.name}:{sample}"))
            with tempfile.TemporaryDirectory() as folder:
                # What the file refers to lies beside it.
                for neighbour in model.resolve().parent.iterdir():
                    if neighbour.name != model.name:
                        os.symlink(neighbour, os.path.join(folder, neighbour.name))
                file = pathlib.Path(folder) / model.name
                file.write_text(text, errors="surrogateescape")
                try:
                    done = subprocess.run(
                        [arguments.cohort, "simulate", str(file), "--n-envs", "4", "--steps", "5"], preexec_fn=limit,
                        capture_output=True, timeout=SECONDS_PER_MUTANT)
                    end, output = done.returncode, (done.stdout + done.stderr).decode(errors="replace")
                except subprocess.TimeoutExpired:
                    end, output = "no end", ""
            if end == 0:
                counts[model]["models"] += 1
            elif end == 1 and "cohort:" in output:
                counts[model]["errors"] += 1
            else:
                counts[model]["kept"] += 1
                arguments.findings.mkdir(parents=True, exist_ok=True)
                kept = arguments.findings / f"{model.stem}_{sample}{model.suffix}"
                kept.write_text(text, errors="surrogateescape")
                print(f"{kept}: {end}: {output[-300:]}", flush=True)
        sample += 1
    for model, count in counts.items():
        print(f"{model.name:<32} {count['models']:>6} models {count['errors']:>6} errors {count['kept']:>4} kept")
    total = sum(sum(count.values()) for count in counts.values())
    kept = sum(count["kept"] for count in counts.values())
    print(f"{total} mutants, samples {arguments.first} to {sample - 1}, {time.monotonic() - begin:.0f} s, {kept} kept")
    sys.exit(1 if kept else 0)


if __name__ == "__main__":
    main()
