"""The files under deploy/ are what their readers (Kubernetes, Slurm, Docker, cohort launch) understand.

  check_deploy.py FOLDER_OF_THE_REPOSITORY PATH_OF_COHORT
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml
from kubeflow_trainer_api import models

ROOT, COHORT = pathlib.Path(sys.argv[1]), sys.argv[2]
DEPLOY = ROOT / "deploy"


def without_empty(value):
    """What a model adds by itself (fields that are not set) does not count."""
    if isinstance(value, dict):
        return {k: without_empty(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_empty(v) for v in value]
    return value


def as_text(value):
    """Quantities may be written as numbers."""
    if isinstance(value, dict):
        return {k: as_text(v) for k, v in value.items()}
    if isinstance(value, list):
        return [as_text(v) for v in value]
    return value if isinstance(value, bool) else str(value)


class Deploy(unittest.TestCase):
    def read_by(self, file, model):
        manifest = yaml.safe_load((DEPLOY / file).read_text())
        back = without_empty(model.from_dict(manifest).to_dict())
        # A field that the model does not know would have been dropped on the way.
        self.assertEqual(as_text(back), as_text(manifest), f"{file}: not all of it is understood")
        return manifest

    def check_flags(self, words):
        """Flags of `cohort launch` that it really has, and a subcommand behind them."""
        help_text = subprocess.run([COHORT, "launch", "--help"], capture_output=True, text=True, check=True).stdout
        flags = [w.split("=")[0] for w in words[: words.index("train")]]
        for flag in flags:
            self.assertRegex(help_text, rf"(?<![\w-]){re.escape(flag)}(?![\w-])")

    def test_the_train_job_is_one_of_kubeflow_trainer(self):
        job = self.read_by("trainjob.yaml", models.TrainerV1alpha1TrainJob)
        self.assertEqual((job["apiVersion"], job["kind"]), ("trainer.kubeflow.org/v1alpha1", "TrainJob"))
        trainer = job["spec"]["trainer"]
        self.assertEqual(trainer["command"], ["cohort", "launch"])
        self.check_flags(trainer["args"])

    def test_the_job_set_is_one_and_its_nodes_find_node_0(self):
        job = self.read_by("jobset.yaml", models.JobsetV1alpha2JobSet)
        self.assertEqual((job["apiVersion"], job["kind"]), ("jobset.x-k8s.io/v1alpha2", "JobSet"))
        replicated = job["spec"]["replicatedJobs"][0]
        spec = replicated["template"]["spec"]
        pod = spec["template"]["spec"]
        args = pod["containers"][0]["args"]
        self.check_flags(args)
        given = dict(a[2:].split("=", 1) for a in args if a.startswith("--"))
        self.assertEqual(int(given["nnodes"]), spec["parallelism"])
        self.assertEqual(spec["parallelism"], spec["completions"])
        # JobSet's names of pods: <jobset>-<replicated job>-<job index>-<pod index>.<subdomain>
        name = job["metadata"]["name"]
        self.assertEqual(given["master-addr"], f"{name}-{replicated['name']}-0-0.{name}")
        gpus = pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
        self.assertEqual(int(given["nproc-per-node"]), int(gpus))
        self.assertLess(int(given["grace-period"]), pod["terminationGracePeriodSeconds"])

    def test_the_slurm_script_is_sound_and_asks_for_what_sbatch_knows(self):
        script = DEPLOY / "slurm.sbatch"
        subprocess.run(["bash", "-n", script], check=True)
        options = re.findall(r"^#SBATCH --([\w-]+)", script.read_text(), re.MULTILINE)
        self.assertIn("requeue", options)
        self.assertIn("signal", options)
        usage = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
        self.assertEqual(usage.returncode, 2)
        if not shutil.which("sbatch"):
            return  # Debian: slurm-client
        # sbatch reads a configuration before it says anything.
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
            conf.write("ClusterName=test\nSlurmctldHost=localhost\nNodeName=localhost\nPartitionName=p Nodes=localhost\n")
            conf.flush()
            # There is no cluster to ask; what sbatch does not know it refuses before it would.
            said = subprocess.run(["sbatch", "--test-only", script, "regressor"], capture_output=True, text=True,
                                  check=False, timeout=300,
                                  env={"SLURM_CONF": conf.name, "PATH": "/usr/bin:/bin"}).stderr
        self.assertNotIn("unrecognized option", said)
        self.assertNotIn("Invalid --", said)

    def test_the_dockerfile_copies_and_runs_what_is_there(self):
        text = (DEPLOY / "Dockerfile").read_text()
        text = text.replace("\\\n", " ")
        instructions = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
        self.assertEqual(instructions[0][0], "FROM")
        for word, rest in instructions:
            self.assertIn(word, {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "ENTRYPOINT"})
            if word == "RUN" and rest.split()[0] not in {"apt-get", "python3"}:
                self.assertTrue((ROOT / rest.split()[0]).exists(), rest)
            if word == "COPY" and not rest.startswith("--from"):
                self.assertTrue((ROOT / rest.split()[0]).exists(), rest)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
