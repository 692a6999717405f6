# CUDA, where a compiler for it is found (nvcc in PATH, CUDACXX or CMAKE_CUDA_COMPILER). COHORT_CUDA: AUTO takes it when there,
# ON insists, OFF leaves it. Defines COHORT_CUDA_FOUND.
set(COHORT_CUDA AUTO CACHE STRING "CUDA kernels: AUTO (where nvcc is found), ON (required), OFF")
set(COHORT_CUDA_FOUND OFF)
if(COHORT_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # Machine code for one generation and PTX, from which the driver compiles for later ones; a release lists all.
      set(CMAKE_CUDA_ARCHITECTURES 80)
    endif()
    enable_language(CUDA)
    set(COHORT_CUDA_FOUND ON)
  elseif(COHORT_CUDA STREQUAL "ON")
    message(FATAL_ERROR "COHORT_CUDA=ON, but no CUDA compiler was found: put nvcc into PATH or set CMAKE_CUDA_COMPILER")
  else()
    message(STATUS "no CUDA compiler: CUDA kernels are left out")
  endif()
endif()

# cohort_cuda_library(NAME SOURCES a.cu ...): a static library of kernels, with plain pointers as its interface. It shares
# libcudart with LibTorch (nvcc's major version is LibTorch's), so that both see the same current device.
function(cohort_cuda_library name)
  cmake_parse_arguments(C "" "" "SOURCES" ${ARGN})
  add_library(${name} STATIC ${C_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  # CMake 3.25 does not know nvcc's flag for C++20: kernels and the headers they share are C++17.
  target_compile_features(${name} PRIVATE cuda_std_17)
  target_compile_options(${name} PRIVATE -fmad=false -Xcompiler=-fPIC,-Wall)
  if(COHORT_WERROR)
    target_compile_options(${name} PRIVATE -Werror=all-warnings)
  endif()
  set_target_properties(${name} PROPERTIES CUDA_RUNTIME_LIBRARY Shared CUDA_STANDARD 17)
endfunction()
