# What the build needs beside the third parts of the libraries (CohortThirdParts): a Python whose site-packages hold the
# wheels, which scripts/setup fills (.deps/python; a machine that has its own is named by -DCOHORT_PYTHON=PATH), what
# executables, tests and benchmarks are linked with, Boost's headers, and CUDA's.
#
# Defines: CLI11::CLI11, GTest::gtest_main, benchmark::benchmark, cohort_torch_format, COHORT_CUDA_HEADERS,
# COHORT_TORCH_MINOR.
find_program(COHORT_PYTHON NAMES python3 PATHS ${PROJECT_SOURCE_DIR}/.deps/python/bin NO_DEFAULT_PATH
             DOC "Python whose site-packages hold torch and mujoco; used while building and testing only")
include(CohortThirdParts)

find_package(CLI11 2.1 REQUIRED)
# WebSocket: headers alone, which two sources include (src/serve). libboost-dev, 1.74 or later.
find_path(COHORT_BOOST_INCLUDE boost/beast/websocket.hpp)
if(COHORT_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(COHORT_BENCH)
  find_package(benchmark REQUIRED)
endif()

set(COHORT_CUDA_HEADERS "")
set(COHORT_TORCH_MINOR "")
if(COHORT_TORCH_FOUND)
  # Its minor version, e.g. 2.11: a wheel's programs look whether PyTorch beside them has it.
  file(STRINGS ${torch_dir}/include/torch/headeronly/version.h torch_numbers REGEX "^#define TORCH_VERSION_M(AJOR|INOR) [0-9]+$")
  string(REGEX REPLACE "[^0-9;]" "" torch_numbers "${torch_numbers}")
  list(JOIN torch_numbers "." COHORT_TORCH_MINOR)
  # Formatting with the fmt of that include tree (src/core/format.h).
  add_library(cohort_torch_format STATIC ${PROJECT_SOURCE_DIR}/src/core/vformat.cpp)
  target_link_libraries(cohort_torch_format PRIVATE $<BUILD_INTERFACE:cohort_compile>)
  target_include_directories(cohort_torch_format SYSTEM PRIVATE ${torch_dir}/include)
  target_link_libraries(cohort_libtorch INTERFACE cohort_torch_format)
  cohort_install_library(cohort_torch_format)
  # cuda_runtime.h and cuda_fp16.h include headers that lie in wheels of their own; CUDA 13 keeps the second in a folder.
  find_path(cuda_include crt/host_defines.h PATHS ${torch_site}/nvidia/cu13/include /usr/local/cuda/include)
  find_path(cuda_cccl_include nv/target PATHS ${cuda_include} ${cuda_include}/cccl NO_DEFAULT_PATH)
  if(EXISTS "${torch_dir}/lib/libtorch_cuda.so")
    if(cuda_include AND cuda_cccl_include)
      set(COHORT_CUDA_HEADERS ${cuda_include} ${cuda_cccl_include})
      list(REMOVE_DUPLICATES COHORT_CUDA_HEADERS)
    else()
      message(STATUS "CUDA's headers crt/host_defines.h and nv/target not found (a toolkit, or the wheels nvidia-cuda-crt and "
                     "nvidia-cuda-cccl): tensors on CUDA devices are left out")
    endif()
  endif()
endif()
