"""The runner of the guides must find every kind of mistake: a test that cannot fail would prove nothing."""
import os
import subprocess
import sys
import tempfile
import unittest

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_guide.py")


def fenced(words: str, text: str) -> str:
    return f"```{words}\n{text}\n```\n"


class RunGuide(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cohort-guide-test-")
        self.addCleanup(self.folder.cleanup)

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def call(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, RUNNER, *arguments], text=True, capture_output=True,
                              env={**os.environ, "COHORT_BIN": self.folder.name})

    def run_guide(self, text: str) -> int:
        return self.call("run", self.write("guide.md", text)).returncode

    def test_blocks_share_one_folder_and_the_quoted_output_is_found(self):
        self.assertEqual(self.run_guide(fenced("sh", "echo a > file") + fenced("sh", "cat file; echo b c d; echo e") +
                                        fenced("text", "a\nb ... d\n...\ne")), 0)

    def test_a_block_that_fails_is_a_failure(self):
        self.assertEqual(self.run_guide(fenced("sh", "true\nfalse\ntrue")), 1)

    def test_a_block_marked_fails_must_fail_and_say_what_is_quoted(self):
        self.assertEqual(self.run_guide(fenced("sh fails", "echo 'cannot open x'; exit 1") + fenced("text", "cannot open x")), 0)
        self.assertEqual(self.run_guide(fenced("sh fails", "echo 'cannot open x'") + fenced("text", "cannot open x")), 1)
        self.assertEqual(self.run_guide(fenced("sh fails", "echo other; exit 1") + fenced("text", "cannot open x")), 1)
        self.assertEqual(self.run_guide(fenced("sh fails", "exit 1")), 1)

    def test_output_that_differs_from_the_quotation_is_a_failure(self):
        self.assertEqual(self.run_guide(fenced("sh", "echo a; echo b; echo c") + fenced("text", "a\nc")), 1)
        self.assertEqual(self.run_guide(fenced("sh", "echo a; echo b") + fenced("text", "b\n...\na")), 1)

    def test_blocks_marked_not_run_are_left_alone(self):
        self.assertEqual(self.run_guide(fenced("sh", "true") + fenced("sh not-run", "false")), 0)

    def test_a_guide_without_commands_or_with_an_unknown_block_is_a_failure(self):
        self.assertEqual(self.run_guide("nothing to run"), 1)
        self.assertEqual(self.run_guide(fenced("sh", "true") + fenced("sh notrun", "false")), 1)
        self.assertEqual(self.run_guide("```sh\ntrue\n"), 1)

    def project(self, script: str, not_run: str = "") -> subprocess.CompletedProcess:
        """`parse` of a project of one guide and one script."""
        with tempfile.TemporaryDirectory() as root:
            for folder in ("docs/guide", "scripts", "examples", "deploy", "tests/docs"):
                os.makedirs(os.path.join(root, folder))
            for name, text in (("README.md", fenced("sh", "true")), ("docs/guide/one.md", fenced("sh", "echo '(x'") + not_run),
                               ("scripts/run", "#!/usr/bin/env bash\n" + script)):
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            return self.call("parse", root)

    def test_a_script_that_bash_cannot_read_or_that_loses_its_quotes_is_found(self):
        lost = self.project('FIELDS=${FIELDS-data.actions=["a"] x}\n')
        self.assertIn("takes the double quotes", lost.stdout)
        self.assertIn("scripts/run:2", lost.stdout)
        self.assertIn("unexpected", self.project("if true; then\n").stdout)
        self.assertIn("one.md: guides_not_run.txt does not say why",
                      self.project("true\n", fenced("sh not-run", "nvidia-smi")).stdout)

    def test_guides_are_compared_but_for_comments(self):
        one = self.write("one.md", fenced("sh", "cohort devices  # the devices") + fenced("text", "cpu"))
        same = self.write("same.md", fenced("sh", "cohort devices  # 设备") + fenced("text", "cpu"))
        other = self.write("other.md", fenced("sh", "cohort devices --json") + fenced("text", "cpu"))
        shorter = self.write("shorter.md", fenced("sh", "cohort devices"))
        self.assertEqual(self.call("compare", one, same).returncode, 0)
        self.assertEqual(self.call("compare", one, other).returncode, 1)
        self.assertEqual(self.call("compare", one, shorter).returncode, 1)

    def test_quoted_code_must_stand_in_the_files(self):
        source = self.write("a.cpp", "int main() {\n  return 0;\n}\n")
        good = self.write("good.md", fenced("cpp", "return 0;\n..."))
        bad = self.write("bad.md", fenced("cpp", "return 1;"))
        self.assertEqual(self.call("quotes", good, source).returncode, 0)
        self.assertEqual(self.call("quotes", bad, source).returncode, 1)


if __name__ == "__main__":
    unittest.main()
