/// Standard input, output and error of a program that was started without them.
#pragma once

namespace cohort {

/// Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed (`cohort train >&-`, some service managers).
/// Otherwise the next file or pipe that the program opens gets that number, and what is printed goes into it. To be
/// called before anything else is opened, while there is one thread. Throws Error where there is no /dev/null.
void open_standard_descriptors();

}  // namespace cohort
