"""The Python peer of act_step: lerobot's ACT, one training step per line of standard input.

    act_step.py CASE BATCH THREADS

CASE: state (14 numbers and 14 of the environment, actions of 14) or image (one camera of 96 x 96 and 14 numbers). The default
network, its loss, clipping at 10 and torch.optim.AdamW as lerobot-train has them, without its data loader. Answers "ready
PARAMETERS TORCH_VERSION", then for each line with "SECONDS LOSS"; on the end of input it prints "peak KIBIBYTES".
"""
import os
import resource
import sys
import time

import torch


def main():
    case, batch, threads = sys.argv[1], *map(int, sys.argv[2:4])
    # Standard output belongs to the benchmark.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    inputs = {"observation.state": PolicyFeature(FeatureType.STATE, (14,))}
    observations = {"observation.state": torch.randn(batch, 14)}
    if case == "state":
        inputs["observation.environment_state"] = PolicyFeature(FeatureType.ENV, (14,))
        observations["observation.environment_state"] = torch.randn(batch, 14)
    else:
        inputs["observation.images.top"] = PolicyFeature(FeatureType.VISUAL, (3, 96, 96))
        observations["observation.images.top"] = torch.rand(batch, 3, 96, 96)
    config = ACTConfig(input_features=inputs, output_features={"action": PolicyFeature(FeatureType.ACTION, (14,))},
                       pretrained_backbone_weights=None, device="cpu")
    policy = ACTPolicy(config)
    policy.train()
    observations["action"] = torch.randn(batch, 100, 14)
    observations["action_is_pad"] = torch.zeros(batch, 100, dtype=torch.bool)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5, weight_decay=1e-4)

    def step():
        loss, _ = policy.forward(observations)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    print("ready", sum(p.numel() for p in policy.parameters()), torch.__version__, file=answers, flush=True)
    for _ in sys.stdin:
        start = time.process_time()
        value = step()
        print(time.process_time() - start, value, file=answers, flush=True)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=answers, flush=True)


if __name__ == "__main__":
    main()
