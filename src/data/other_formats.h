/// Robot data in formats that are not read: Zarr, NumPy archives, ROS bags, pickles.
#pragma once
#include <filesystem>
#include <string>

namespace cohort::data {

/// "umi.zarr is a Zarr store, which is not read; write it as HDF5 first: python3 -c '...'" of a file or a folder that is
/// known by its name or by what lies in it, or of a folder of such files; else "".
std::string other_format(const std::filesystem::path& path);

}  // namespace cohort::data
