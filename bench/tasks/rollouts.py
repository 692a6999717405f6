"""The Python peer of tasks_rollouts_bench: rollouts of simulate, observe and act with random actions.

    rollouts.py gymnasium NAME sync|async ENVIRONMENTS    gymnasium's vector environments over MuJoCo
    rollouts.py robosuite MODEL_FILE                      robosuite's Lift with a Panda and states; writes its model's text

Answers "ready VERSIONS", then for each line "SECONDS" with "STEPS PROCESSOR_SECONDS": environment steps that were done in about
that time, and the seconds that the processors worked, worker processes included.
"""
import importlib.util
import os
import sys
import time
import types

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
os.environ.setdefault("MUJOCO_GL", "disable")

import numpy  # noqa: E402


def processor_seconds():
    """Of this process and its living children."""
    total = time.process_time()
    tick = os.sysconf("SC_CLK_TCK")
    me = os.getpid()
    with open(f"/proc/{me}/task/{me}/children") as file:
        children = file.read().split()
    for child in children:
        with open(f"/proc/{child}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


def gymnasium_side(name, kind, count):
    for module in ("glfw", "imageio"):  # gymnasium imports what it draws with, which is never called here
        if importlib.util.find_spec(module) is None:
            sys.modules[module] = types.ModuleType(module)
    import gymnasium
    import mujoco

    make = [lambda: gymnasium.make(name) for _ in range(count)]
    # Observations in shared memory, as gymnasium has them by default.
    envs = gymnasium.vector.SyncVectorEnv(make) if kind == "sync" else gymnasium.vector.AsyncVectorEnv(make)
    envs.reset(seed=0)
    low, high = envs.action_space.low, envs.action_space.high
    random = numpy.random.default_rng(0)

    def step():
        envs.step(random.uniform(low, high).astype(low.dtype))
        return count

    return step, f"gymnasium {gymnasium.__version__}, MuJoCo {mujoco.__version__}", 1


def robosuite_side(file):
    import mujoco
    import robosuite

    env = robosuite.make("Lift", robots="Panda", has_renderer=False, has_offscreen_renderer=False, use_camera_obs=False,
                         use_object_obs=True, reward_shaping=True, control_freq=20, horizon=1000, hard_reset=False)
    env.reset()
    with open(file, "w") as out:
        out.write(env.sim.model.get_xml())
    random = numpy.random.default_rng(0)

    def step():
        if env.step(random.uniform(-1, 1, env.action_dim))[2]:
            env.reset()
        return 1

    return step, f"robosuite {robosuite.__version__}, MuJoCo {mujoco.__version__}", 20


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the packages print is no answer
    if sys.argv[1] == "gymnasium":
        step, versions, warm_up = gymnasium_side(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        step, versions, warm_up = robosuite_side(sys.argv[2])
    for _ in range(warm_up):
        step()  # robosuite's first step compiles its mathematics
    print("ready " + versions, file=answers, flush=True)
    for line in sys.stdin:
        seconds, steps = float(line), 0
        begin, before = time.perf_counter(), processor_seconds()
        while time.perf_counter() - begin < seconds:
            steps += step()
        print(steps, processor_seconds() - before, file=answers, flush=True)


if __name__ == "__main__":
    main()
