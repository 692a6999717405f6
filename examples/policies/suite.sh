#!/bin/sh
# What small policies reach in each task of the suite: 1,000 demonstrations by the task's expert, behaviour cloning of all
# observations (an MLP of 71,000 parameters, 6,000 steps of 256; half a minute to a minute on two cores), and 100 episodes of
# seeds 0 to 99 beside the expert, random actions and replay. For push and pick-and-place also a policy that sees two cameras
# and the hand's pose, but not where anything lies (push_image.json, pick_and_place_image.json; about a quarter of an hour).
#
#   examples/policies/suite.sh [TASK ...]
#
# COHORT names the program (default: cohort), IMAGES=no leaves the policies that see out. Everything goes to outputs/suite; a
# stage whose result is there is not repeated. A table of what has been evaluated comes last.
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

# Trains RUN unless it has been; the other arguments are those of `cohort train policy`. What was stopped goes on.
train() {
  run=$1
  shift
  ! grep -qs 'training finished after' "$out/$run/latest/training.log" || return 0
  if [ -e "$out/$run/latest/checkpoints/last" ]; then
    "$cohort" train policy "resume=$out/$run/latest"
  else
    "$cohort" train policy "$@" "name=$run" "output_dir=$out"
  fi
}

minutes() { sed -n 's/.*training finished after //p' "$out/$1/latest/training.log" 2>/dev/null | tail -1; }

succeeded() {  # of a policy, in a CSV table of episodes
  awk -F, -v policy="$2" '$1 == policy { n += $3; seen = 1 } END { print seen ? n : "" }' "$1"
}

[ $# -gt 0 ] || set -- reach push pick-and-place stack open-drawer peg-in-hole cartpole-balance cartpole-swingup
for task in "$@"; do
  name=$(echo "$task" | tr - _)
  seen=$(observations "$task")
  proprio=
  for field in $seen; do proprio=$proprio${proprio:+,}observation/$field; done
  noise=0.2
  [ "$task" != peg-in-hole ] || noise=0.05  # a peg that is pushed about misses the hole
  [ -d "$out/data/$name/1.0.0" ] || "$cohort" collect "$task" --episodes 1000 --n-envs 64 --noise $noise --out "$out/data"
  train "$name" --config "$here/pick_and_place.json" "data.paths=[$out/data/$name]" "data.proprio=[$proprio]" \
    data.constant_elements=keep "rollout.task=$task"
  set -- --policy "$out/$name/latest"
  if [ -f "$here/${name}_image.json" ] && [ "${IMAGES:-yes}" != no ]; then
    [ -d "$out/pictures/$name/1.0.0" ] || "$cohort" collect "$task" --episodes 1000 --n-envs 64 --noise $noise \
      --cameras front,wrist --size 64 --out "$out/pictures"
    train "${name}_image" --config "$here/${name}_image.json" "data.paths=[$out/pictures/$name]"
    set -- "$@" --policy "$out/${name}_image/latest"
  fi
  "$cohort" evaluate --task "$task" "$@" --policy expert --policy random --policy "replay:$out/data/$name" \
    --episodes 100 --n-envs 50 --out "$out/$name/latest/evaluation"
  "$cohort" report "$out/$name/latest"
done

echo
echo "| task | expert | random | replay | state policy | trained in | image policy | trained in |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
for table in "$out"/*/latest/evaluation/evaluation.csv; do
  [ -f "$table" ] || continue
  name=${table#"$out"/}
  name=${name%%/*}
  row="| \`$(echo "$name" | tr _ -)\` "
  for policy in expert random replay "$name/latest"; do row="$row| $(succeeded "$table" "$policy") "; done
  echo "$row| $(minutes "$name") | $(succeeded "$table" "${name}_image/latest") | $(minutes "${name}_image") |"
done
