/// Where this installation's programs lie, and beside them what they load at run time.
#pragma once
#include <filesystem>

namespace cohort {

/// The folder of the running program; of code in an extension of Python's, PACKAGE/_core.abi3.so, PACKAGE/bin. Empty where
/// the system does not say.
std::filesystem::path program_folder();

}  // namespace cohort
