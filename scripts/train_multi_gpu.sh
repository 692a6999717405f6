#!/usr/bin/env bash
# Trains a robomimic configuration on several GPUs: one process for each, gradients averaged (DistributedDataParallel).
# Set the three lines below, or give them in the environment; overrides follow on the command line:
#
#   NUM_GPUS=4 CONFIG_PATH=droid.json scripts/train_multi_gpu.sh train.batch_size=128
set -euo pipefail
NUM_GPUS=${NUM_GPUS:-4}
CONFIG_PATH=${CONFIG_PATH:-/path/to/config.json}
MASTER_PORT=${MASTER_PORT:-12355}

cohort=${COHORT:-$(dirname "${BASH_SOURCE[0]}")/../build/release/bin/cohort}
if [ ! -x "$cohort" ]; then
  echo "$0: $cohort is not built: run scripts/setup and scripts/build release --target cohort cohort-train" >&2
  exit 1
fi
if [ ! -f "$CONFIG_PATH" ]; then
  echo "$0: there is no configuration $CONFIG_PATH: set CONFIG_PATH at the top of this script or in the environment" >&2
  exit 1
fi
exec "$cohort" launch --nproc_per_node="$NUM_GPUS" --master_port="$MASTER_PORT" train load_from="$CONFIG_PATH" "$@"
