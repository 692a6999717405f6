# Compiler settings that every target shares, as the interface target cohort_compile.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# A sanitized build runs every unit test once: -O1 keeps both the build and the run short. Asserts stay on.
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
find_program(COHORT_CCACHE ccache)
if(COHORT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${COHORT_CCACHE})
endif()

# Reading the precompiled headers and compiling what they leave to every file takes most of a step's time, so sources are compiled
# together: thirty-two of a module, sixteen of a program or a test, whose few files change most. Thirty-two instead of sixteen take
# a seventh less time, as sixteen did instead of eight; LibTorch's take 1.9 GiB then. After a change of one file all of its batch are
# compiled again. Sources with options or definitions of their own stay single.
option(COHORT_UNITY "Compile sources in batches: thirty-two of a module, sixteen of a program" OFF)
set(COHORT_MODULE_BATCH 32)
if(COHORT_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()

set(COHORT_LANES all CACHE STRING "Vector kernels that this build has: all, or native: those of this processor (cohort_lane_sources)")
if(NOT COHORT_LANES MATCHES "^(all|native)$")
  message(FATAL_ERROR "COHORT_LANES=${COHORT_LANES}: all or native")
endif()

add_library(cohort_compile INTERFACE)
target_include_directories(cohort_compile INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
# Contraction stays off: results are promised bit-identical between vector widths (docs/design/architecture.md, promise 1).
# -fPIC everywhere: the precompiled LibTorch header is shared by libraries and executables, which must agree on it.
target_compile_options(cohort_compile INTERFACE -fPIC -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
                                                -ffp-contract=off)
# GCC 12 takes joined std::strings for reads and writes beyond their ends, depending on the lengths of their literals, of the
# checkout's path among them (its bug 105651); the address sanitizer looks for real ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  foreach(warning array-bounds restrict stringop-overflow stringop-overread)
    target_compile_options(cohort_compile INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-${warning}>)
  endforeach()
endif()
# GCC collects its garbage from 128 MiB on, again and again: a seventh of the time of compiling. From 512 MiB on, the largest
# batch takes 1.4 instead of 1.3 GiB; not a byte of the objects changes.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(cohort_compile INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-expand=200;--param=ggc-min-heapsize=524288>")
endif()
if(COHORT_UNITY)
  # GCC takes an included source for a header, in which a type must not have members of a nameless namespace.
  target_compile_options(cohort_compile INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(COHORT_WERROR)
  target_compile_options(cohort_compile INTERFACE -Werror)
endif()
if(COHORT_SANITIZE)
  # Checks of undefined behaviour make optimised compilation slow (20 against 8 s for a file that includes JSON), and the
  # tests are quick; sim, whose tests are not, sets -O1 for itself.
  if(COHORT_SANITIZE MATCHES undefined)
    target_compile_options(cohort_compile INTERFACE -O0)
  endif()
  target_compile_options(cohort_compile INTERFACE -fsanitize=${COHORT_SANITIZE} -fno-sanitize-recover=undefined)
  # An access by a null pointer is the address sanitizer's to report; the check before each takes a fifth of the compiling.
  if(COHORT_SANITIZE MATCHES address AND COHORT_SANITIZE MATCHES undefined)
    target_compile_options(cohort_compile INTERFACE -fno-sanitize=null)
  endif()
  # Undefined behaviour is looked for in what tests call, not in tests: a third of the time of compiling these.
  target_compile_options(cohort_compile INTERFACE $<$<BOOL:$<TARGET_PROPERTY:COHORT_TEST>>:-fno-sanitize=undefined>)
  target_link_options(cohort_compile INTERFACE -fsanitize=${COHORT_SANITIZE})
endif()
find_package(Threads REQUIRED)
target_link_libraries(cohort_compile INTERFACE Threads::Threads)
configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${PROJECT_BINARY_DIR}/generated/cohort_version.h)
