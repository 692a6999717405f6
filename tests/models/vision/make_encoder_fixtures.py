#!/usr/bin/env python3
"""Writes the fixtures of the observation encoder with the reference packages.

    make_encoder_fixtures.py DROID_POLICY_LEARNING OUT

DROID_POLICY_LEARNING is a checkout of github.com/droid-dataset/droid_policy_learning; OUT is tests/models/fixtures/diffusion.
encoder.json: the observation encoder of the DROID configuration and smaller ones, in evaluation mode (centre crops), in
float64; torchvision's ResNets with group norm; torchvision's colour operations and robomimic's crops, for given factors and
corners. Weights and inputs by the formula of reference.py.
"""
import json
import sys
from collections import OrderedDict
from pathlib import Path

import torch
import torchvision
import torchvision.transforms.functional as TVF

sys.path.insert(0, str(Path(__file__).parents[2] / "policies" / "diffusion"))
import droid  # noqa: E402
import reference  # noqa: E402

CAMERA_1, CAMERA_2 = "camera/image/varied_camera_1_left_image", "camera/image/varied_camera_2_left_image"
HAND = "camera/image/hand_camera_left_image"
RANDOMIZERS = dict(obs_randomizer_class=["ColorRandomizer", "CropRandomizer"])


def rgb(crop, core):
    return dict(core_class="VisualCore", core_kwargs=core, fuser=None,
                obs_randomizer_kwargs=[{}, dict(crop_height=crop[0], crop_width=crop[1], num_crops=1, pos_enc=False)],
                **RANDOMIZERS)


CASES = {
    "droid": dict(shapes={CAMERA_1: [3, 128, 128], CAMERA_2: [3, 128, 128], "robot_state/cartesian_position": [6],
                          "robot_state/gripper_position": [1]}, crop=[116, 116],
                  core=dict(feature_dimension=512, backbone_class="ResNet50Conv", backbone_kwargs=dict(pretrained=False),
                            pool_class=None, pool_kwargs=None, flatten=True)),
    "keypoints": dict(shapes={"robot_state/gripper_position": [1], HAND: [3, 84, 70], CAMERA_1: [3, 84, 70]}, crop=[76, 63],
                      core=dict(feature_dimension=64, backbone_class="ResNet18Conv", backbone_kwargs=dict(pretrained=False),
                                pool_class="SpatialSoftmax", flatten=True,
                                pool_kwargs=dict(num_kp=32, temperature=0.7, learnable_temperature=False,
                                                 output_variance=False, noise_std=0.0))),
    "learned_temperature": dict(shapes={HAND: [3, 64, 64]}, crop=[60, 60],
                                core=dict(feature_dimension=None, backbone_class="ResNet18Conv",
                                          backbone_kwargs=dict(pretrained=False), pool_class="SpatialSoftmax", flatten=True,
                                          pool_kwargs=dict(num_kp=8, temperature=1.0, learnable_temperature=True,
                                                           output_variance=False, noise_std=0.0))),
}


def image(name, *shape):
    return (reference.tensor(name, *shape) + 1) / 2


def encoder_case(module, case):
    import robomimic.models.obs_nets as obs_nets
    import robomimic.utils.obs_utils as obs_utils
    import robomimic.utils.tensor_utils as tensor_utils
    cameras = [k for k, s in case["shapes"].items() if len(s) == 3]
    obs_utils.initialize_obs_utils_with_obs_specs(
        {"obs": {"rgb": cameras, "low_dim": [k for k in case["shapes"] if k not in cameras], "depth": [], "scan": []}})
    low_dim = dict(core_class=None, core_kwargs={}, obs_randomizer_class=None, obs_randomizer_kwargs={})
    encoder = obs_nets.ObservationGroupEncoder(
        observation_group_shapes=OrderedDict(obs=OrderedDict(case["shapes"])),
        encoder_kwargs=dict(rgb=rgb(case["crop"], case["core"]), low_dim=low_dim))
    encoder = module.replace_bn_with_gn(encoder)
    reference.fill(encoder)
    encoder = encoder.double().eval()
    batch, frames = 2, 2
    observations = {k: (image if k in cameras else reference.tensor)(k, batch, frames, *s).double()
                    for k, s in case["shapes"].items()}
    output = tensor_utils.time_distributed({"obs": observations}, encoder, inputs_as_kwargs=True)
    joined = tensor_utils.time_distributed({"obs_dict": observations}, encoder.nets["obs"], inputs_as_kwargs=True)
    (output * reference.tensor("target", *output.shape).double()).sum().backward()
    return {"case": case, "parameters": sum(p.numel() for p in encoder.parameters()), "shape": list(output.shape),
            "joined": {"parameters": sum(p.numel() for p in encoder.nets["obs"].parameters()),
                       "shape": list(joined.shape), "output": reference.output_facts(joined)},
            "output": reference.output_facts(output), "gradients": reference.gradient_facts(encoder.named_parameters())}


def resnet_case(module, depth, batch_norm=False):
    net = getattr(torchvision.models, f"resnet{depth}")()
    if not batch_norm:
        net = module.replace_bn_with_gn(net)
    del net.fc
    reference.fill(net)
    net = net.double()
    x = image("image", 2, 3, 70, 50).double()
    for child in list(net.children())[:-1]:
        x = child(x)
    (x * reference.tensor("target", *x.shape).double()).sum().backward()
    return {"shape": list(x.shape), "output": reference.output_facts(x),
            "gradients": reference.gradient_facts(net.named_parameters())}


def colour_case():
    images = image("colours", 6, 3, 9, 7)
    images[4, 1], images[4, 2] = images[4, 0], images[4, 0]  # grey
    images[5] = (images[5] > 0.5).float()  # pure colours: ties between channels
    factors = torch.stack([1 + 0.3 * reference.tensor(n, 6) for n in ("brightness", "contrast", "saturation")] +
                          [0.3 * reference.tensor("hue", 6)], 1)
    orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1], [3, 1, 2, 0], [0, 3, 2, 1]]
    operations = [TVF.adjust_brightness, TVF.adjust_contrast, TVF.adjust_saturation, TVF.adjust_hue]
    out = []
    for x, f, order in zip(images, factors.tolist(), orders):
        for operation in order:
            x = operations[operation](x, f[operation])
        out.append(x)
    return {"orders": orders, "output": reference.short(torch.stack(out).flatten().tolist())}


def crop_case():
    import robomimic.utils.obs_utils as obs_utils
    corners = [[0, 0], [3, 1], [2, 4]]
    crops = obs_utils.crop_image_from_indices(image("crops", 3, 2, 8, 9), torch.tensor(corners), 4, 3)
    return {"corners": corners, "output": reference.short(crops.flatten().tolist())}


def main():
    module = droid.package(sys.argv[1])
    torch.set_num_threads(2)
    out = {"cases": {name: encoder_case(module, case) for name, case in CASES.items()},
           "resnets": {str(depth): resnet_case(module, depth) for depth in (18, 34, 50)},
           "batch_norm": resnet_case(module, 18, batch_norm=True), "colours": colour_case(), "crops": crop_case()}
    # The DROID configuration's network after this encoder, and after the joined vector alone.
    actions, frames = 10, 2
    out["unet_parameters"] = {key: sum(p.numel() for p in module.ConditionalUnet1D(actions, frames * width).parameters())
                              for key, width in (("combined", 512), ("joined", 1031))}
    for name, case in out["cases"].items():
        print(name, case["parameters"], case["shape"], case["joined"]["parameters"], case["joined"]["shape"])
    print(out["unet_parameters"])
    Path(sys.argv[2], "encoder.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
