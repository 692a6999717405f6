/// What a learner counts of a task's episodes on a device: plain pointers and numbers, as in tasks/cuda/control_step.h.
#pragma once

namespace cohort::tasks::cuda {

/// A task's environments as OnDevice shows them, and what is counted of them; arrays in the device's memory. n
/// environments, O observations, T terms of the reward.
struct Episodes {
  int n, width, terms;
  const float *observations, *reward, *reward_terms;               ///< (n, O), (n), (n, T)
  int metrics;                                                     ///< M
  const float* metric_values;                                      ///< (n, M)
  const unsigned char* at_end;                                     ///< (M): counts where an episode ends
  const unsigned char *success, *terminated, *truncated, *failed;  ///< (n)
  // Of the present episodes.
  long long* steps;        ///< (n)
  long long* early;        ///< (n): cut off after more steps than these; below 0: not
  double* returns;         ///< (n)
  unsigned char* reached;  ///< (n): the goal in some step
  // Of the last step.
  float *rewards, *dones, *cut_off, *broken;  ///< (n)
  float* final_observations;                  ///< (n, O)
  unsigned char* flags;                       ///< (n): EpisodeFlag
  // Since they were taken.
  double* term_sums;                       ///< (n, T)
  double *without_success, *with_success;  ///< (n) rewards
  double* metric_sums;                     ///< (n, M)
  long long* metric_counts;                ///< (n, M): numbers of which the sums are
  long long* counts;                       ///< (n, 4): EpisodeCount
};

/// Bits that an environment's step has.
enum EpisodeFlag { kOver = 1, kBroken = 2, kEarly = 4, kCutOff = 8 };
/// What an environment's counts count: control steps without and with success, of those the ones that ended their
/// episode, and steps whose terms are in the sums.
enum EpisodeCount { kWithout = 0, kWith = 1, kEnded = 2, kSteps = 3 };

/// After a control step.
const char* count(int device, void* stream, const Episodes& episodes);
/// Episodes of chosen (count) end and others begin: their returns and whether they reached the goal go to ended (count,
/// 2), what is counted begins at 0, early (count) is theirs.
const char* renew(int device, void* stream, const Episodes& episodes, const int* chosen, const long long* early,
                  double* ended, int count);
/// Standard normal numbers, (n, width): RandomStream::normal with the device's log and cos. first: global id of the first
/// environment.
const char* draw_normal(int device, void* stream, float* out, int n, int width, unsigned long long seed,
                        unsigned long long first, unsigned long long step);

}  // namespace cohort::tasks::cuda
