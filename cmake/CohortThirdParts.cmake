# The third parts that Cohort's libraries are linked with, as imported targets: found here for the build, and again by the
# installed cohort-config.cmake for a project that uses the libraries. Wheels lie in the Python environment whose
# site-packages COHORT_SITE_PACKAGES names.
#
# Defines: cohort_json, cohort_protozero, cohort_utf8proc, cohort_xxhash, cohort_crypto, cohort_jpeg, cohort_png, cohort_hdf5, cohort_deflate, cohort_ffmpeg, cohort_chipmunk,
# cohort_sentencepiece, cohort_yaml, cohort_libtorch, cohort_mujoco_headers, cohort_mujoco, and COHORT_TORCH_FOUND, COHORT_MUJOCO_FOUND, COHORT_MUJOCO_FILE and
# _FOLDER.
include_guard(DIRECTORY)
if(NOT COHORT_PYTHON)
  find_program(COHORT_PYTHON NAMES python3 DOC "Python whose site-packages hold torch and mujoco")
endif()
if(COHORT_PYTHON AND NOT COHORT_SITE_PACKAGES)
  execute_process(COMMAND ${COHORT_PYTHON} -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
                  OUTPUT_VARIABLE site OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(COHORT_SITE_PACKAGES "${site}" CACHE PATH "Where the wheels are unpacked")
endif()

find_package(nlohmann_json 3.11 REQUIRED)
add_library(cohort_json INTERFACE IMPORTED)
target_link_libraries(cohort_json INTERFACE nlohmann_json::nlohmann_json)

find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)

# Headers without CMake files; Gloo's are what ProcessGroupGloo.hpp asks for, its code lies inside LibTorch.
find_path(COHORT_GLOO_INCLUDE gloo/config.h)
find_path(COHORT_PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
add_library(cohort_protozero INTERFACE IMPORTED)
target_include_directories(cohort_protozero SYSTEM INTERFACE ${COHORT_PROTOZERO_INCLUDE})

find_path(COHORT_UTF8PROC_INCLUDE utf8proc.h REQUIRED)  # libutf8proc-dev
find_library(COHORT_UTF8PROC_LIBRARY utf8proc REQUIRED)
add_library(cohort_utf8proc INTERFACE IMPORTED)
target_include_directories(cohort_utf8proc SYSTEM INTERFACE ${COHORT_UTF8PROC_INCLUDE})
target_link_libraries(cohort_utf8proc INTERFACE ${COHORT_UTF8PROC_LIBRARY})
find_path(COHORT_XXHASH_INCLUDE xxhash.h REQUIRED)  # libxxhash-dev
add_library(cohort_xxhash INTERFACE IMPORTED)
target_include_directories(cohort_xxhash SYSTEM INTERFACE ${COHORT_XXHASH_INCLUDE})

find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)  # libssl-dev: signatures of agents' messages
add_library(cohort_crypto INTERFACE IMPORTED)
target_link_libraries(cohort_crypto INTERFACE OpenSSL::Crypto)

# Robot data. zlib comes with every system; each of the others may be missing.
find_package(ZLIB REQUIRED)
foreach(library JPEG PNG HDF5 DEFLATE)
  set(COHORT_${library}_FOUND OFF)
endforeach()
find_path(COHORT_TURBOJPEG_INCLUDE turbojpeg.h)
find_library(COHORT_TURBOJPEG_LIBRARY turbojpeg)
if(COHORT_TURBOJPEG_INCLUDE AND COHORT_TURBOJPEG_LIBRARY)
  set(COHORT_JPEG_FOUND ON)
  add_library(cohort_jpeg INTERFACE IMPORTED)
  target_include_directories(cohort_jpeg SYSTEM INTERFACE ${COHORT_TURBOJPEG_INCLUDE})
  target_link_libraries(cohort_jpeg INTERFACE ${COHORT_TURBOJPEG_LIBRARY})
endif()
find_package(PNG QUIET)
if(TARGET PNG::PNG)
  set(COHORT_PNG_FOUND ON)
  add_library(cohort_png INTERFACE IMPORTED)
  target_link_libraries(cohort_png INTERFACE PNG::PNG)
endif()
# The serial C library; Debian keeps its files apart from those of the MPI builds.
find_path(COHORT_HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(COHORT_HDF5_LIBRARY NAMES hdf5_serial hdf5)
if(COHORT_HDF5_INCLUDE AND COHORT_HDF5_LIBRARY)
  set(COHORT_HDF5_FOUND ON)
  add_library(cohort_hdf5 INTERFACE IMPORTED)
  target_include_directories(cohort_hdf5 SYSTEM INTERFACE ${COHORT_HDF5_INCLUDE})
  target_link_libraries(cohort_hdf5 INTERFACE ${COHORT_HDF5_LIBRARY})
endif()
# Inflates HDF5's chunks faster than zlib, which stands in for it.
find_path(COHORT_LIBDEFLATE_INCLUDE libdeflate.h)
find_library(COHORT_LIBDEFLATE_LIBRARY deflate)
if(COHORT_LIBDEFLATE_INCLUDE AND COHORT_LIBDEFLATE_LIBRARY)
  set(COHORT_DEFLATE_FOUND ON)
  add_library(cohort_deflate INTERFACE IMPORTED)
  target_include_directories(cohort_deflate SYSTEM INTERFACE ${COHORT_LIBDEFLATE_INCLUDE})
  target_link_libraries(cohort_deflate INTERFACE ${COHORT_LIBDEFLATE_LIBRARY})
endif()

# Video: FFmpeg's libraries, with the encoder libx264 at run time.
find_package(PkgConfig QUIET)
set(COHORT_FFMPEG_FOUND OFF)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(COHORT_LIBAV QUIET IMPORTED_TARGET libavcodec libavformat libavutil libswscale)
  if(TARGET PkgConfig::COHORT_LIBAV)
    set(COHORT_FFMPEG_FOUND ON)
    add_library(cohort_ffmpeg INTERFACE IMPORTED)
    target_link_libraries(cohort_ffmpeg INTERFACE PkgConfig::COHORT_LIBAV)
  endif()
endif()

# The physics of Push-T.
find_path(COHORT_CHIPMUNK_INCLUDE chipmunk/chipmunk.h)
find_library(COHORT_CHIPMUNK_LIBRARY chipmunk)
if(COHORT_CHIPMUNK_INCLUDE AND COHORT_CHIPMUNK_LIBRARY)
  add_library(cohort_chipmunk INTERFACE IMPORTED)
  target_include_directories(cohort_chipmunk SYSTEM INTERFACE ${COHORT_CHIPMUNK_INCLUDE})
  target_link_libraries(cohort_chipmunk INTERFACE ${COHORT_CHIPMUNK_LIBRARY})
endif()

# T5's tokens. Its shared library keeps a protobuf of its own, whose symbols LibTorch's copy does not meet.
set(COHORT_SENTENCEPIECE_FOUND OFF)
find_path(COHORT_SENTENCEPIECE_INCLUDE sentencepiece_processor.h)  # libsentencepiece-dev
find_library(COHORT_SENTENCEPIECE_LIBRARY sentencepiece)
if(COHORT_SENTENCEPIECE_INCLUDE AND COHORT_SENTENCEPIECE_LIBRARY)
  set(COHORT_SENTENCEPIECE_FOUND ON)
  add_library(cohort_sentencepiece INTERFACE IMPORTED)
  target_include_directories(cohort_sentencepiece SYSTEM INTERFACE ${COHORT_SENTENCEPIECE_INCLUDE})
  target_link_libraries(cohort_sentencepiece INTERFACE ${COHORT_SENTENCEPIECE_LIBRARY})
endif()

# RDT's base.yaml.
set(COHORT_YAML_FOUND OFF)
find_path(COHORT_YAML_INCLUDE yaml-cpp/yaml.h)  # libyaml-cpp-dev
find_library(COHORT_YAML_LIBRARY yaml-cpp)
if(COHORT_YAML_INCLUDE AND COHORT_YAML_LIBRARY)
  set(COHORT_YAML_FOUND ON)
  add_library(cohort_yaml INTERFACE IMPORTED)
  target_include_directories(cohort_yaml SYSTEM INTERFACE ${COHORT_YAML_INCLUDE})
  target_link_libraries(cohort_yaml INTERFACE ${COHORT_YAML_LIBRARY})
endif()

# LibTorch: the wheel's headers and shared libraries, without its CMake files (they ask for a CUDA toolkit).
set(COHORT_TORCH_FOUND OFF)
if(COHORT_TORCH AND NOT EXISTS "${COHORT_SITE_PACKAGES}/torch/lib/libtorch_cpu.so")
  # A machine's own Python may keep torch elsewhere than purelib (a target folder on PYTHONPATH, say).
  execute_process(COMMAND ${COHORT_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                  OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
else()
  set(torch_dir ${COHORT_SITE_PACKAGES}/torch)
endif()
if(COHORT_TORCH AND torch_dir AND EXISTS "${torch_dir}/lib/libtorch_cpu.so")
  set(COHORT_TORCH_FOUND ON)
  add_library(cohort_libtorch INTERFACE IMPORTED)
  target_include_directories(cohort_libtorch SYSTEM INTERFACE ${torch_dir}/include
                                                              ${torch_dir}/include/torch/csrc/api/include)
  # The wheel's include tree also holds fmt/, and its c10d headers want macros that its own build sets.
  target_compile_definitions(cohort_libtorch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  if(COHORT_GLOO_INCLUDE)
    target_include_directories(cohort_libtorch SYSTEM INTERFACE ${COHORT_GLOO_INCLUDE})
  endif()
  target_link_libraries(cohort_libtorch INTERFACE ${torch_dir}/lib/libtorch_cpu.so ${torch_dir}/lib/libc10.so)
  cmake_path(GET torch_dir PARENT_PATH torch_site)
  file(GLOB wheel_libs ${torch_site}/nvidia/*/lib)
  foreach(dir IN LISTS wheel_libs)
    target_link_options(cohort_libtorch INTERFACE "-Wl,-rpath-link,${dir}")
  endforeach()
  target_link_options(cohort_libtorch INTERFACE "-Wl,-rpath,${torch_dir}/lib")
else()
  message(STATUS "LibTorch not found under ${COHORT_SITE_PACKAGES}: the modules that need it are left out")
endif()

# MuJoCo's C library from the wheel mujoco-core.
set(COHORT_MUJOCO_SITE ${COHORT_SITE_PACKAGES} CACHE PATH "Folder into which the wheel mujoco-core is unpacked")
set(COHORT_MUJOCO_FOUND OFF)
file(GLOB mujoco_header ${COHORT_MUJOCO_SITE}/mujoco*/include/mujoco/mujoco.h)
file(GLOB mujoco_library ${COHORT_MUJOCO_SITE}/mujoco*/libmujoco.so*)
if(mujoco_header AND mujoco_library)
  list(GET mujoco_header 0 mujoco_header)
  list(GET mujoco_library 0 mujoco_library)
  cmake_path(GET mujoco_header PARENT_PATH mujoco_include)
  cmake_path(GET mujoco_include PARENT_PATH mujoco_include)
  cmake_path(GET mujoco_library PARENT_PATH mujoco_lib_dir)
  # Programs open the library themselves, when something of it is called (src/sim/host/import/library.h).
  cmake_path(GET mujoco_library FILENAME COHORT_MUJOCO_FILE)
  set(COHORT_MUJOCO_FOLDER ${mujoco_lib_dir})
  add_library(cohort_mujoco_headers INTERFACE IMPORTED)
  target_include_directories(cohort_mujoco_headers SYSTEM INTERFACE ${mujoco_include})
  # Tests and benchmarks, which compare with it, link it.
  add_library(cohort_mujoco INTERFACE IMPORTED)
  target_link_libraries(cohort_mujoco INTERFACE cohort_mujoco_headers ${mujoco_library})
  target_link_options(cohort_mujoco INTERFACE "-Wl,-rpath,${mujoco_lib_dir}")
  set(COHORT_MUJOCO_FOUND ON)
else()
  message(STATUS "MuJoCo not found under ${COHORT_MUJOCO_SITE}: what needs it is left out")
endif()
