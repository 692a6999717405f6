/// The native stack of a process that hangs, without a debugger: it writes it itself, on a signal.
#pragma once
#include <sys/types.h>

namespace cohort::rank {

/// In a rank: from here on it answers ask_for_stack() by writing its main thread's stack to standard error.
void answer_stack_signal();

/// Asks a process, which must have called answer_stack_signal(): another one would end by the signal (SIGRTMIN + 4).
void ask_for_stack(pid_t pid);

}  // namespace cohort::rank
