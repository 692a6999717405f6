"""The checks of the texts must find every kind of mistake."""
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_texts import check_evidence, check_names, check_pairs  # noqa: E402


class Texts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="cohort-texts-test-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("src/cli/launch.cpp", 'const Register kLaunch({"launch", "...", run, ""});\n'
                                         'app.add_option("--out", out); option("nproc-per-node", n);')
        self.write("src/cli/programs.def", 'PROGRAM("data", "cohort-data", "", "...")\n')
        self.write("src/cli/data.cpp", 'app.add_subcommand("inspect", "");')
        self.write("src/train/jobs/policy_job.cpp", "")
        self.write("src/sim/scene.h", "")
        self.write("tests/sim/scene_test.cpp", "TEST(Scene, StepsAlone) {}\nTEST_P(\n    Bits, AreEqual) {}\n")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def names(self, text: str) -> int:
        self.write("README.md", text)
        self.write("CONTRIBUTING.md", "`cohort launch`, `cohort data`")
        return len(check_names(self.root))

    def test_what_exists_may_be_named(self):
        self.write("docs/guide/page.md", "[back](../../README.md#start), ``")
        self.assertEqual(self.names("[a page](docs/guide/page.md), `src/sim/scene.h`, `sim/scene.h`, `scene.h`, `src/*/scene.h`, "
                                    "`tests/sim/{scene_test}.cpp`, `cohort launch --nproc_per_node=2 data inspect --out x`, "
                                    "`Scene.StepsAlone`, `Scene.*`, `Models/Bits.Are...`, `cohort`, `w.mass`, "
                                    "[elsewhere](https://example.org/docs/none.md)"), 0)

    def test_paths_that_do_not_exist_are_found(self):
        for text in ("`docs/none.md`", "`sim/none.h`", "see `src/sim/*.cu`", "[a](docs/none.md)", "`src/sim/{scene,none}.h`",
                     "```sh\nscripts/none --now\n```", "`none.h`", "`docs/\nnone.md`", "`scene.h` in `src/cli/`",
                     "`scene.h`, `launch.cpp` in\n`src/cli/`"):
            self.assertEqual(self.names(text), 1, text)

    def test_subcommands_and_flags_that_do_not_exist_are_found(self):
        for text in ("`cohort lunch`", "`cohort data inspekt x`", "`cohort data --input=x`",
                     "```sh\ncohort launch --nproc_per_node=2 trian\n```\n`cohort trian x`",
                     "```sh\ncohort data inspect \\\n    --nothing\n```"):
            self.assertEqual(self.names(text), 1, text)

    def test_pages_and_subcommands_that_nothing_leads_to_are_found(self):
        self.write("docs/guide/page.md", "text")
        self.write("docs/README.md", "[page](guide/page.md)")
        self.assertEqual(self.names(""), 0)
        self.write("docs/README.md", "page")
        self.assertEqual(self.names(""), 1)
        self.write("src/cli/demo.cpp", 'const Register kDemo({"demo", "", run, ""});')
        self.assertEqual(self.names("[page](docs/guide/page.md)"), 2)

    def test_parts_that_the_page_on_them_does_not_list_are_found(self):
        self.write("docs/design/rules_and_parts.md", "| nlohmann/json, FFmpeg's libav* | Zip |")
        self.write("cmake/Parts.cmake", "find_package(nlohmann_json 3)\nfind_package(Threads)\npkg_check_modules(COHORT_LIBAV QUIET)\n")
        self.assertEqual(self.names(""), 0)
        self.write("cmake/Parts.cmake", "  find_path(COHORT_HDF5_INCLUDE hdf5.h)\n  find_library(COHORT_HDF5_LIBRARY hdf5)\n")
        self.assertEqual(self.names(""), 1)

    def test_tests_that_do_not_exist_are_found(self):
        for text in ("`Scene.StepsTogether`", "`Scene.Alone*`", "`None.*`"):
            self.assertEqual(self.names(text), 1, text)

    def test_pages_of_both_languages_must_exist_and_name_the_same(self):
        self.write("README.md", "`src/sim/scene.h`\n```sh\nls\n```\n[c](README.zh.md)")
        self.write("README.zh.md", "`src/sim/scene.h`\n```sh\nls\n```\n[e](README.md)")
        self.assertEqual(check_pairs(self.root), [])
        self.write("docs/guide/a.md", "[b](b.md) `docs/guide/b.md`")
        self.assertEqual(len(check_pairs(self.root)), 1)
        self.write("docs/zh/a.md", "[b](b.md)")
        self.assertEqual(check_pairs(self.root), [])
        self.write("docs/zh/a.md", "b")
        self.assertEqual(len(check_pairs(self.root)), 1)
        self.write("docs/zh/a.md", "[b](b.md)\n```sh\ntrue\n```")
        self.assertEqual(len(check_pairs(self.root)), 1)

    def test_rows_of_evidence_are_short_and_whole(self):
        head = "| claim | command | figure | machine, date |\n| --- | --- | --- | --- |\n"
        row = "| a | `b \\| c` | 1 | A, 2026-11-22 |\n"
        self.assertEqual(check_evidence(self.write("e.md", head + 100 * row)), [])
        self.assertEqual(len(check_evidence(self.write("e.md", head + 101 * row))), 1)
        self.assertEqual(len(check_evidence(self.write("e.md", head))), 1)
        for wrong in (row.replace("| a |", "| " + "a" * 400 + " |"), row.replace(", 2026-11-22", ""), row.replace("| 1 ", ""),
                      row.replace(" 1 ", "  ")):
            self.assertEqual(len(check_evidence(self.write("e.md", head + wrong))), 1, wrong)


if __name__ == "__main__":
    unittest.main()
