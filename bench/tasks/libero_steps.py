"""The Python peer of libero_steps: control steps of LIBERO's own environment.

    libero_steps.py SUITE TASK INIT_STATES.npy ACTIONS STEPS SIDE|none

ACTIONS: a file of float32 (STEPS, 7), the actions of every episode. Episodes begin as LIBERO's evaluation begins them, reset() and
set_init_state(), with the initial states in turns; NumPy's seed is 0 before each reset(), so that fixtures stand where the exported
scene has them. Of each turn only env.step() is timed.

Answers "ready VERSIONS", then for a line "hand K" the hand's place after K steps from the first initial state, for a line
"run SECONDS" with "STEPS PROCESSOR_SECONDS".
"""
import os
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
os.environ.setdefault("LP_NUM_THREADS", "1")
os.environ.setdefault("MUJOCO_GL", "egl")

import numpy  # noqa: E402


class Environment:
    def __init__(self, suite, task, states, actions, side):
        import libero.libero
        from libero.libero.envs import OffScreenRenderEnv
        from libero.libero.envs.env_wrapper import ControlEnv
        root = os.path.dirname(libero.libero.__file__)
        bddl = os.path.join(root, "bddl_files", suite, task + ".bddl")
        if side:
            self.env = OffScreenRenderEnv(bddl_file_name=bddl, camera_heights=side, camera_widths=side)
        else:
            self.env = ControlEnv(bddl, has_offscreen_renderer=False, use_camera_obs=False)
        self.states, self.actions = states, actions
        self.episode = -1
        self.at = len(actions)

    def begin(self, episode):
        self.episode, self.at = episode, 0
        numpy.random.seed(0)
        self.env.reset()
        return self.env.set_init_state(self.states[episode % len(self.states)])

    def step(self):
        self.at += 1
        return self.env.step(self.actions[self.at - 1])[0]

    def hand(self, steps):
        observation = self.begin(0)
        for _ in range(steps):
            observation = self.step()
        return observation["robot0_eef_pos"]

    def run(self, seconds):
        steps, taken = 0, 0.0
        while taken < seconds:
            if self.at == len(self.actions):
                self.begin(self.episode + 1)
            before = time.process_time()
            self.step()
            taken += time.process_time() - before
            steps += 1
        return steps, taken


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the packages print is no answer
    suite, task, states, actions, steps, side = sys.argv[1:]
    config = os.path.join(os.environ.get("LIBERO_CONFIG_PATH", os.path.expanduser("~/.libero")), "config.yaml")
    if not os.path.exists(config):
        sys.exit(f"{config} is not there: LIBERO would ask where its data lie; run `python -c 'import libero.libero'` once")
    import mujoco
    import robosuite
    environment = Environment(suite, task, numpy.load(states),
                              numpy.fromfile(actions, dtype=numpy.float32).reshape(int(steps), 7), 0 if side == "none" else int(side))
    print(f"ready LIBERO, robosuite {robosuite.__version__}, MuJoCo {mujoco.__version__}", file=answers, flush=True)
    for line in sys.stdin:
        what, number = line.split()
        result = environment.hand(int(number)) if what == "hand" else environment.run(float(number))
        print(*(repr(float(x)) for x in result), file=answers, flush=True)


if __name__ == "__main__":
    main()
