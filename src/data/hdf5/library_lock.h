/// The one lock under which libhdf5 is called by writers, and under which the process that reads is started.
#pragma once
#include <mutex>

namespace cohort::data {

/// Also turns the printing of error stacks off, once: failures become our own messages.
std::mutex& hdf5_library_lock();

}  // namespace cohort::data
