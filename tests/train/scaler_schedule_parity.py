"""torch.amp.GradScaler and torch's schedulers over a few steps; prints JSON for scaler_schedule_parity_test.cpp."""
import json
import math

import torch

OVERFLOWS = {0, 1, 7, 8, 15}
STEPS = 24


def scaler_run():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.tensor([0.5, -1.5, 2.0]))
    optimizer = torch.optim.AdamW([weight], lr=1e-2, fused=True)
    # A scale that is no power of two tells a reciprocal in double from one in float.
    scaler = torch.amp.GradScaler("cpu", init_scale=49999.0, growth_interval=3)
    trace = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x = torch.tensor([1.0 + step, 0.25, -0.5 * step])
        loss = (weight * x).pow(2).sum()
        scaler.scale(loss).backward()
        if step in OVERFLOWS:
            weight.grad[1] = math.inf if step % 2 else math.nan
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        state = scaler.state_dict()
        trace.append({"scale": state["scale"], "tracker": state["_growth_tracker"], "weight": weight.detach().tolist()})
    return trace


def schedule_run():
    def rates(make, steps):
        parameter = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        scheduler = make(optimizer)
        result = []
        for _ in range(steps):
            result.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step()
        return result

    def warm_cosine(step):  # transformers.get_cosine_schedule_with_warmup
        if step < 5:
            return step / 5
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * (step - 5) / 25)))

    return {
        "cosine": rates(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=30, eta_min=0.02), 30),
        "linear": rates(lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.2, total_iters=30), 31),
        "warm_cosine": rates(lambda o: torch.optim.lr_scheduler.LambdaLR(o, warm_cosine), 30),
    }


print(json.dumps({"scaler": scaler_run(), "schedules": schedule_run()}))
