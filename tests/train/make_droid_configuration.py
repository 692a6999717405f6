#!/usr/bin/env python3
"""Writes fixtures/droid_generated.json with the DROID package's own generator of configurations.

    make_droid_configuration.py DROID_POLICY_LEARNING

DROID_POLICY_LEARNING is a checkout of github.com/droid-dataset/droid_policy_learning. Its script
config_gen/droid_runs_language_conditioned_rlds.py runs unchanged; only the checkout's place is taken out of the file.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    out = Path(__file__).parent / "fixtures" / "droid_generated.json"
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder, "package")
        shutil.copytree(sys.argv[1], checkout)  # it writes into itself
        os.mkdir(Path(folder, "tmp"))           # and into ~/tmp
        environment = dict(os.environ, PYTHONPATH=str(checkout), HOME=folder)
        subprocess.run([sys.executable, "robomimic/scripts/config_gen/droid_runs_language_conditioned_rlds.py",
                        "--wandb_proj_name", "debug"], cwd=checkout, env=environment, check=True)
        generated, = checkout.glob("tmp/autogen_configs/**/*.json")
        out.write_text(generated.read_text().replace(str(checkout) + "/", "") + "\n")


if __name__ == "__main__":
    main()
