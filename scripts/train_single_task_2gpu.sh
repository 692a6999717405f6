#!/usr/bin/env bash
# Fine-tunes RDT on one task with two GPUs, as `accelerate launch ... main.py` does: one process per GPU, bf16. Set the lines
# below, or give them in the environment; flags of main.py and settings follow on the command line:
#
#   DATA=demos.hdf5 scripts/train_single_task_2gpu.sh --max_train_steps=5000
#
# FIELDS: what of the data is action, state and picture, and the actions' slots (docs/guide/rdt.md); these are robosuite's, as
# robomimic's data sets have them. Empty where CONFIG says it.
# LANG_EMBED: what `cohort data embed "$DATA" --out FILE` wrote; empty: no instruction is read.
# --train_batch_size is per GPU, as main.py means it: 16 on two GPUs are 32 per step. The banner says both numbers.
# On a machine without a GPU: LAUNCH="--nproc_per_node 2 --cpu".
set -euo pipefail
DATA=${DATA:-/path/to/demonstrations.hdf5}
CONFIG=${CONFIG:-$(dirname "${BASH_SOURCE[0]}")/../configs/rdt_1b.json}
# In single quotes, for within ${FIELDS-...} the shell would take the double ones away.
default_fields='data.actions=["actions"] data.proprio=["obs/robot0_joint_pos","obs/robot0_gripper_qpos"]
  data.images=["obs/agentview_image","obs/robot0_eye_in_hand_image"] model.rdt.slots=["actions:39-44,10"]'
FIELDS=${FIELDS-$default_fields}
LANG_EMBED=${LANG_EMBED:-}
OUTPUT_DIR=${OUTPUT_DIR:-checkpoints/single_task_2gpu}
LAUNCH=${LAUNCH:---num_processes 2 --multi_gpu --mixed_precision bf16}
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0,1}

cohort=${COHORT:-$(dirname "${BASH_SOURCE[0]}")/../build/release/bin/cohort}
if [ ! -x "$cohort" ]; then
  echo "$0: $cohort is not built: run scripts/setup and scripts/build release --target cohort cohort-train" >&2
  exit 1
fi
if [ ! -e "$DATA" ]; then
  echo "$0: there are no data $DATA: set DATA at the top of this script or in the environment" >&2
  exit 1
fi
told=${LANG_EMBED:+--precomp_lang_embed model.rdt.lang_embed=$LANG_EMBED}
# shellcheck disable=SC2086 # words of the launcher and of settings
exec "$cohort" launch $LAUNCH train rdt --config "$CONFIG" "data.paths=$DATA" $FIELDS $told \
  --output_dir="$OUTPUT_DIR" --train_batch_size=16 --sample_batch_size=16 --dataloader_num_workers=8 \
  --max_train_steps=20000 --checkpointing_period=1000 --checkpoints_total_limit=20 --lr_scheduler=constant \
  --learning_rate=1e-4 --gradient_accumulation_steps=1 --report_to=tensorboard --state_noise_snr=40 \
  --load_from_hdf5 "$@"
