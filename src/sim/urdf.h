/// What a URDF text says and MuJoCo's importer passes over without a word: joints that mimic nothing, limits that limit
/// nothing, names that are given twice (http://wiki.ros.org/urdf/XML/joint).
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cohort::sim {

struct UrdfRemarks {
  /// What is wrong, with the joint's or link's name and a remedy; "" where nothing is: a name given twice, a parent,
  /// child or mimicked joint that is not there, a <mimic> of or for a joint without one position, of itself or round a
  /// circle.
  std::string error;
  /// What was meant otherwise, perhaps: limits that are missing, empty or turned round and so do not hold, a <mimic> of
  /// a fixed joint's, a start that a <mimic> with an offset moves, several base links.
  std::vector<std::string> warnings;
};

/// Of a text that MuJoCo's parser takes for well-formed.
UrdfRemarks check_urdf(std::string_view xml);

}  // namespace cohort::sim
