"""Steps per second of MuJoCo Warp, as sim_launch_bench (launch.cpp) measures the batched engine.

    PYTHON bench/sim/rivals/mujoco_warp_speed.py [--envs N] [--steps S] [--rounds R] [--keyframe K] [--noise X] MODEL...

PYTHON holds mujoco_warp, warp, mujoco and numpy. Every round starts all worlds from the keyframe with the controls of
launch.cpp and launches one CUDA graph of 10 steps S / 10 times, between two events; the best of R rounds counts, after one
that compiles the kernels. Room for contacts and rows: four times what MuJoCo C meets on the way, which the last line says
was enough. On a machine without CUDA: Warp's CPU device, without graphs, timed by the clock.
"""
import argparse
import time

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp

GRAPH_STEPS = 10


def control_of(env, control):
    """launch.cpp's: from -1 to 1."""
    return ((7919 * env + 104729 * control) % 2001 - 1000) / 1000


def started(model, keyframe):
    data = mujoco.MjData(model)
    if 0 <= keyframe < model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, keyframe)
    return data


def measure(file, options):
    model = mujoco.MjModel.from_xml_path(file)
    data = started(model, options.keyframe)
    base = data.ctrl.copy()
    limited = model.actuator_ctrllimited.astype(bool)
    reach = np.where(limited, model.actuator_ctrlrange[:, 1] - model.actuator_ctrlrange[:, 0], 2.0)
    env, control = np.arange(options.envs)[:, None], np.arange(model.nu)[None, :]
    ctrl = (base + options.noise * reach * control_of(env, control)).astype(np.float32)
    # What room a world needs.
    contacts = rows = 0
    probe = started(model, options.keyframe)
    probe.ctrl[:] = ctrl[0]
    for _ in range(options.steps):
        mujoco.mj_step(model, probe)
        contacts, rows = max(contacts, probe.ncon), max(rows, probe.nefc)
    mujoco.mj_forward(model, data)
    warp_model = mjw.put_model(model)
    worlds = mjw.put_data(model, data, nworld=options.envs, nconmax=4 * contacts + 16, njmax=4 * rows + 64)
    start = {name: getattr(worlds, name).numpy().copy() for name in ("qpos", "qvel", "qacc_warmstart", "time")}
    on_gpu = wp.get_device().is_cuda
    best, graph = 0.0, None
    for turn in range(options.rounds + 1):
        for name, value in start.items():
            getattr(worlds, name).assign(value)
        worlds.ctrl.assign(ctrl)
        mjw.step(warp_model, worlds)
        if on_gpu and graph is None:
            with wp.ScopedCapture() as capture:
                for _ in range(GRAPH_STEPS):
                    mjw.step(warp_model, worlds)
            graph = capture.graph
            for name, value in start.items():
                getattr(worlds, name).assign(value)
            mjw.step(warp_model, worlds)
        wp.synchronize()
        if on_gpu:
            begin, end = wp.Event(enable_timing=True), wp.Event(enable_timing=True)
            wp.record_event(begin)
            for _ in range(options.steps // GRAPH_STEPS):
                wp.capture_launch(graph)
            wp.record_event(end)
            seconds = wp.get_event_elapsed_time(begin, end) / 1000
        else:
            began = time.perf_counter()
            for _ in range(options.steps):
                mjw.step(warp_model, worlds)
            seconds = time.perf_counter() - began
        if turn > 0:
            best = max(best, options.envs * options.steps / seconds)
    qpos = worlds.qpos.numpy()
    contacts_now = int(worlds.nacon.numpy()[0])
    print(f"{file.rsplit('/', 1)[-1]:24} {options.envs:6d} environments, MuJoCo Warp {mjw.__version__}: {best:12.0f} steps/s "
          f"({options.steps} steps, {'graphs of ' + str(GRAPH_STEPS) if on_gpu else 'no graph, CPU'}), "
          f"{contacts_now / options.envs:.2f} contacts, {worlds.solver_niter.numpy().mean():.2f} iterations, "
          f"room for {4 * contacts + 16} contacts and {4 * rows + 64} rows, most {int(worlds.nefc.numpy().max())} rows, "
          f"|qpos|^2 {float((qpos.astype(np.float64) ** 2).sum(axis=1).mean()):.4f}", flush=True)
    if contacts_now > options.envs * (4 * contacts + 16) or worlds.nefc.numpy().max() > 4 * rows + 64:
        raise SystemExit(f"{file}: more contacts or rows than there was room for; the figure does not count")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--keyframe", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.01)
    options = parser.parse_args()
    if options.steps % GRAPH_STEPS:
        parser.error(f"--steps {options.steps}: a multiple of {GRAPH_STEPS}")
    wp.init()
    for file in options.models:
        measure(file, options)


if __name__ == "__main__":
    main()
