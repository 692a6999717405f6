#!/bin/sh
# Push-T from nothing to a success rate: demonstrations by the planner, a diffusion policy learnt from them, and its score
# over gym-pusht's resets of seeds 0 to 49, beside planner, random actions and replay. On two cores the demonstrations take
# nine minutes and the training about two hours; 1 h 10 min with COHORT_LAUNCH="launch --nproc_per_node=2 --cpu", two
# ranks, and train.batch_size=128.
#
#   examples/policies/push_t.sh [settings of the training: train.steps=5000 ...]
#
# COHORT names the program (default: cohort); CONFIG the policy: push_t (default, 2.1 million parameters, for two cores)
# or push_t_reference (65.7 million, the size of the Diffusion Policy paper's; for a GPU); DEVICE where it acts (cpu);
# EPISODES how many demonstrations are recorded (4000), NOISE what disturbs them (as a share of half the offset's range: 5 px).
set -eu
here=$(dirname "$0")
cohort=${COHORT:-cohort}
config=${CONFIG:-push_t}
case $config in push_t) run=outputs/push_t_policy ;; *) run=outputs/$config ;; esac
[ -d outputs/push_t/push_t ] || "$cohort" collect push-t action=offset --out outputs/push_t \
  --episodes "${EPISODES:-4000}" --noise "${NOISE:-0.01}"
# shellcheck disable=SC2086  # the words of COHORT_LAUNCH
"$cohort" ${COHORT_LAUNCH:-} train policy --config "$here/$config.json" "$@"
"$cohort" evaluate --task push-t action=offset --policy "$run/latest" --policy expert --policy random \
  --policy replay:outputs/push_t/push_t --n-envs 50 --device "${DEVICE:-cpu}" --json "$run/latest/evaluation.json"
