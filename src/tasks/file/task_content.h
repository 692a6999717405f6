/// What a task's file says with what it includes, and the copies of runs that stand for files which are gone.
///
///   return of_file_or_copy(named, [&](const std::string& path) { return plan_of_file(path, read_content(path), false); });
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "core/config.h"
#include "core/error.h"

namespace cohort::tasks {

/// The file's content, on top of the file that it includes. Throws Error naming the file, and the line where there is one.
config::Json read_content(const std::string& path);

/// The file that is read for this one: itself, or the copy that stands for it.
std::string present_file(const std::string& task);

/// The copy that may stand for a file which is there, where what it names is gone; "": there is none.
std::string spare_copy(const std::string& task);

/// Whether the copy is to be read from now on, which it can be: the file says the same as when the copy was made, or what it
/// says cannot be read as a file that it includes is gone. Says so then, with `trouble`. Where the file says something else,
/// throws Error of `trouble` with the copy as its remedy.
void use_spare_copy(const std::string& task, const std::string& trouble);

/// What `make` makes of the task's file; where that fails and a copy is there of which it does not, of the copy.
template <class Make>
auto of_file_or_copy(const std::string& task, const Make& make) {
  try {
    return make(present_file(task));
  } catch (const Error& e) {
    const std::string copy = spare_copy(task);
    if (copy.empty()) throw;
    std::optional<decltype(make(copy))> made;
    try {
      made.emplace(make(copy));
    } catch (const Error&) {  // the file's own fault is told
    }
    if (!made) throw;
    use_spare_copy(task, e.what());
    return std::move(*made);
  }
}

}  // namespace cohort::tasks
