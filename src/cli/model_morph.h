/// A model's file on the command line.
#pragma once
#include <string>

#include "sim/entity.h"

namespace cohort::cli {

/// What the file is added to a scene as: Urdf where its content is URDF, whatever its name, otherwise Mjcf.
sim::Morph morph_of(const std::string& file, bool fixed_base);

}  // namespace cohort::cli
