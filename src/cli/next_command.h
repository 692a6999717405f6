/// What a command ends with: the next useful one, on a line of its own that can be pasted as it stands.
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

/// On standard output: "next, WHAT:" and below it `cohort WORDS...`, quoted for a shell. Nothing where this process is a
/// stage of `cohort demo`, which goes on by itself.
void say_next(const std::string& what, const std::vector<std::string>& words);

/// Makes the commands that this process starts stages of its own.
void begin_stages();

}  // namespace cohort::cli
