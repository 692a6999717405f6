"""Completes a wheel that scikit-build-core has made: complete.py RAW.whl SITE_PACKAGES OUT_FOLDER

Programs and libraries get a RUNPATH into the wheels that pip installs beside this one; the distribution's libraries that they
need are copied in (auditwheel), except what the licences or the size forbid; the oldest glibc that will do gives the platform
tag; licences and a CycloneDX list of what is inside go into dist-info. The result is printed.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
# Libraries that come in wheels of their own: never copied.
EXCLUDED = ("libtorch*.so*", "libc10*.so*", "libcudart.so*", "libcupti.so*", "libarrow*.so*", "libparquet.so*", "libmujoco.so*",
            "libnvrtc.so*", "libnccl.so*", "libcuda.so*")
# Relative to site-packages, for files of PACKAGE/bin and PACKAGE/lib and for the extensions in PACKAGE. auditwheel adds its own folder.
RUNPATH = ("cohort/lib", "torch/lib", "mujoco", "pyarrow", "nvidia/cu13/lib")
# Of the extensions: every CPython from 3.11 on (requires-python), by its stable ABI.
PYTHON_TAG = "cp311-abi3"
GPL = re.compile(r"\b(A|L)?GPL\b", re.IGNORECASE)
LIMIT = 100_000_000  # bytes, PyPI's for a file


def fail(text: str) -> None:
    raise SystemExit(f"wheel: error: {text}")


def run(*words: object, **more) -> str:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        fail(f"{words[0]} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def elf_files(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink() and is_elf(p))


def needed(path: Path) -> list[str]:
    with path.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        return [t.needed for t in dynamic.iter_tags() if t.entry.d_tag == "DT_NEEDED"] if dynamic else []


def glibc_floor(root: Path) -> str:
    """The newest version of glibc's symbols that any file asks for, as `2.35`."""
    floor = (2, 17)
    for path in elf_files(root):
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".gnu.version_r")
            for _, versions in section.iter_versions() if section else ():
                for version in versions:
                    found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version.name)
                    if found:
                        floor = max(floor, (int(found[1]), int(found[2])))
    return f"{floor[0]}.{floor[1]}"


def unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            path = Path(archive.extract(info, folder))
            if mode := info.external_attr >> 16 & 0o777:
                path.chmod(mode)


def pack(folder: Path, wheel: Path, level: int = 9) -> None:
    """Writes `folder` with a new RECORD: files in order of their names, all of one date, so that the same files give the same bytes."""
    (info,) = folder.glob("*.dist-info")
    record = info / "RECORD"
    rows = io.StringIO()
    lines = csv.writer(rows, lineterminator="\n")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        def add(path: Path, data: bytes) -> None:
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            executable = path.parent.name == "bin" or ".so" in path.name
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=level)
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p != record):
            data = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.writerow((path.relative_to(folder).as_posix(), f"sha256={digest}", len(data)))
            add(path, data)
        lines.writerow((record.relative_to(folder).as_posix(), "", ""))
        add(record, rows.getvalue().encode())


def libraries_here() -> str:
    return run(shutil.which("ldconfig") or "/sbin/ldconfig", "-p")


def package_of(library: str) -> str:
    """The distribution's package that has this library, e.g. libssl3 for libcrypto."""
    found = re.search(rf"\t{re.escape(library)}\.so\.\S+ .*=> (\S+)", libraries_here())
    if not found:
        fail(f"the system's linker does not know {library}, which was copied in")
    path = Path(found[1])
    # A merged /usr: the package may name its files under /lib.
    for name in {path, path.resolve(), Path("/usr") / path.relative_to("/"), Path(str(path).removeprefix("/usr"))}:
        done = subprocess.run(["dpkg-query", "-S", str(name)], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    return fail(f"no package has {path}, which was copied in: its version and licence are not known")


def hdf5_without_curl(folder: Path) -> None:
    """A copy of the system's HDF5, if it asks for libcurl, that asks for no_curl.c instead."""
    found = re.search(r"(libhdf5_serial\.so\.\d+) .*=> (\S+)", libraries_here())
    if not found or "libcurl.so.4" not in needed(Path(found[2])):
        return
    stand_in = folder / "libcohort_no_curl.so"
    names = re.findall(r"\b(curl_[a-z_]+)\(", (HERE / "no_curl.c").read_text())
    versions = folder / "curl.map"
    versions.write_text("CURL_OPENSSL_4 { global: %s; local: *; };\n" % " ".join(n + ";" for n in names).rstrip(";"))
    run(os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", f"-Wl,-soname,{stand_in.name}", f"-Wl,--version-script={versions}",
        "-o", stand_in, HERE / "no_curl.c")
    copy = folder / found[1]
    shutil.copyfile(found[2], copy)
    copy.chmod(0o755)
    run("patchelf", "--replace-needed", "libcurl.so.4", stand_in.name, copy)


def version_of(part: dict, site: Path) -> str:
    if "package" in part:
        return run("dpkg-query", "-W", "-f=${Version}", part["package"])
    for info in site.glob("*.dist-info"):
        name, version = info.name.removesuffix(".dist-info").rsplit("-", 1)
        if name.replace("_", "-").lower() == part["wheel"]:
            return version
    return fail(f"the wheel {part['wheel']} is not in {site}: run scripts/setup")


def licence_text(part: dict, site: Path) -> str:
    if "package" in part:
        pattern = part.get("files", part["package"])
        files = sorted(Path("/usr/share/doc").glob(f"{pattern}/copyright"))
    else:
        folder = part["wheel"].replace("-", "_")
        files = sorted(p for info in site.glob(f"{folder}-*.dist-info")
                       for p in info.rglob("*") if p.is_file() and re.match(r"(LICENSE|LICENCE|COPYING)", p.name, re.IGNORECASE))
    if not files:
        fail(f"{part['name']}: no file with its licence was found; is its package installed?")
    return files[0].read_text(encoding="utf-8", errors="replace")


def list_of_parts(info: Path, name: str, version: str, parts: list[dict], site: Path) -> None:
    """dist-info/sboms/cohort.cdx.json (CycloneDX 1.6, PEP 770), and a licence file for each part."""
    components = []
    for part in parts:
        if GPL.search(part["licence"]):
            fail(f"{part['name']} is under {part['licence']}: it must not lie in the wheel")
        component = {"type": "library", "bom-ref": part["ref"], "name": part["name"], "version": version_of(part, site),
                     "licenses": [{"expression": part["licence"]}]}
        if "package" in part:
            distribution = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
            vendor = distribution.get("ID", "linux").strip('"')
            component["purl"] = f"pkg:deb/{vendor}/{part['package']}@{component['version']}?arch=amd64"
        else:
            component["purl"] = f"pkg:pypi/{part['wheel']}@{component['version']}"
        if "file" in part:
            component["hashes"] = [{"alg": "SHA-256", "content": part["sha256"]}]
            component["properties"] = [{"name": "cohort:file", "value": part["file"]}]
        components.append(component)
        text = info / "licenses" / "parts" / (re.sub(r"[^A-Za-z0-9.]+", "_", part["name"]).strip("_") + ".txt")
        text.parent.mkdir(parents=True, exist_ok=True)
        text.write_text(licence_text(part, site), encoding="utf-8")
    root = f"pkg:pypi/{name}@{version}"
    bom = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        # The same parts give the same number, so that a wheel built twice is the same file.
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, root + json.dumps(components, sort_keys=True))),
        "metadata": {"component": {"type": "application", "bom-ref": root, "name": name, "version": version, "purl": root,
                                   "licenses": [{"expression": "Apache-2.0"}]}},
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": [c["bom-ref"] for c in components]}] +
                        [{"ref": c["bom-ref"]} for c in components],
    }
    folder = info / "sboms"
    folder.mkdir(exist_ok=True)
    (folder / "cohort.cdx.json").write_text(json.dumps(bom, indent=2) + "\n", encoding="utf-8")


def complete(raw: Path, site: Path, out: Path) -> Path:
    table = json.loads((HERE / "components.json").read_text())
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        tree, stand_ins, repaired, final = (work / n for n in ("tree", "stand_ins", "repaired", "final"))
        for folder in (stand_ins, repaired):
            folder.mkdir()
        unpack(raw, tree)
        for path in elf_files(tree / "cohort"):
            if path.suffix != ".a":
                up = "/".join([".."] * (len(path.relative_to(tree).parts) - 1))
                run("patchelf", "--set-rpath", ":".join(f"$ORIGIN/{up}/{folder}" for folder in RUNPATH), path)
        hdf5_without_curl(stand_ins)
        name, version = raw.name.split("-")[:2]
        patched = work / raw.name
        pack(tree, patched, level=1)
        # What is copied in may ask for a newer glibc than the programs: the tag is of all files, so auditwheel runs first.
        words = ["auditwheel", "repair", "--plat", "auto", "--wheel-dir", repaired, "-z", "1"]
        for pattern in EXCLUDED:
            words += ["--exclude", pattern]
        searched = f"{stand_ins}:{site / 'torch/lib'}:{site / 'pyarrow'}:" + ":".join(str(p) for p in site.glob("nvidia/*/lib"))
        run(*words, patched, env={**os.environ, "LD_LIBRARY_PATH": searched})
        (repaired_wheel,) = repaired.glob("*.whl")
        unpack(repaired_wheel, final)
        floor = glibc_floor(final)
        tag = f"manylinux_{floor.replace('.', '_')}_x86_64"
        note = final / "cohort" / "share" / "cohort" / "wheel" / "glibc"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(floor + "\n")
        (info,) = final.glob("*.dist-info")
        about = info / "WHEEL"
        about.write_text(re.sub(r"(?m)^Tag: .*$", f"Tag: {PYTHON_TAG}-{tag}", about.read_text()))
        parts = []
        for path in sorted((final / "cohort.libs").glob("*.so*")):
            own = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", path.name).split(".so")[0]  # auditwheel puts a hash into the name
            if own == "libcohort_no_curl":
                continue
            if own not in table["vendored"]:
                fail(f"{own} would be copied in, and packaging/wheel/components.json does not name its licence")
            parts.append({**table["vendored"][own], "package": package_of(own), "ref": own,
                          "file": path.relative_to(final).as_posix(),
                          "sha256": hashlib.sha256(path.read_bytes()).hexdigest()})
        parts += [{**part, "ref": part.get("package", part.get("wheel"))} for part in table["compiled_in"]]
        list_of_parts(info, name, version, parts, site)
        out.mkdir(parents=True, exist_ok=True)
        wheel = out / f"{name}-{version}-{PYTHON_TAG}-{tag}.whl"
        pack(final, wheel)
        if wheel.stat().st_size >= LIMIT:
            print(f"wheel: warning: PyPI takes files below {LIMIT / 1e6:.0f} MB; fewer CUDA generations (COHORT_CUDA_ARCHITECTURES) "
                  "make it smaller")
        print(f"wheel: {wheel} ({wheel.stat().st_size / 1e6:.1f} MB, glibc {floor} or newer, {len(parts)} parts in its list; "
              f"auditwheel's own tag: {repaired_wheel.name.removesuffix('.whl').rsplit('-', 1)[1]})")
        return wheel


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    complete(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve())
