#!/usr/bin/env bash
# Fine-tunes RDT on one task with one GPU, bf16: train_single_task_2gpu.sh, which says what can be set, with the lines below.
#
#   DATA=demos.hdf5 scripts/train_single_task.sh --max_train_steps=5000
#
# On a machine without a GPU: LAUNCH="--nproc_per_node 1 --cpu".
set -euo pipefail
export OUTPUT_DIR=${OUTPUT_DIR:-checkpoints/single_task}
export LAUNCH=${LAUNCH:---num_processes 1 --mixed_precision bf16}
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
exec "$(dirname "${BASH_SOURCE[0]}")/train_single_task_2gpu.sh" --train_batch_size=8 --sample_batch_size=8 \
  --dataloader_num_workers=4 "$@"
