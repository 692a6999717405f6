/// What a URDF text says and MuJoCo's importer passes over without a word: joints that mimic nothing, limits that limit
/// nothing, names that are given twice (http://wiki.ros.org/urdf/XML/joint).
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort::sim {

struct UrdfRemarks {
  /// What is wrong, with the joint's or link's name and a remedy; "" where nothing is: a name given twice, a parent,
  /// child or mimicked joint that is not there, a <mimic> of or for a joint without one position, of itself or round a
  /// circle, an axis without a direction, a shape that is not known, a joint `floating` that is not the world's child,
  /// no base.
  std::string error;
  /// What was meant otherwise, perhaps: limits that are missing, empty or turned round and so do not hold, a <mimic> of
  /// a fixed joint's, a start that a <mimic> with an offset moves, several base links, limits that look like degrees.
  /// And what is left out of the model: <transmission>, <gazebo> and the like.
  std::vector<std::string> warnings;
  /// The root link is named `world`, which is how ROS fastens a robot (http://wiki.ros.org/urdf/Tutorials): it is part
  /// of the world.
  bool on_world = false;
  /// There are <visual> elements and no <collision>: who loads it wants to see those.
  bool seen_only = false;
  bool has_visuals = false;        ///< there are <visual> elements
  std::vector<std::string> links;  ///< their names
};

/// Of a text that MuJoCo's parser takes for well-formed.
UrdfRemarks check_urdf(std::string_view xml);

/// What `xacro` has not written out, with its line and a remedy; "" where there is nothing. Comments do not count.
std::string unexpanded_xacro(std::string_view xml);

/// The text with every <inertial> that lacks its <mass> or <inertia> given one of 0, for ModelEdits::repair_inertia to
/// raise: MuJoCo refuses the file as it stands.
std::string with_whole_inertials(std::string_view xml);

/// The text with the setting that makes MuJoCo keep <visual> shapes; as it is where it says itself whether to.
std::string with_visuals(std::string_view xml);

/// Pairs of links that an SRDF text lets collide never: its <disable_collisions>, and of a link with
/// <disable_default_collisions> all pairs but those of <enable_collisions>. links: of the URDF; pairs with others are
/// left out. Throws Error for a text that is no SRDF (http://wiki.ros.org/srdf).
std::vector<std::pair<std::string, std::string>> srdf_exclusions(std::string_view xml,
                                                                 const std::set<std::string>& links);

/// The links that its pairs name, each once.
std::set<std::string> links_of_srdf(std::string_view xml);

}  // namespace cohort::sim
