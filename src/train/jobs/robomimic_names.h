/// What robomimic's configurations call the fields of data sets.
#pragma once
#include <string>
#include <vector>

namespace cohort::train {

/// The image or number field of a step for an observation of the configuration. `format`: droid_rlds (the DROID
/// pipeline's table of names; other names are fields themselves), robomimic (obs/<name>), droid (observation/<name>).
std::string observation_field(const std::string& name, const std::string& format);

/// The component (data/transforms/component.h) for an entry of train.action_keys. In robomimic's files keys are fields
/// themselves; in the DROID fork's those are that are among `stored`, the fields of the data, and the others follow
/// from pose and velocity.
std::string action_field(const std::string& key, const std::string& format, const std::vector<std::string>& stored);

}  // namespace cohort::train
