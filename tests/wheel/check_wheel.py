"""The wheel: check_wheel.py FOLDER_OF_THE_REPOSITORY Sources|Built|OldProcessors

Sources: what it is made from agrees with versions.env, and the first checks of `python -m cohort` say what is wrong.
Built: the newest wheel in dist/ (scripts/wheel) holds what its tag, its RECORD and its list of parts say. Exit code 77 where there is none.
OldProcessors: the build's programs (COHORT_BIN) on emulated processors without AVX2 and without AVX. Exit code 77 without qemu-x86_64.
"""
import base64
import csv
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile

ROOT = pathlib.Path(sys.argv[1])
GPL = re.compile(r"\b[AL]?GPL", re.IGNORECASE)
# What every system of the tag has (PEP 600's list), and what comes in wheels of its own.
SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|libz|ld-linux-x86-64)\.so\.\d+")
OTHER_WHEELS = re.compile(r"(libtorch(_cpu|_cuda)?|libc10(_cuda)?|lib(arrow|parquet|cudart|cupti|nvrtc|nccl))\.so(\.\d+)?")
MEGABYTE = 1_000_000


def load_main():
    spec = importlib.util.spec_from_file_location("cohort_main", ROOT / "python/cohort/__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Sources(unittest.TestCase):
    def test_it_asks_for_the_versions_that_it_is_built_with(self):
        pins = dict(re.findall(r"\b([A-Za-z0-9_-]+)==([0-9.]+)", (ROOT / "versions.env").read_text()))
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        asked = dict(d.split("==") for d in project["dependencies"] if "==" in d)
        self.assertEqual(set(asked), {"torch", "mujoco-core", "pyarrow", "nanobind-backend"})
        for name in asked:
            self.assertTrue((pins[name] + ".").startswith(asked[name].rstrip("*")), f"{name}: {asked[name]} against {pins[name]}")

    def test_no_part_is_under_the_gpl(self):
        table = json.loads((ROOT / "packaging/wheel/components.json").read_text())
        for part in [*table["vendored"].values(), *table["compiled_in"]]:
            self.assertIsNone(GPL.search(part["licence"]), part)
        self.assertIsNotNone(GPL.search("LGPL-2.1-or-later"))

    def test_the_stand_in_for_libcurl_compiles_without_a_warning(self):
        compiler = os.environ.get("CC") or shutil.which("cc")
        if compiler is None:
            self.skipTest("no C compiler")
        done = subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", ROOT / "packaging/wheel/no_curl.c"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_old_glibc_is_named_with_the_needed_one(self):
        main = load_main()
        with tempfile.TemporaryDirectory() as folder:
            program, floor = pathlib.Path(folder) / "cohort", pathlib.Path(folder) / "glibc"
            self.assertIn("install the wheel", main.problem(program, floor))
            program.write_text("")
            for text, wrong in (("2.17\n", False), ("2.9\n", False), ("2.999\n", True), ("3.0\n", True)):
                floor.write_text(text)
                said = main.problem(program, floor)
                self.assertEqual(said is not None, wrong, f"{text}: {said}")
                if wrong:
                    self.assertIn(f"needs glibc {text.strip()} or newer", said)
                    self.assertNotIn("\n", said)

    def test_it_becomes_the_program_with_its_words_and_its_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "cohort"
            shutil.copytree(ROOT / "python/cohort", package, ignore=shutil.ignore_patterns("__pycache__"))
            (package / "bin").mkdir()
            program = package / "bin/cohort"
            program.write_text('#!/bin/sh\nprintf "<%s>" "$@"\nexit 7\n')
            program.chmod(0o755)
            done = subprocess.run([sys.executable, "-m", "cohort", "a b", "--c=*"], cwd=folder, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (7, "<a b><--c=*>"))
            shutil.rmtree(package / "bin")
            done = subprocess.run([sys.executable, "-m", "cohort"], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^cohort: there is no .*/bin/cohort: install the wheel[^\n]*\n$")


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wheel = max((ROOT / "dist").glob("cohort-*.whl"), key=lambda p: p.stat().st_mtime)
        cls.folder = tempfile.TemporaryDirectory()
        cls.tree = pathlib.Path(cls.folder.name)
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.tree)
            cls.modes = {i.filename: i.external_attr >> 16 for i in archive.infolist()}
        (cls.info,) = cls.tree.glob("*.dist-info")
        cls.elf = [p for p in cls.tree.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]
        cls.list = json.loads((cls.info / "sboms/cohort.cdx.json").read_text())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def read(self, flag, path):
        return subprocess.run(["readelf", "-W", flag, path], capture_output=True, text=True, check=True).stdout

    def test_it_is_smaller_than_what_pypi_takes(self):
        self.assertLess(self.wheel.stat().st_size, 100 * MEGABYTE)

    def test_what_links_libtorch_lies_in_it_once(self):
        sizes = {p.name: p.stat().st_size for p in (self.tree / "cohort/bin").iterdir()}
        self.assertGreater(sizes.pop("cohort-torch"), 10 * MEGABYTE)
        for name in ("cohort-train", "cohort-evaluate", "cohort-collect", "cohort-serve", "cohort-view", "cohort-export", "cohort-predict"):
            self.assertLess(sizes[name], MEGABYTE // 10, name)

    def test_the_tag_is_of_the_newest_glibc_that_a_file_asks_for(self):
        newest = max((tuple(map(int, v)) for p in self.elf for v in re.findall(r"GLIBC_(\d+)\.(\d+)", self.read("-V", p))))
        self.assertEqual(self.wheel.name.removesuffix(".whl").split("-")[2:],
                         ["cp311", "abi3", "manylinux_%d_%d_x86_64" % newest])
        self.assertIn(f"Tag: cp311-abi3-manylinux_{newest[0]}_{newest[1]}_x86_64\n", (self.info / "WHEEL").read_text())
        self.assertEqual((self.tree / "cohort/share/cohort/wheel/glibc").read_text(), "%d.%d\n" % newest)

    def test_ubuntu_22_04_and_24_04_have_what_is_asked_of_the_c_libraries(self):
        # By what is written in the files: nothing was run there. Ubuntu 22.04: glibc 2.35, libstdc++ of GCC 12 (GLIBCXX_3.4.30,
        # CXXABI_1.3.13, GCC_12.0.0), zlib 1.2.11 (ZLIB_1.2.9); 24.04 and Debian 12 have later ones.
        newest = {"GLIBC": (2, 35), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0), "ZLIB": (1, 2, 9)}
        inside = {p.name for p in self.elf}
        for path in self.elf:
            library = ""
            for line in self.read("-V", path).splitlines():
                if found := re.search(r"Version: 1\s+File: (\S+)", line):
                    library = found[1]
                found = re.search(r"Name: ([A-Z]+)_([0-9.]+)\s", line)
                if found and library and SYSTEM.fullmatch(library) and library not in inside and "Flags:" in line:
                    self.assertIn(found[1], newest, f"{path}: {line}")
                    self.assertLessEqual(tuple(map(int, found[2].split("."))), newest[found[1]], f"{path}: {library}: {line}")

    def test_libraries_are_looked_for_inside_of_site_packages_only(self):
        for path in self.elf:
            folders = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", self.read("-d", path))
            for folder in ":".join(folders).split(":") if folders else []:
                self.assertTrue(folder == "$ORIGIN" or folder.startswith("$ORIGIN/"), f"{path}: {folder}")
                steps = folder.split("/")
                self.assertLessEqual(steps.count(".."), len(path.relative_to(self.tree).parts) - 1, f"{path}: {folder}")
        for program in (self.tree / "cohort/bin").iterdir():
            shown = self.read("-d", program)
            for wheel in ("torch/lib", "mujoco"):
                self.assertIn(f"$ORIGIN/../../{wheel}", shown, program)

    def test_every_needed_library_is_inside_or_comes_with_the_system_or_another_wheel(self):
        inside = {p.name for p in self.elf}
        for path in self.elf:
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", self.read("-d", path)):
                self.assertTrue(name in inside or SYSTEM.fullmatch(name) or OTHER_WHEELS.fullmatch(name), f"{path}: {name}")

    def test_nothing_inside_is_under_the_gpl_and_each_part_has_its_licence(self):
        self.assertEqual((self.list["bomFormat"], self.list["specVersion"]), ("CycloneDX", "1.6"))
        self.assertGreater(len(self.list["components"]), 10)
        for part in self.list["components"]:
            self.assertTrue(part["version"], part)
            for licence in part["licenses"]:
                self.assertIsNone(GPL.search(licence["expression"]), part)
            text = self.info / "licenses/parts" / (re.sub(r"[^A-Za-z0-9.]+", "_", part["name"]).strip("_") + ".txt")
            self.assertGreater(len(text.read_text()), 200, text)
        for name in (p.name for p in self.elf):
            self.assertIsNone(re.match(r"lib(av|sw|x26|post|curl|gnutls|ssl)", name), name)

    def test_the_list_names_every_library_that_was_copied_in_by_its_sum(self):
        listed = {v["value"]: p["hashes"][0]["content"] for p in self.list["components"] for v in p.get("properties", [])}
        copied = {p.relative_to(self.tree).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
                  for p in (self.tree / "cohort.libs").iterdir() if not p.name.startswith("libcohort_no_curl")}
        self.assertEqual(listed, copied)

    def test_the_record_has_every_file_and_programs_may_be_run(self):
        rows = {row[0]: row for row in csv.reader((self.info / "RECORD").read_text().splitlines())}
        files = {p.relative_to(self.tree).as_posix() for p in self.tree.rglob("*") if p.is_file()}
        self.assertEqual(set(rows), files)
        for name, digest, size in rows.values():
            if name.endswith("/RECORD"):
                continue
            data = (self.tree / name).read_bytes()
            sum_ = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            self.assertEqual((digest, int(size)), (f"sha256={sum_}", len(data)), name)
            if name.startswith("cohort/bin/"):
                self.assertEqual(self.modes[name] & 0o111, 0o111, name)

    def test_models_headers_package_and_examples_are_inside(self):
        for name in ("cohort/_core.abi3.so", "cohort/_core.pyi", "cohort/_policy.abi3.so", "cohort/py.typed", "cohort/bin/cohort-train", "cohort/bin/cohort-torch", "cohort/include/cohort/sim/host/scene.h", "cohort/lib/cmake/cohort/cohort-config.cmake",
                     "cohort/share/cohort/gymnasium/ant.xml", "cohort/share/cohort/gymnasium/LICENSE",
                     "cohort/share/cohort/examples/policies/pick_and_place.json"):
            self.assertTrue((self.tree / name).is_file(), name)


class OldProcessors(unittest.TestCase):
    MODEL = """<mujoco><worldbody><geom type="plane" size="2 2 .1"/><light pos="0 0 3"/>
      <body pos="0 0 .4"><freejoint/><geom type="box" size=".1 .2 .1" euler="20 30 0"/></body></worldbody></mujoco>"""

    def simulate(self, folder, processor):
        words = [pathlib.Path(os.environ["COHORT_BIN"]) / "cohort", "simulate", "box.xml", "--n-envs", "3", "--steps", "30",
                 "--picture", "last.png"]
        if processor:
            words = [shutil.which("qemu-x86_64"), "-cpu", processor, *words]
        pathlib.Path(folder, "last.png").unlink(missing_ok=True)
        pathlib.Path(folder, "box.xml").write_text(self.MODEL)
        return subprocess.run(words, cwd=folder, capture_output=True, text=True)

    def test_without_avx2_the_same_picture_is_made_and_without_avx_a_line_says_what_needs_it(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, "last.png")
            self.assertEqual(self.simulate(folder, "").returncode, 0)
            here = picture.read_bytes()
            done = self.simulate(folder, "SandyBridge")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(picture.read_bytes(), here)
            done = self.simulate(folder, "Nehalem")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("MuJoCo's library is compiled for processors with AVX", done.stderr)


if __name__ == "__main__":
    chosen = sys.argv[2]
    if chosen == "OldProcessors" and shutil.which("qemu-x86_64") is None:
        print("Skipped\nno qemu-x86_64 (Debian: qemu-user)")
        sys.exit(77)
    if chosen == "Built" and not list((ROOT / "dist").glob("cohort-*.whl")):
        print("Skipped\nno wheel in dist: scripts/wheel builds one")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], chosen])
