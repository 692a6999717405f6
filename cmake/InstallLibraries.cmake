# Run by `cmake --install`: makes PREFIX whole. What the programs and libraries of PREFIX load from wheels (LibTorch, MuJoCo, Arrow
# and what those need) comes into PREFIX/lib, as hard links where PREFIX lies on the same file system, else as copies; and all
# look for it there alone, so that neither the checkout nor its .deps is needed any more. The distribution's libraries stay the
# system's. The wheel of scripts/wheel leaves this out: pip installs those libraries beside it.
#
#   COHORT_PREFIX  COHORT_FROM (the folder of the wheels)  COHORT_FOLDERS (in it, with libraries)  COHORT_OPENED (files that are
#   opened by name)  COHORT_ON_GPUS (what CUDA needs comes, too; else the CUDA plugin looks for it where it was built)
file(GLOB programs ${COHORT_PREFIX}/bin/cohort*)
file(GLOB plugins ${COHORT_PREFIX}/lib/libcohort_*.so ${COHORT_PREFIX}/lib/cohort_*.so)
if(NOT COHORT_ON_GPUS)
  list(FILTER plugins EXCLUDE REGEX "/libcohort_cuda\\.so$")
endif()
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} LIBRARIES ${plugins} DIRECTORIES ${COHORT_FOLDERS}
     RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR lacking CONFLICTING_DEPENDENCIES_PREFIX several
     POST_INCLUDE_REGEXES "^${COHORT_FROM}/" POST_EXCLUDE_REGEXES "." PRE_EXCLUDE_REGEXES "^lib(cuda|nvidia-ml)\\.so")
foreach(name IN LISTS several_FILENAMES)
  list(GET several_${name} 0 first)
  list(APPEND needed ${first})
endforeach()
if(lacking)
  message(WARNING "no file was found for ${lacking}, which the programs load: they are left to the system's linker")
endif()
list(APPEND needed ${COHORT_OPENED})
list(REMOVE_DUPLICATES needed)
foreach(path IN LISTS needed)
  cmake_path(GET path FILENAME name)
  file(REAL_PATH ${path} file)
  file(REMOVE ${COHORT_PREFIX}/lib/${name})
  file(CREATE_LINK ${file} ${COHORT_PREFIX}/lib/${name} COPY_ON_ERROR)
endforeach()
foreach(file IN LISTS programs plugins)
  file(RPATH_SET FILE ${file} NEW_RPATH "$ORIGIN/../lib")
endforeach()
list(LENGTH needed count)
message(STATUS "Installed: ${count} libraries of wheels in ${COHORT_PREFIX}/lib")
