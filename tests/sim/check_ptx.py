"""What nvcc makes of a file's kernels must not change a bit of what the source says, nor let threads meet.

    PYTHON tests/sim/check_ptx.py BUILD_FOLDER [FILE, default src/sim/backends/cuda/runner.cu]

Compiles the file to PTX with the command by which the build compiles it, from its compile_commands.json, and looks for
instructions that would.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FORBIDDEN = {
    r"\.approx\b|\.ftz\b|\.full\b": "is not rounded as IEEE 754 says",
    r"\bmad\.\S*f(32|64)": "fuses a product and a sum",
    r"\b(mul|add|sub)\.f(32|64)": "says no rounding, so that ptxas may fuse it: -fmad=false is missing",
    r"\bfma\S*\.f64": "fuses a product and a sum, where no source does in double",
    # A comparison and a choice, as the source has it, takes the second of two zeros; these the smaller, the greater.
    r"\bmin\.f(32|64).*\b0[fd][08]0+;": "takes -0 for less than 0",
    r"\bmax\.f(32|64).*\b0[fd]80+;": "takes 0 for more than -0",
    r"\b(atom|red|bar|barrier|shfl|vote)\.": "lets threads meet: a result could depend on their order",
}
# Of floats that are fused on purpose, and of divisions and roots, there are many.
EXPECTED = r"\bfma\.rn\.f32|\bdiv\.rn\.f32|\bsqrt\.rn\.f32"


def compile_to_ptx(build, source, ptx):
    with open(build / "compile_commands.json") as file:
        commands = [c for c in json.load(file) if c["file"].endswith(source)]
    if len(commands) != 1:
        sys.exit(f"{build}/compile_commands.json has {len(commands)} commands for {source}, not one")
    words = shlex.split(commands[0]["command"])
    words[words.index("-o") + 1] = str(ptx)
    words[words.index("-c")] = "-ptx"
    # PTX is of one generation only.
    words = [w for w in words if not w.startswith("--generate-code")] + ["-arch=compute_80"]
    subprocess.run(words, cwd=commands[0]["directory"], check=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder) / "kernels.ptx"
        compile_to_ptx(pathlib.Path(sys.argv[1]), (sys.argv[2:] or ["src/sim/backends/cuda/runner.cu"])[0], ptx)
        lines = ptx.read_text().splitlines()
    found = 0
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN.items():
            if re.search(pattern, line):
                found += 1
                if found <= 20:
                    print(f"line {number} of the PTX: `{line.strip()}` {why}")
    expected = sum(1 for line in lines if re.search(EXPECTED, line))
    print(f"{len(lines)} lines, {expected} of them fused, quotients or roots as they should be, {found} that must not be there")
    sys.exit(0 if found == 0 and expected > 300 else 1)


main()
