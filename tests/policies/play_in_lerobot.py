#!/usr/bin/env python3
"""Plays a policy's folder in lerobot's own evaluation loop, on a task of this project through gymnasium.

    play_in_lerobot.py FOLDER TASK [EPISODES [SIZE]]

FOLDER is what `cohort convert-weights RUN FOLDER --to lerobot` writes; the policy, its processors and eval_policy are lerobot's
(0.4.4 and 0.6.1), the environments cohort.lerobot's (the wheel, or build/release/python on PYTHONPATH), with pictures of SIZE px
from the cameras that the folder names. Prints a line of JSON: successes, episodes and the mean sum of rewards.
"""
import json
import sys

from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.factory import get_policy_class, make_pre_post_processors
from lerobot.processor import PolicyProcessorPipeline
from lerobot.scripts.lerobot_eval import eval_policy

import cohort.lerobot


def main():
    folder, task = sys.argv[1:3]
    episodes, size = int((sys.argv[3:] or ["2"])[0]), int((sys.argv[4:] or ["64"])[0])
    config = PreTrainedConfig.from_pretrained(folder)
    config.device = "cpu"
    policy = get_policy_class(config.type).from_pretrained(folder, config=config)
    policy.to("cpu").eval()
    # A policy that learnt from the field observation/front_image calls the camera front so.
    features = [name.removeprefix("observation.images.") for name in config.image_features]
    cameras = [name.removesuffix("_image") for name in features]
    renamed = {f"observation.images.{c}": f"observation.images.{f}" for c, f in zip(cameras, features) if c != f}
    before, after = make_pre_post_processors(
        config, pretrained_path=folder,
        preprocessor_overrides={"device_processor": {"device": "cpu"}, "rename_observations_processor": {"rename_map": renamed}})
    envs = cohort.lerobot.LeRobotEnv(task, episodes, cameras=cameras, image_size=(size, size), threads=1)
    around = PolicyProcessorPipeline(steps=[]), PolicyProcessorPipeline(steps=[])  # as for an environment of lerobot's hub
    result = eval_policy(envs, policy, *around, before, after, n_episodes=episodes, start_seed=0)
    envs.close()
    of_all = result["aggregated"]
    print(json.dumps({"episodes": episodes, "successes": round(of_all["pc_success"] * episodes / 100),
                      "reward": of_all["avg_sum_reward"]}))


if __name__ == "__main__":
    main()
