"""Imports the DROID policy-learning package (a robomimic fork) without what its import asks for beside: it loads a language
model onto a GPU, and imports simulators and loggers that the networks do not need."""
import importlib.abc
import importlib.machinery
import sys
import types
from unittest import mock

import torch
import transformers

ABSENT = ("tensorflow", "robosuite", "robocasa", "mujoco_py", "r3m", "mvp", "voltron", "tianshou", "egl_probe", "wandb", "droid",
          "tensorboardX", "tqdm_loggable", "octo", "dlimp", "tensorflow_graphics", "gym", "imageio")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda attribute: mock.MagicMock(name=attribute)
        return module

    def exec_module(self, module):
        pass


def package(checkout):
    """robomimic.algo.diffusion_policy of the checkout."""
    sys.path.insert(0, checkout)
    sys.meta_path.append(Absent())
    import diffusers.training_utils
    with mock.patch.object(transformers.AutoTokenizer, "from_pretrained", lambda *a, **k: None), \
            mock.patch.object(transformers.AutoModel, "from_pretrained", lambda *a, **k: torch.nn.Identity()), \
            mock.patch.object(torch.nn.Module, "to", lambda self, *a, **k: self):
        import robomimic.algo.diffusion_policy as module
    return module


def conditional_unet(checkout):
    return package(checkout).ConditionalUnet1D
