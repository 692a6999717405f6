/// For messages about files that are not there.
#pragma once
#include <filesystem>
#include <string>

namespace cohort {

/// "; did you mean data/shop.csv?" for data/shp.csv, where its folder holds a name that is near; else "". Of a path whose
/// folder is missing, the nearest folder is named. A path that exists has none.
std::string near_file(const std::filesystem::path& path);

}  // namespace cohort
