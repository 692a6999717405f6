"""The Python peer of first_picture_bench, a process for each picture: robosuite's Lift from the start of Python to the first picture of
128 x 128 pixels.

    first_picture.py [MODEL_FILE]    with a name it also writes the model's text
"""
import os
import sys

os.environ.setdefault("MUJOCO_GL", "egl")

import robosuite  # noqa: E402

env = robosuite.make("Lift", robots="Panda", has_renderer=False, has_offscreen_renderer=True, use_camera_obs=True,
                     camera_names="agentview", camera_heights=128, camera_widths=128, control_freq=20)
picture = env.reset()["agentview_image"]
assert picture.shape == (128, 128, 3) and picture.std() > 1
if len(sys.argv) > 1:
    with open(sys.argv[1], "w") as out:
        out.write(env.sim.model.get_xml())
