/// What the task of a file asks of a device around the physics of a control step: plain pointers and numbers, so that
/// neither CUDA's headers are needed on this side nor C++20 on the other. Where no CUDA compiler was found,
/// cuda/absent.cpp stands in for cuda/control_step.cu. Memory and streams are those of sim/backends/cuda/runner.h.
///
/// A thread computes an environment: each function is one launch on the stream, and returns null, or why it could not be
/// launched.
#pragma once
#include "tasks/terms/program.h"

namespace cohort::tasks::cuda {

/// A task's environments, arrays in the device's memory. n environments, A components of an action, W terms of the
/// reward as the program writes them, T as the task shows them.
struct Environments {
  int n;
  // What is given.
  int action_width;
  int clips;                ///< actions are clipped to their bounds
  const float *low, *high;  ///< (A)
  const float* given;       ///< (n, A) actions of the policy
  const int* status;        ///< (n) of the engine
  long long horizon;        ///< control steps
  int written_terms, terms;
  int sparse, ends_on_success;
  const float* scale;                                              ///< (T) factors on the terms; null: 1
  const float* written;                                            ///< (n, W)
  const unsigned char *is_success, *is_terminated, *is_truncated;  ///< (n) as the program judges
  long long keys_stride;
  // What is kept.
  float* actions;      ///< (n, A): finite, and within their bounds where they are clipped
  unsigned* keys;      ///< [2][keys_stride] of the episodes
  long long* steps;    ///< (n) control steps since the reset
  float* reward;       ///< (n)
  float* shown_terms;  ///< (n, T)
  unsigned char *success, *terminated, *truncated, *broken;  ///< (n)
};

/// Where threads have the registers of a program: `blocks` blocks of 32 threads, each thread as many registers as the
/// program needs, [block][register][thread].
struct Registers {
  float* memory;
  int count;   ///< of a thread
  int blocks;  ///< that the memory is for; more environments than that are computed in turn
};

/// Reads the actions that are given and evaluates the program of the controls.
const char* control(int device, void* stream, const Environments& envs, const terms::Evaluation& program,
                    const Registers& registers);
/// After the physics: counts the control step, sees which environments broke, evaluates the program that observes and
/// judges, and adds up the reward.
const char* judge(int device, void* stream, const Environments& envs, const terms::Evaluation& program,
                  const Registers& registers);
/// Episodes begin: chosen (count), keys [2][count], in the device's memory.
const char* begin(int device, void* stream, const Environments& envs, const int* chosen, const unsigned* keys,
                  int count);
/// Evaluates the program that observes and judges for some environments.
const char* observe(int device, void* stream, const terms::Evaluation& program, const Registers& registers,
                    const int* chosen, int count);

}  // namespace cohort::tasks::cuda
