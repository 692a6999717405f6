#!/bin/sh
# Push-T from nothing to a success rate: demonstrations by the planner, a diffusion policy of 2.1 million parameters learnt
# from them, and its score over gym-pusht's resets of seeds 0 to 49, beside planner, random actions and replay.
#
#   examples/policies/push_t.sh [settings of the training: train.steps=5000 ...]
#
# COHORT names the program (default: cohort), EPISODES how many demonstrations are recorded (1000), NOISE what disturbs
# them (px).
set -eu
here=$(dirname "$0")
cohort=${COHORT:-cohort}
[ -d outputs/push_t/push_t ] || "$cohort" data push-t --out outputs/push_t --episodes "${EPISODES:-1000}" --noise "${NOISE:-5}"
"$cohort" train policy --config "$here/push_t.json" "$@"
"$cohort" evaluate push-t checkpoint=outputs/push_t_policy/latest --demonstrations outputs/push_t/push_t \
  --json outputs/push_t_policy/latest/evaluation.json
