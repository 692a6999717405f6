#!/bin/sh
# A small RDT in a LIBERO scene, from nothing to a success rate: the scripted expert closes the top drawer of
# KITCHEN_SCENE10 from perturbed initial states; RDT-tiny learns from it what to do with two cameras and the hand's pose, on
# two ranks, in bf16, with accumulation; it is judged on the benchmark's initial states, which no demonstration began with.
# Beside it: an MLP that gets the hand's pose and no pictures, a small diffusion policy, replay, the expert.
#
#   examples/policies/rdt_libero.sh SCENES [settings of the RDT's training: train.steps=500 ...]
#
# SCENES is the folder that cohort export-libero wrote. COHORT names the program (default: cohort), EPISODES how many
# demonstrations are recorded (200), COHORT_LAUNCH who starts the RDT's ranks (launch --nproc_per_node=2 --cpu; empty: one
# process). Everything goes to outputs/rdt_libero. A stage whose result is there is not repeated; a training that was stopped
# goes on.
set -eu
here=$(dirname "$0")
cohort=${COHORT:-cohort}
launch=${COHORT_LAUNCH-launch --nproc_per_node=2 --cpu}
task=KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet
out=outputs/rdt_libero
[ $# -gt 0 ] || { echo "usage: $0 SCENES [SETTING ...]   SCENES: what cohort export-libero wrote" >&2; exit 2; }
COHORT_LIBERO=$(cd "$1" && pwd)
export COHORT_LIBERO
shift

# train RUN LAUNCHER JOB ...: trains RUN unless it has been.
train() {
  run=$1
  start=$2
  shift 2
  ! grep -qs 'training finished after' "$out/$run/latest/training.log" || return 0
  # shellcheck disable=SC2086  # the words of the launcher
  if [ -e "$out/$run/latest/checkpoints/last" ]; then
    "$cohort" $start train "resume=$out/$run/latest"
  else
    "$cohort" $start train "$@" "name=$run" "output_dir=$out"
  fi
}

data=$out/data/close_top_drawer.hdf5
[ -e "$data" ] || "$cohort" collect "$task" start=perturbed --episodes "${EPISODES:-200}" --noise 0.2 --format hdf5 \
  --name close_top_drawer --cameras agentview,robot0_eye_in_hand --size 64 --renderer raycast --out "$out/data"
train rdt "$launch" rdt --config "$here/../../configs/rdt_tiny_libero.json" "$@"
train state "" policy --config "$here/libero_state.json"
train diffusion "" policy --config "$here/libero_diffusion.json"
"$cohort" evaluate --task "$task" --policy "$out/rdt/latest" --policy "$out/state/latest" --policy "$out/diffusion/latest" \
  --policy "replay:$data" --policy expert --episodes 50 --max-steps 200 --record-video --out "$out/evaluation"
# One page with the table, the videos, the curves, and the settings in which the runs differ.
"$cohort" report "$out/rdt/latest" "$out/state/latest" "$out/diffusion/latest" --out "$out/comparison.html"
