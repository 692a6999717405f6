# cohort_module(NAME SOURCES a.cpp ... [USES module ...] [LINK target ...] [TORCH])
#
# Declares the static library cohort_NAME from the sources of src/NAME. USES lists the modules it may include
# (the same arrows that tests/architecture checks). TORCH marks a module that includes LibTorch: it is left out, with a
# message, where LibTorch is missing, and shares one precompiled header with the others.
function(cohort_module name)
  cmake_parse_arguments(M "TORCH" "" "SOURCES;USES;LINK" ${ARGN})
  if(M_TORCH AND NOT COHORT_TORCH_FOUND)
    message(STATUS "module ${name}: left out, LibTorch is missing")
    return()
  endif()
  add_library(cohort_${name} STATIC ${M_SOURCES})
  target_link_libraries(cohort_${name} PUBLIC cohort_compile)
  foreach(used IN LISTS M_USES)
    target_link_libraries(cohort_${name} PUBLIC cohort_${used})
  endforeach()
  target_link_libraries(cohort_${name} PUBLIC ${M_LINK})
  if(M_TORCH)
    target_link_libraries(cohort_${name} PUBLIC cohort_libtorch)
    cohort_use_torch_pch(cohort_${name})
  endif()
endfunction()

# LibTorch's headers cost 10 s a file and more; one precompiled header is built once and reused by every target that asks. It
# holds what most files need, not all of torch/torch.h: templates that a header leaves to be instantiated cost every file its
# time again (5 s for torch/torch.h, half of that for these).
function(cohort_use_torch_pch target)
  if(NOT TARGET cohort_torch_pch)
    # CONFIGURE writes only what changed: configuring again does not build the header again.
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/torch_pch.cpp CONTENT "// Owns the precompiled LibTorch header.\n")
    add_library(cohort_torch_pch STATIC ${PROJECT_BINARY_DIR}/generated/torch_pch.cpp)
    target_link_libraries(cohort_torch_pch PUBLIC cohort_compile cohort_libtorch)
    target_precompile_headers(cohort_torch_pch PRIVATE <torch/autograd.h> <torch/nn/module.h> <torch/types.h> <torch/utils.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM cohort_torch_pch)
endfunction()

# cohort_executable(NAME SOURCES a.cpp ... USES module ... [LINK target ...] [TORCH])
function(cohort_executable name)
  cmake_parse_arguments(E "TORCH" "" "SOURCES;USES;LINK" ${ARGN})
  if(E_TORCH AND NOT COHORT_TORCH_FOUND)
    message(STATUS "executable ${name}: left out, LibTorch is missing")
    return()
  endif()
  add_executable(${name} ${E_SOURCES})
  target_link_libraries(${name} PRIVATE cohort_compile)
  foreach(used IN LISTS E_USES)
    target_link_libraries(${name} PRIVATE cohort_${used})
  endforeach()
  target_link_libraries(${name} PRIVATE ${E_LINK})
  if(E_TORCH)
    target_link_libraries(${name} PRIVATE cohort_libtorch)
    cohort_use_torch_pch(${name})
  endif()
endfunction()

# cohort_test(NAME SOURCES a.cpp ... USES module ... [LINK target ...] [TORCH] [LABELS unit|full|gpu ...]
#             [TIMEOUT seconds] [ENVIRONMENT NAME=VALUE ...] [SERIAL])
#
# One GoogleTest executable; ctest runs each of its cases by name. Label `unit` is the default: quick, and also run under the
# sanitizers. SERIAL: the test starts processes of its own that use all cores, or measures memory.
function(cohort_test name)
  cmake_parse_arguments(T "TORCH;SERIAL" "TIMEOUT" "SOURCES;USES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  if(T_TORCH AND NOT COHORT_TORCH_FOUND)
    return()
  endif()
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  set(torch_flag "")
  if(T_TORCH)
    set(torch_flag TORCH)
  endif()
  cohort_executable(${name} SOURCES ${T_SOURCES} USES ${T_USES} LINK GTest::gtest_main ${T_LINK} ${torch_flag})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if("unit" IN_LIST T_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
  target_compile_options(${name} PRIVATE -Wno-dangling-else)  # GoogleTest's macros under an if
  target_compile_definitions(${name} PRIVATE COHORT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             COHORT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set(environment COHORT_PYTHON=${COHORT_PYTHON} "COHORT_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
      "ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0" "UBSAN_OPTIONS=print_stacktrace=1" ${T_ENVIRONMENT})
  set(serial OFF)
  if(T_SERIAL)
    set(serial ON)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_LIST ${name}_cases
                       PROPERTIES TIMEOUT ${T_TIMEOUT} RUN_SERIAL ${serial})
  # Properties that are lists do not survive gtest_discover_tests (only their first item arrives), so they are set afterwards.
  set(properties_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
  file(WRITE ${properties_file} "foreach(case IN LISTS ${name}_cases)
  set_tests_properties(\"\${case}\" PROPERTIES LABELS \"${T_LABELS}\" ENVIRONMENT \"${environment}\")
endforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties_file})
endfunction()
