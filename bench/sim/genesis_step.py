"""The peer of bench/sim/run.py genesis: one model in Genesis on a CPU. Prints one JSON object.

    PYTHON bench/sim/genesis_step.py MODEL --n-envs N --steps S --timestep T --iterations I --tolerance E
        --control position|FORCE

The seconds of starting (import, build, which compiles the kernels or loads them from Genesis' cache) stand apart from those
of stepping. Controls are held for five steps and made and set outside of the timed part, as on our side: position, uniform in
the joints' ranges, for the servos that the model declares; or forces, uniform in [-FORCE, FORCE], where its motors have the
control range [-1, 1] and that gear.
"""
import time

BEGIN = time.perf_counter()

import argparse
import json
import os


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--n-envs", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--timestep", type=float, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--tolerance", type=float, required=True)
    parser.add_argument("--warm-up", type=int, default=50)
    parser.add_argument("--control", required=True)
    return parser.parse_args()


def main():
    arguments = arguments_of()
    import genesis as gs
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    gs.init(backend=gs.cpu, precision="32", logging_level="error", seed=1)
    imported = time.perf_counter()
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=arguments.timestep, substeps=1),
        rigid_options=gs.options.RigidOptions(
            dt=arguments.timestep, constraint_solver=gs.constraint_solver.Newton, iterations=arguments.iterations,
            tolerance=arguments.tolerance, enable_self_collision=True),
        show_viewer=False)
    robot = scene.add_entity(gs.morphs.MJCF(file=arguments.model))
    scene.build(n_envs=arguments.n_envs)
    built = time.perf_counter()
    scene.step()
    first = time.perf_counter()

    # All but a free base.
    driven = [dof for joint in robot.joints if joint.type != gs.JOINT_TYPE.FREE for dof in joint.dofs_idx_local]
    lower, upper = robot.get_dofs_limit(driven)
    lower, upper = lower.reshape(-1, len(driven))[0], upper.reshape(-1, len(driven))[0]
    torch.manual_seed(1)
    contacts, spent = [], 0.0
    for step in range(-arguments.warm_up, arguments.steps):
        if step % 5 == 0:
            share = torch.rand(arguments.n_envs, len(driven))
            if arguments.control == "position":
                robot.control_dofs_position(lower + (upper - lower) * share, driven)
            else:
                robot.control_dofs_force(float(arguments.control) * (2 * share - 1), driven)
        begin = time.perf_counter()
        scene.step()
        if step >= 0:
            spent += time.perf_counter() - begin
            if step % 20 == 0:
                contacts.append(float(scene.rigid_solver.collider.collider_state.n_contacts.to_numpy().mean()))
    velocity = robot.get_dofs_velocity()
    print(json.dumps({
        "import_seconds": imported - BEGIN, "build_seconds": built - imported, "first_step_seconds": first - built,
        "microseconds": 1e6 * spent / (arguments.steps * arguments.n_envs), "dofs": robot.n_dofs,
        "contacts": sum(contacts) / max(1, len(contacts)), "finite": bool(torch.isfinite(velocity).all()),
        "genesis": gs.__version__, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
