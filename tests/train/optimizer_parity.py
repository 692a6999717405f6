"""Steps of torch.optim with fused=True, for tests/train/optimizer_parity_test.cpp.

write:  parameters, gradients and results after every step, one safetensors file per case, and the optimizer's state.
resume: reads parameters and the optimizer state that we saved, makes the remaining steps, and compares with ours.
"""
import sys

import torch
from safetensors.torch import load_file, save_file

SHAPES = {"a.weight": (17, 5), "a.bias": (17,), "b.weight": (3, 2, 4), "late": (6,)}
STEPS = 6
CASES = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=3e-3, fused=True),
    "adamw_decay": lambda p: torch.optim.AdamW(p, lr=3e-3, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.3, fused=True),
    "adamw_amsgrad": lambda p: torch.optim.AdamW(p, lr=3e-3, amsgrad=True, fused=True),
    "adam": lambda p: torch.optim.Adam(p, lr=3e-3, fused=True),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=3e-3, weight_decay=0.3, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=3e-2, fused=True),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=3e-2, momentum=0.9, weight_decay=0.1, fused=True),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=3e-2, momentum=0.9, nesterov=True, fused=True),
}


def inputs(seed):
    generator = torch.Generator().manual_seed(seed)
    start = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
    # "late" has no gradient in the first two steps of the Adam kinds, as an unused branch of a model has none.
    gradients = [{name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()} for _ in range(STEPS)]
    return start, gradients


def has_gradient(case, name, step):
    return name != "late" or case.startswith("sgd") or step >= 2


def learning_rate(step, base):
    return base * (1.0 - 0.1 * step)


def run(case, parameters, gradients, first, last, optimizer):
    base = 3e-2 if case.startswith("sgd") else 3e-3
    for step in range(first, last):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, base)
        for name, parameter in parameters.items():
            parameter.grad = gradients[step][name].clone() if has_gradient(case, name, step) else None
        optimizer.step()
        yield step, {name: parameter.detach().clone() for name, parameter in parameters.items()}


def flat_state(parameters, optimizer):
    state = {}
    for name, parameter in parameters.items():
        for key, value in optimizer.state[parameter].items():
            if torch.is_tensor(value):
                state[f"state.{name}.{key}"] = value
    return state


def main():
    command, folder = sys.argv[1:]
    for number, (case, make) in enumerate(CASES.items()):
        start, gradients = inputs(number)
        if command == "write":
            out = {f"start.{name}": tensor.clone() for name, tensor in start.items()}
            parameters = {name: torch.nn.Parameter(tensor.clone()) for name, tensor in start.items()}
            optimizer = make(list(parameters.values()))
            for step, values in run(case, parameters, gradients, 0, STEPS, optimizer):
                out.update({f"after{step}.{name}": tensor for name, tensor in values.items()})
                out.update({f"gradient{step}.{name}": gradients[step][name] for name in SHAPES if has_gradient(case, name, step)})
            out.update(flat_state(parameters, optimizer))
            save_file(out, f"{folder}/{case}.safetensors")
            continue
        # resume: our state after three steps, then PyTorch's optimizer goes on.
        ours = load_file(f"{folder}/{case}.ours.safetensors")
        parameters = {name: torch.nn.Parameter(ours[f"after2.{name}"].clone()) for name in SHAPES}
        optimizer = make(list(parameters.values()))
        for name, parameter in parameters.items():
            prefix = f"state.{name}."
            state = {key[len(prefix):]: value for key, value in ours.items() if key.startswith(prefix)}
            if state:
                optimizer.state[parameter] = state
        for step, values in run(case, parameters, gradients, 3, STEPS, optimizer):
            pass
        for name in SHAPES:
            assert torch.equal(values[name], ours[f"after{STEPS - 1}.{name}"]), (case, name)


main()
