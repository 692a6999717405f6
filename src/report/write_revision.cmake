# Run at every build: writes OUTPUT with the git revision of SOURCE, and only when it has changed, so that an unchanged one
# compiles nothing.
set(revision "unknown")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision ${commit})
    # Without the optional lock: this must not get in the way of a git that the user runs at the same time.
    execute_process(COMMAND ${git} --no-optional-locks -C ${SOURCE} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changed ERROR_QUIET)
    if(changed)
      string(APPEND revision "-changed")
    endif()
  endif()
endif()
set(content "#pragma once\n#define COHORT_REVISION \"${revision}\"\n")
set(present "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} present)
endif()
if(NOT present STREQUAL content)
  file(WRITE ${OUTPUT} "${content}")
endif()
