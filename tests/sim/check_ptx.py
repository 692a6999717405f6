"""What nvcc makes of the simulation's kernels must not change a bit of what the source says, nor let threads meet.

    PYTHON tests/sim/check_ptx.py NVCC SOURCE_ROOT

Compiles src/sim/cuda/runner.cu to PTX with the build's options and looks for instructions that would.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

FORBIDDEN = {
    r"\.approx\b|\.ftz\b|\.full\b": "is not rounded as IEEE 754 says",
    r"\bmad\.\S*f(32|64)": "fuses a product and a sum",
    r"\bfma\S*\.f64": "fuses a product and a sum, where no source does in double",
    # A comparison and a choice, as the source has it, takes the second of two zeros; these the smaller, the greater.
    r"\bmin\.f(32|64).*\b0[fd][08]0+;": "takes -0 for less than 0",
    r"\bmax\.f(32|64).*\b0[fd]80+;": "takes 0 for more than -0",
    r"\b(atom|red|bar|barrier|shfl|vote)\.": "lets threads meet: a result could depend on their order",
}
WANTED = r"\bfma\.rn\.f32|\bdiv\.rn\.f32|\bsqrt\.rn\.f32"


def main():
    nvcc, root = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder) / "runner.ptx"
        subprocess.run([nvcc, "-O3", "-DNDEBUG", "-arch=compute_80", "-ptx", "-fmad=false", "-std=c++17", f"-I{root}/src",
                        f"{root}/src/sim/cuda/runner.cu", "-o", ptx], check=True)
        lines = ptx.read_text().splitlines()
    found = 0
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN.items():
            if re.search(pattern, line):
                found += 1
                if found <= 20:
                    print(f"line {number} of the PTX: `{line.strip()}` {why}")
    wanted = sum(1 for line in lines if re.search(WANTED, line))
    print(f"{len(lines)} lines, {wanted} of them fused, quotients or roots as they should be, {found} that must not be there")
    sys.exit(0 if found == 0 and wanted > 1000 else 1)


main()
