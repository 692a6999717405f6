/// A scene's MJCF as its task has it: with assets that are found from everywhere, and the changes of a variant.
///
///   scene.add_entity(sim::Mjcf{.file = "", .xml = scene_text(folder)}, "libero");
#pragma once
#include <functional>
#include <string>

#include "tasks/libero/scene_folder.h"

namespace cohort::tasks::libero {

/// Throws Error for a changed camera that the scene does not have.
std::string scene_text(const SceneFolder& folder);

/// Replaces the value of an attribute within the tag that begins at `tag`; false where it has none.
bool change_attribute(std::string& xml, std::size_t tag, const std::string& name,
                      const std::function<std::string(const std::string&)>& changed);

}  // namespace cohort::tasks::libero
