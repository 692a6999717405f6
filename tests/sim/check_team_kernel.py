"""What nvcc makes of a team's factor, solves and product (team_kernel.cu): few registers, no stack, values in shared memory.

    PYTHON tests/sim/check_team_kernel.py SOURCE_FOLDER NVCC

Looks at the PTX of compute_80, and at what ptxas says for sm_80. A loop that leaves shared memory, an array that leaves the
registers or code that grows costs a GPU more than any arithmetic there, and shows here without one.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

MOST_REGISTERS, MOST_INSTRUCTIONS = 96, 4000


def main():
    source, nvcc = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder) / "team.ptx"
        subprocess.run([nvcc, "-std=c++17", "-O3", "-fmad=false", "-arch=compute_80", "-ptx", "-Werror=all-warnings",
                        f"-I{source / 'src'}", source / "tests/sim/team_kernel.cu", "-o", ptx], check=True)
        told = subprocess.run([nvcc.with_name("ptxas"), "-arch=sm_80", "-v", ptx, "-o", "/dev/null"], check=True,
                              capture_output=True, text=True)
        told, kernels = told.stdout + told.stderr, ptx.read_text().split(".entry")[1:]
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", told)
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", told)]
    # ptxas has its own order; what it says has a limit that all keep, so that whose it is does not matter.
    if not len(frames) == len(registers) == len(kernels) == 3:
        sys.exit(f"{len(frames)} frames, {len(registers)} counts of registers and {len(kernels)} kernels, not three:\n{told}")
    wrong = []
    if max(registers) > MOST_REGISTERS:
        wrong.append(f"{max(registers)} registers, more than {MOST_REGISTERS}")
    if set(frames) != {("0", "0")}:
        wrong.append(f"stack and spills of {frames} bytes")
    print(f"registers {registers}, stack and spills {frames}")
    for kernel in kernels:
        name = re.search(r"team_kernelILi(\d+)", kernel).group(1)
        lines = [line for line in kernel.splitlines() if re.match(r"\s+(@!?%p\d+ )?[a-z]", line)]
        count = {space: sum(1 for line in lines if re.search(rf"\b(ld|st)\.{space}", line)) for space in ("shared", "global", "local")}
        unknown = [line.strip() for line in lines if re.search(r"\b(ld|st)\.(volatile\.)?[usfb]\d", line)]
        print(f"team of {name}: {len(lines)} instructions, accesses {count}, of an unknown kind {len(unknown)}")
        for what, is_wrong in ((f"accesses to memory of an unknown kind: {unknown[:1]}", unknown),
                               ("accesses to the stack", count["local"]),
                               ("no access to shared memory", not count["shared"]),
                               (f"more instructions than {MOST_INSTRUCTIONS}", len(lines) > MOST_INSTRUCTIONS)):
            if is_wrong:
                wrong.append(f"team of {name}: {what}")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
