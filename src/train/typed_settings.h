/// What the command line says of a supervised training, against what files and presets say: a typed setting is done, or it
/// is refused by name. Of two settings of which one outranks the other (train.global_batch_size and train.batch_size) the
/// typed one decides; a typed setting that could do nothing (train.milestones without train.schedule=multistep) is refused.
///
///   run::TypedSettings typed({"train.batch_size=4", "train.milestones=[100]"});
///   settle(typed, settings);  // a global_batch_size of the file is left out, with a line; the milestones are refused
#pragma once
#include "run/typed_settings.h"

namespace cohort::train {

struct RunSettings;

/// Throws Error. Each setting of a file that gives way is named in the log.
void settle(run::TypedSettings& typed, RunSettings& settings);

}  // namespace cohort::train
