/// How much memory this process can still get.
#pragma once

namespace cohort::sim {

/// Bytes: what the kernel says is available, or less where a control group of the process allows less.
double available_host_memory();

}  // namespace cohort::sim
