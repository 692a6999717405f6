/// One name for an observation, whatever stores or sends it. Robot data put words around it: "observation/eef_pos"
/// (RLDS, openpi), "obs/eef_pos" (robomimic), "observation.eef_pos" (LeRobot); pictures of the camera "front" are
/// "observation/front_image", "observation.images.front" or, converted from that, "obs/images_front". All of them are
/// eef_pos, or front.
///
///   same_observation("observation.state", "obs/state");                          // true
///   same_camera("observation.images.front", "observation/front_image");          // true
#pragma once
#include <string>
#include <string_view>

namespace cohort {

/// Whether it stands behind one of those words: "obs/eef_pos", not "eef_pos".
bool is_observation(std::string_view name);

/// Without them: "eef_pos".
std::string bare_observation(std::string_view name);

/// Of pictures, also without "images." (or / or _) in front and "_image" behind: "front".
std::string bare_camera(std::string_view name);

bool same_observation(std::string_view a, std::string_view b);
bool same_camera(std::string_view a, std::string_view b);

}  // namespace cohort
