#!/usr/bin/env python3
"""Prints the words of `lerobot-train --policy.type=act`, a line each, as the data classes of an unpacked lerobot wheel have them.

    list_lerobot_words.py LEROBOT_FOLDER > tests/policies/act/fixtures/lerobot_train_words.txt     # of lerobot 0.6.1
"""
import ast
import sys
from pathlib import Path

# The parts of TrainPipelineConfig that are data classes themselves. Of the others the part's own name stands for all that is in it.
PARTS = {"dataset": [("configs/default.py", "DatasetConfig")],
         "policy": [("configs/policies.py", "PreTrainedConfig"), ("policies/act/configuration_act.py", "ACTConfig")],
         "optimizer": [("optim/optimizers.py", "OptimizerConfig"), ("optim/optimizers.py", "AdamWConfig")],
         "wandb": [("configs/default.py", "WandBConfig")]}


def fields(path, name):
    for node in ast.walk(ast.parse(Path(sys.argv[1], path).read_text())):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return [b.target.id for b in node.body if isinstance(b, ast.AnnAssign) and not b.target.id.startswith("_")]
    sys.exit(f"{path} has no class {name}")


def main():
    words = {"policy.type", "policy.path", "config_path", "optimizer.type"}
    for name in fields("configs/train.py", "TrainPipelineConfig"):
        inside = [f"{name}.{field}" for path, part in PARTS.get(name, []) for field in fields(path, part)]
        words.update(inside or [name])
    print("\n".join(sorted(words)))


if __name__ == "__main__":
    main()
