#!/bin/sh
# What a small policy reaches in each task of the suite: 1,000 demonstrations by the task's expert, behaviour cloning of all
# observations (an MLP of 71,000 parameters, 6,000 steps of 256), and 100 episodes of seeds 0 to 99 beside the expert, random
# actions and replay. About a minute for each task on two cores.
#
#   examples/policies/suite.sh [TASK ...]
#
# COHORT names the program (default: cohort). Everything goes to outputs/suite.
set -eu
here=$(dirname "$0")
cohort=${COHORT:-cohort}
out=outputs/suite

observations() {
  case $1 in
    reach) echo eef_pos goal_pos goal_to_eef ;;
    push) echo eef_pos eef_yaw cube_pos cube_to_eef cube_yaw goal_to_cube ;;
    pick-and-place) echo eef_pos eef_yaw gripper_opening cube_pos cube_to_eef cube_yaw goal_to_cube ;;
    stack) echo eef_pos eef_yaw gripper_opening red_pos red_to_eef red_yaw green_to_red ;;
    open-drawer) echo eef_pos eef_yaw handle_pos handle_to_eef cabinet_yaw drawer_opening ;;
    peg-in-hole) echo eef_pos eef_yaw tip_pos hole_to_tip hole_yaw ;;
    cartpole-*) echo cart_pos cart_vel pole_direction pole_vel ;;
    *) echo "suite.sh: which observations of $1 a policy is to see is not written here" >&2; return 1 ;;
  esac
}

[ $# -gt 0 ] || set -- reach push pick-and-place stack open-drawer peg-in-hole cartpole-balance cartpole-swingup
for task in "$@"; do
  name=$(echo "$task" | tr - _)
  seen=$(observations "$task")
  proprio=
  for field in $seen; do proprio=$proprio${proprio:+,}observation/$field; done
  [ -d "$out/data/$name" ] || "$cohort" collect "$task" --episodes 1000 --n-envs 64 --noise 0.2 --out "$out/data"
  "$cohort" train policy --config "$here/pick_and_place.json" "name=$name" "data.paths=[$out/data/$name]" \
    "data.proprio=[$proprio]" data.constant_elements=keep "output_dir=$out" "rollout.task=$task"
  "$cohort" evaluate --task "$task" --policy "$out/$name/latest" --policy expert --policy random \
    --policy "replay:$out/data/$name" --episodes 100 --n-envs 50 --out "$out/$name/latest/evaluation"
  "$cohort" report "$out/$name/latest"
done
