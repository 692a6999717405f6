/// The page's style and script as they lie in src/view/page/, put into the programs by CMake.
#pragma once

namespace cohort::view {

extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace cohort::view
