"""The Python peer of policy_step: the DROID package's networks under PyTorch, one training step per line of standard input.

    policy_step.py DROID_POLICY_LEARNING CASE BATCH DRAWS THREADS

CASE: state (5 numbers, actions of 2: Push-T) or image (the DROID configuration: two cameras of 128 pixels, colour jitter,
crops of 116, 7 numbers, actions of 10). The package's encoder and U-Net at their default sizes, its loss with DRAWS noise
draws per sample, torch.optim.Adam. Its moving average and its logging of gradient norms are left out. Answers "ready
PARAMETERS TORCH_VERSION", then for each line with "SECONDS LOSS"; on the end of input it prints "peak KIBIBYTES".
"""
import os
import resource
import sys
import time
from collections import OrderedDict
from pathlib import Path

import torch
import torch.nn.functional as F

CAMERA_1, CAMERA_2 = "camera/image/varied_camera_1_left_image", "camera/image/varied_camera_2_left_image"
CASES = {
    "state": ({"state": [5]}, 2),
    "image": ({"robot_state/cartesian_position": [6], "robot_state/gripper_position": [1], CAMERA_1: [3, 128, 128],
               CAMERA_2: [3, 128, 128]}, 10),
}


def algorithm(module, shapes, width):
    import robomimic.utils.obs_utils as obs_utils
    from robomimic.config import config_factory
    cameras = [k for k, s in shapes.items() if len(s) == 3]
    config = config_factory("diffusion_policy")
    with config.unlocked():
        config.observation.modalities.obs.low_dim = [k for k in shapes if k not in cameras]
        config.observation.modalities.obs.rgb = cameras
        rgb = config.observation.encoder.rgb
        rgb.core_class = "VisualCore"
        rgb.core_kwargs = dict(feature_dimension=512, backbone_class="ResNet50Conv", backbone_kwargs=dict(pretrained=False),
                               pool_class=None, pool_kwargs=None, flatten=True)
        rgb.obs_randomizer_class = ["ColorRandomizer", "CropRandomizer"]
        rgb.obs_randomizer_kwargs = [{}, dict(crop_height=116, crop_width=116, num_crops=1, pos_enc=False)]
        config.algo.ddpm.enabled, config.algo.ddim.enabled, config.algo.ema.enabled = False, True, False
    obs_utils.initialize_obs_utils_with_config(config)
    return module.DiffusionPolicyUNet(algo_config=config.algo, obs_config=config.observation, global_config=config,
                                      obs_key_shapes=OrderedDict(shapes), ac_dim=width, device=torch.device("cpu"))


def main():
    checkout, case, batch, draws, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    # The package prints while it is imported; standard output belongs to the benchmark.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "models" / "diffusion_policy"))
    import droid
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    shapes, width = CASES[case]
    policy = algorithm(droid.package(checkout), shapes, width)
    policy.set_train()
    from robomimic.utils.tensor_utils import time_distributed
    observations = {k: (torch.rand if len(s) == 3 else torch.randn)(batch, 2, *s) for k, s in shapes.items()}
    actions = torch.rand(batch, 16, width) * 2 - 1
    encoder, net = policy.nets["policy"]["obs_encoder"], policy.nets["policy"]["noise_pred_net"]
    schedule = policy.noise_scheduler
    optimizer = torch.optim.Adam(policy.nets.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad()
        condition = time_distributed({"obs": observations}, encoder, inputs_as_kwargs=True).flatten(start_dim=1)
        noise = torch.randn(draws, *actions.shape)
        timesteps = torch.randint(0, schedule.config.num_train_timesteps, (batch,))
        noisy = torch.cat([schedule.add_noise(actions, n, timesteps) for n in noise])
        predicted = net(noisy, timesteps.repeat(draws), global_cond=condition.repeat(draws, 1))
        loss = F.mse_loss(predicted, noise.flatten(0, 1))
        loss.backward()
        optimizer.step()
        return loss.item()

    print("ready", sum(p.numel() for p in policy.nets.parameters()), torch.__version__, file=answers, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        value = step()
        print(time.perf_counter() - start, value, file=answers, flush=True)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=answers, flush=True)


if __name__ == "__main__":
    main()
