# cohort_module(NAME SOURCES a.cpp ... [USES module ...] [LINK target ...] [TORCH] [COLD])
#
# Declares the static library cohort_NAME from the sources of src/NAME. USES lists the modules it may include
# (the same arrows that tests/architecture checks). TORCH marks a module that includes LibTorch: it is left out, with a
# message, where LibTorch is missing. COLD marks one without loops over steps, samples or pixels: settings, commands, reports. It is
# compiled with -O1, as LibTorch's modules are (COHORT_COLD_OPTIONS). Every target reuses one of few precompiled headers.
# `cmake --install` puts the library and the headers of src/NAME where find_package(cohort COMPONENTS NAME) finds them, as
# cohort::NAME (CohortInstall).
function(cohort_module name)
  cmake_parse_arguments(M "TORCH;COLD" "" "SOURCES;USES;LINK" ${ARGN})
  if(M_TORCH AND NOT COHORT_TORCH_FOUND)
    message(STATUS "module ${name}: left out, LibTorch is missing")
    return()
  endif()
  add_library(cohort_${name} STATIC ${M_SOURCES})
  set_target_properties(cohort_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE ${COHORT_MODULE_BATCH})
  target_link_libraries(cohort_${name} PUBLIC $<BUILD_INTERFACE:cohort_compile> cohort_headers)
  foreach(used IN LISTS M_USES)
    target_link_libraries(cohort_${name} PUBLIC cohort_${used})
  endforeach()
  target_link_libraries(cohort_${name} PUBLIC ${M_LINK})
  if(M_TORCH)
    target_link_libraries(cohort_${name} PUBLIC cohort_libtorch)
    cohort_use_pch(cohort_${name} torch)
    set_property(GLOBAL APPEND PROPERTY COHORT_TORCH_MODULES ${name})
  elseif(M_COLD)
    cohort_use_pch(cohort_${name} cold)
  else()
    cohort_use_pch(cohort_${name} plain)
  endif()
  set_property(GLOBAL APPEND PROPERTY COHORT_MODULES ${name})
  cohort_install_library(cohort_${name})
  install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/ DESTINATION ${COHORT_INSTALL_HEADERS}/${name} FILES_MATCHING PATTERN "*.h")
endfunction()

# -O1 takes a quarter less time than -O2 to compile, an eighth for LibTorch's sources, whose loops are LibTorch's own or say for
# themselves how they are compiled (rl/wide_loops.h, models/cpu). The objects are as large, and their results the same bits.
set(COHORT_COLD_OPTIONS $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
# cohort_use_pch(TARGET plain|cold|test|torch|torch_test)
#
# Headers that most files include cost each of them 2 s (the standard library's and JSON's, GoogleTest's for tests) to 10 s
# (LibTorch's); they are precompiled once per kind and reused by every target. Sources with options of their own, which must
# not read the result, say SKIP_PRECOMPILE_HEADERS. LibTorch's is not all of torch/torch.h: templates that a header leaves to
# be instantiated cost every file its time again (5 s for torch/torch.h, half of that for these, and half as much more with
# torch/autograd.h, which few files include).
set(COHORT_PCH_plain <algorithm> <chrono> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <span> <string>
                     <thread> <unordered_map> <variant> <vector> <nlohmann/json.hpp>)
set(COHORT_PCH_cold ${COHORT_PCH_plain})
set(COHORT_PCH_test ${COHORT_PCH_plain} <gtest/gtest.h>)
set(COHORT_PCH_torch ${COHORT_PCH_plain} <torch/nn/module.h> <torch/types.h> <torch/utils.h>)
set(COHORT_PCH_torch_test ${COHORT_PCH_torch} <gtest/gtest.h>)
# Tests' own sources: what they call is optimised, what they state is read once.
set(COHORT_TEST_OPTIONS -O0)
function(cohort_use_pch target kind)
  set(owner cohort_${kind}_pch)
  if(NOT TARGET ${owner})
    # CONFIGURE writes only what changed: configuring again does not build the header again.
    set(source ${PROJECT_BINARY_DIR}/generated/${kind}_pch.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "// Owns a precompiled header.\n")
    add_library(${owner} STATIC ${source})
    target_link_libraries(${owner} PUBLIC cohort_compile cohort_json)
    if(kind MATCHES torch)
      target_link_libraries(${owner} PUBLIC cohort_libtorch)
    endif()
    if(kind MATCHES "^(cold|torch)$")
      target_compile_options(${owner} PRIVATE ${COHORT_COLD_OPTIONS})
    endif()
    if(kind MATCHES test)
      target_link_libraries(${owner} PUBLIC GTest::gtest_main)
      target_compile_options(${owner} PRIVATE ${COHORT_TEST_OPTIONS})
      set_target_properties(${owner} PROPERTIES COHORT_TEST ON)
    endif()
    target_precompile_headers(${owner} PRIVATE ${COHORT_PCH_${kind}})
  endif()
  if(kind MATCHES "^(cold|torch)$")
    target_compile_options(${target} PRIVATE ${COHORT_COLD_OPTIONS})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# cohort_executable(NAME SOURCES a.cpp ... USES module ... [LINK target ...] [TORCH] [TEST])
#
# Those of src/ are installed.
function(cohort_executable name)
  cmake_parse_arguments(E "TORCH;TEST" "" "SOURCES;USES;LINK" ${ARGN})
  if(E_TORCH AND NOT COHORT_TORCH_FOUND)
    message(STATUS "executable ${name}: left out, LibTorch is missing")
    return()
  endif()
  add_executable(${name} ${E_SOURCES})
  cmake_path(IS_PREFIX COHORT_SOURCES ${CMAKE_CURRENT_SOURCE_DIR} is_program)
  if(is_program)
    install(TARGETS ${name} RUNTIME DESTINATION bin)
  endif()
  # Libraries that a program loads (COHORT_TASKS) find in it what they call.
  if(NOT E_TEST)
    set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
  endif()
  target_link_libraries(${name} PRIVATE cohort_compile)
  foreach(used IN LISTS E_USES)
    target_link_libraries(${name} PRIVATE cohort_${used})
  endforeach()
  target_link_libraries(${name} PRIVATE ${E_LINK})
  if(E_TEST)
    target_compile_options(${name} PRIVATE ${COHORT_TEST_OPTIONS})
    set_target_properties(${name} PROPERTIES COHORT_TEST ON)
  endif()
  if(E_TORCH)
    target_link_libraries(${name} PRIVATE cohort_libtorch)
  endif()
  if(E_TORCH AND E_TEST)
    cohort_use_pch(${name} torch_test)
  elseif(E_TORCH)
    cohort_use_pch(${name} torch)
  elseif(E_TEST)
    cohort_use_pch(${name} test)
  elseif(is_program)
    cohort_use_pch(${name} cold)
  else()
    cohort_use_pch(${name} plain)
  endif()
endfunction()

# cohort_test(NAME SOURCES a.cpp ... USES module ... [LINK target ...] [TORCH] [LABELS unit|full|gpu ...]
#             [TIMEOUT seconds] [ENVIRONMENT NAME=VALUE ...] [PREFIX text] [SERIAL] [ONE_THREAD] [SHARDS number]
#             [PART name] [TURN number])
#
# One GoogleTest executable; ctest runs each of its cases by name, after PREFIX. Label `unit` is the default: quick, and also
# run under the sanitizers. With COHORT_TEST_SHARDS ctest runs these in SHARDS processes (1). Those with the longest TIMEOUT
# start first, for what starts last is waited for. SERIAL: the test starts processes of its own that use all cores, or measures
# memory. ONE_THREAD: it starts no thread (or one that it waits for at once), and the thread sanitizer has nothing to see. PART: of
# the sanitizers' parts (tests/CMakeLists.txt), where it is not that of the folder. TURN: it takes long and has this turn of
# four; a build for another one (COHORT_LONG_TESTS) does not have it.
function(cohort_test name)
  cmake_parse_arguments(T "TORCH;SERIAL;ONE_THREAD" "TIMEOUT;PREFIX;SHARDS;PART;TURN" "SOURCES;USES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  if(T_TORCH AND NOT COHORT_TORCH_FOUND)
    return()
  endif()
  if(T_ONE_THREAD AND COHORT_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 600)  # for what never ends: a busy machine may take twenty times as long as a quiet one
  endif()
  set(torch_flag "")
  if(T_TORCH)
    set(torch_flag TORCH)
  endif()
  cohort_executable(${name} SOURCES ${T_SOURCES} USES ${T_USES} LINK cohort_test_support GTest::gtest_main ${T_LINK} TEST ${torch_flag})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set(labels ${T_LABELS})
  if(unit IN_LIST T_LABELS)
    set(part ${COHORT_TEST_PART})
    if(T_PART)
      set(part ${T_PART})
    endif()
    add_dependencies(unit_tests_${part} ${name})
    list(APPEND labels ${part})
  endif()
  foreach(label unit gpu)
    if("${label}" IN_LIST T_LABELS)
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  target_compile_options(${name} PRIVATE -Wno-dangling-else)  # GoogleTest's macros under an if
  target_compile_definitions(${name} PRIVATE COHORT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             COHORT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(DEFINED T_TURN)
    cohort_has_turn(has_turn ${T_TURN})
    if(NOT has_turn)
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
      return()
    endif()
  endif()
  # Tests run beside each other: OpenMP's threads that spin while they wait take the cores that the others need (a test of
  # 1.6 s took 20 s of processor time beside one training).
  set(environment COHORT_PYTHON=${COHORT_PYTHON} "COHORT_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" OMP_WAIT_POLICY=passive
      "ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0" "UBSAN_OPTIONS=print_stacktrace=1" ${T_ENVIRONMENT})
  set(serial OFF)
  if(T_SERIAL)
    set(serial ON)
  endif()
  if(COHORT_TEST_SHARDS AND T_LABELS STREQUAL unit AND NOT T_SERIAL)
    cohort_test_shards(${name} "${T_PREFIX}" "${T_SHARDS}" "${labels}" "${environment}")
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 300 TEST_LIST ${name}_cases TEST_PREFIX "${T_PREFIX}"
                       PROPERTIES TIMEOUT ${T_TIMEOUT} COST ${T_TIMEOUT} RUN_SERIAL ${serial})
  # Properties that are lists do not survive gtest_discover_tests (only their first item arrives), so they are set afterwards.
  set(properties_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
  file(WRITE ${properties_file} "foreach(case IN LISTS ${name}_cases)
  set_tests_properties(\"\${case}\" PROPERTIES LABELS \"${labels}\" ENVIRONMENT \"${environment}\")
endforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties_file})
endfunction()

# cohort_has_turn(VARIABLE TURN)
#
# Sets VARIABLE to whether this build has the long tests of TURN. What takes minutes takes turns (scripts/test): 0 watching and ranks
# (and the benchmarks' build), 1 faults, 2 learning and the policies' parity, 3 installation and the parity of simulation and data.
set(COHORT_LONG_TESTS "" CACHE STRING "The turn, 0 to 3, whose long tests this build has; empty: those of all")
if(NOT COHORT_LONG_TESTS MATCHES "^[0-3]?$")
  message(FATAL_ERROR "COHORT_LONG_TESTS=${COHORT_LONG_TESTS}: a turn, 0 to 3, or nothing for all")
endif()
function(cohort_has_turn variable turn)
  set(has OFF)
  if(COHORT_LONG_TESTS STREQUAL "" OR COHORT_LONG_TESTS EQUAL turn)
    set(has ON)
  endif()
  set(${variable} ${has} PARENT_SCOPE)
endfunction()

# cohort_test_shards(NAME PREFIX SHARDS LABELS ENVIRONMENT)
#
# A process that links LibTorch takes 0.4 s of processor time to begin, a quarter of all tests' time where each case has one of
# its own. What its cases did is in build/PRESET/cases/, where tests/check_skips.py reads it.
option(COHORT_TEST_SHARDS "Unit tests' cases share a few processes (scripts/test); OFF: ctest runs each by its name" OFF)
function(cohort_test_shards name prefix shards labels environment)
  if(NOT shards)
    set(shards 1)
  endif()
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${prefix}${name}.${shard} COMMAND ${name})
    set_tests_properties(${prefix}${name}.${shard} PROPERTIES LABELS "${labels}" TIMEOUT 1800 COST 700 ENVIRONMENT
      "${environment};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/cases/${prefix}${name}.${shard}.xml")
  endforeach()
endfunction()

# cohort_lane_sources(SCALAR AVX2 AVX512)
#
# One source for SIMD lanes (src/sim/kernels/lane/lane.h), each time with the instructions of one kind of processor; the
# program chooses at run time. Short loops over three and six numbers have to be unrolled into registers. What these
# options allow does not change a bit of any result; contraction stays off (CohortCompile). A wider source without its instructions
# gives nullptr: so it is on other processors, where COHORT_LANES leaves it out, and for AVX-512 under the sanitizers (the source
# of the others once more, 20 s of a processor each).
set(COHORT_VECTOR_LANES)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(COHORT_VECTOR_LANES avx2 avx512)
  if(COHORT_LANES STREQUAL native AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
    if(flags MATCHES "avx512f" AND flags MATCHES "avx512dq" AND flags MATCHES "avx512vl" AND flags MATCHES "avx512bw")
      set(COHORT_VECTOR_LANES avx512)
    else()
      set(COHORT_VECTOR_LANES avx2)
    endif()
  endif()
  if(COHORT_SANITIZE)
    set(COHORT_VECTOR_LANES avx2)
  endif()
endif()
set(COHORT_LANE_OPTIONS -O3)
if(COHORT_SANITIZE)
  set(COHORT_LANE_OPTIONS -O1)
endif()
list(APPEND COHORT_LANE_OPTIONS -fno-math-errno -fno-trapping-math)
include(CheckCXXCompilerFlag)
# Copies of a few registers' size as registers; GCC takes `rep movs` for them otherwise, which is slow to begin.
check_cxx_compiler_flag("-mmove-max=256 -mstore-max=256" COHORT_MOVES_REGISTERS)
set(COHORT_MOVE_OPTIONS)
if(COHORT_MOVES_REGISTERS)
  list(APPEND COHORT_MOVE_OPTIONS -mmove-max=256 -mstore-max=256)
endif()
# Likewise for loops that copy or clear a few registers.
check_cxx_compiler_flag("-fno-tree-loop-distribute-patterns" COHORT_KEEPS_LOOPS)
if(COHORT_KEEPS_LOOPS)
  list(APPEND COHORT_MOVE_OPTIONS -fno-tree-loop-distribute-patterns)
endif()
# Under all of the address and undefined-behaviour sanitizers' checks each of the vector lanes takes GCC four minutes; without
# the second and without the ends of scopes, one. The scalar lanes are the same source and keep every check.
set(COHORT_VECTOR_OPTIONS ${COHORT_LANE_OPTIONS})
if(COHORT_SANITIZE MATCHES address)
  list(APPEND COHORT_VECTOR_OPTIONS -fno-sanitize=undefined -fno-sanitize-address-use-after-scope)
endif()
function(cohort_lane_sources scalar avx2 avx512)
  set_source_files_properties(${scalar} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${COHORT_LANE_OPTIONS}")
  set(avx2_options -mavx2 -mfma)
  set(avx512_options ${avx2_options} -mavx512f -mavx512dq -mavx512vl -mavx512bw)
  foreach(lanes avx2 avx512)
    set(options ${COHORT_VECTOR_OPTIONS})
    if(lanes IN_LIST COHORT_VECTOR_LANES)
      list(APPEND options ${${lanes}_options} ${COHORT_MOVE_OPTIONS})
    endif()
    set_source_files_properties(${${lanes}} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${options}")
  endforeach()
endfunction()
