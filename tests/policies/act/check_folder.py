#!/usr/bin/env python3
"""Loads a folder that `cohort convert-weights RUN FOLDER --to lerobot` wrote with lerobot (0.6.1), and prints what it answers.

    check_folder.py FOLDER [COUNT]

For observations that are a function of their number (tests/policies/diffusion/reference.py; COUNT of them, 2): the chunk of
ACTPolicy.from_pretrained between the folder's own processors, one line of JSON each. The test
LeRobotFolder.HoldsAPolicyThatLearntFromSeveralFieldsAndCameras runs it where COHORT_LEROBOT_PYTHON names a Python with lerobot.
"""
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "diffusion"))
import reference  # noqa: E402
from lerobot.policies.act.modeling_act import ACTPolicy  # noqa: E402
from lerobot.policies.factory import make_pre_post_processors  # noqa: E402


def main():
    policy = ACTPolicy.from_pretrained(sys.argv[1])
    policy.to("cpu").eval()
    before, after = make_pre_post_processors(
        policy.config, pretrained_path=sys.argv[1], preprocessor_overrides={"device_processor": {"device": "cpu"}})
    for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 2):
        observation = {}
        for name, feature in policy.config.input_features.items():
            shape = list(feature.shape)
            value = reference.tensor(f"{name} {i}", *shape)
            if len(shape) == 3:
                value = ((value * 127 + 128).to(torch.uint8)).float() / 255
            observation[name] = value
        with torch.no_grad():
            chunk = after(policy.predict_action_chunk(before(observation)))
        print(json.dumps(reference.short(chunk.flatten().tolist())))


if __name__ == "__main__":
    main()
