/// What a shell would have put in place of the front of a path: settings in files, and behind `key.path=` or `--flag=`,
/// reach the program as they were typed.
#pragma once
#include <string>

namespace cohort {

/// `text` with `~/` at its front as $HOME/, and with `$NAME/` or `${NAME}/` as the value of that environment variable (`$NAME`
/// alone where there is one). Any other text as it is: `~` alone may stand for a missing value, and a folder that is called ~ is
/// `./~/`. Throws Error where the variable of a path is not set.
std::string with_home(const std::string& text);

/// The same of a command line's word: what stands behind the first `=` of `key=PATH` or `--flag=PATH`, else all of it.
std::string word_with_home(const std::string& word);

}  // namespace cohort
