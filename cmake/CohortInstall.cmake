# `cmake --install build/release --prefix PREFIX` gives another project the modules as libraries:
#
#   find_package(cohort REQUIRED COMPONENTS sim parallel)        # -DCMAKE_PREFIX_PATH=PREFIX
#   target_link_libraries(program PRIVATE cohort::sim cohort::parallel)
#
# PREFIX/bin: the programs. PREFIX/include/cohort: the headers, under the paths that they have in src/. PREFIX/lib: static
# libraries, and those that the programs load from wheels (InstallLibraries): the programs of PREFIX run when the checkout is gone
# or PREFIX is moved. PREFIX/lib/cmake/cohort: the package's files. examples/sim_ddp is such a project.
option(COHORT_INSTALL_LIBRARIES "cmake --install brings the libraries of wheels, too (hard links where it can)" ON)
if(COHORT_LANES STREQUAL native)
  install(CODE "message(WARNING \"this build has the kernels of this processor alone; before PREFIX goes to other machines: scripts/build release --target programs\")")
endif()
set(COHORT_INSTALL_HEADERS include/cohort)
set(COHORT_INSTALL_PACKAGE lib/cmake/cohort)
set(COHORT_SOURCES ${PROJECT_SOURCE_DIR}/src)
# Until InstallLibraries has brought it, programs and the CUDA plugin find LibTorch where they were linked with it.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# What a user of the libraries needs of the compiler: the options of cohort_compile are the build's own.
add_library(cohort_headers INTERFACE)
target_include_directories(cohort_headers INTERFACE $<INSTALL_INTERFACE:${COHORT_INSTALL_HEADERS}>)
target_compile_features(cohort_headers INTERFACE cxx_std_20)
target_link_libraries(cohort_headers INTERFACE Threads::Threads)

# cohort_install_library(TARGET): the library cohort_NAME as cohort::NAME.
function(cohort_install_library target)
  string(REGEX REPLACE "^cohort_" "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT cohort_targets ARCHIVE DESTINATION lib)
endfunction()
cohort_install_library(cohort_headers)

# The package's files; called when every module has been declared.
function(cohort_install_package)
  include(CMakePackageConfigHelpers)
  get_property(COHORT_MODULES GLOBAL PROPERTY COHORT_MODULES)
  get_property(COHORT_TORCH_MODULES GLOBAL PROPERTY COHORT_TORCH_MODULES)
  # The third parts that were found (CohortThirdParts), without their prefix.
  get_property(COHORT_PARTS DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTY IMPORTED_TARGETS)
  list(FILTER COHORT_PARTS INCLUDE REGEX "^cohort_")
  list(TRANSFORM COHORT_PARTS REPLACE "^cohort_" "")
  set(folder ${PROJECT_BINARY_DIR}/package)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cohort-config.cmake.in ${folder}/cohort-config.cmake
                                INSTALL_DESTINATION ${COHORT_INSTALL_PACKAGE} NO_SET_AND_CHECK_MACRO)
  # Libraries are static and the interfaces young: a program is built with the version that it asks for.
  write_basic_package_version_file(${folder}/cohort-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${folder}/cohort-config.cmake ${folder}/cohort-config-version.cmake
                ${PROJECT_SOURCE_DIR}/cmake/CohortThirdParts.cmake DESTINATION ${COHORT_INSTALL_PACKAGE})
  install(EXPORT cohort_targets NAMESPACE cohort:: FILE cohort-targets.cmake DESTINATION ${COHORT_INSTALL_PACKAGE})
  install(FILES ${PROJECT_BINARY_DIR}/generated/cohort_version.h DESTINATION ${COHORT_INSTALL_HEADERS})
  if(COHORT_INSTALL_LIBRARIES AND NOT APPLE AND COHORT_SITE_PACKAGES)
    file(GLOB folders ${COHORT_SITE_PACKAGES}/torch/lib ${COHORT_SITE_PACKAGES}/mujoco ${COHORT_SITE_PACKAGES}/pyarrow
         ${COHORT_SITE_PACKAGES}/nvidia/*/lib)
    # Opened by name: MuJoCo's by the simulation, NVIDIA's by each other. Those of CUDA, 3 GB, come with a build for CUDA.
    set(opened "")
    set(on_gpus OFF)
    if(COHORT_MUJOCO_FOUND)
      list(APPEND opened ${COHORT_MUJOCO_FOLDER}/${COHORT_MUJOCO_FILE})
    endif()
    if(COHORT_CUDA_FOUND)
      set(on_gpus ON)
      file(GLOB opened_on_gpus ${COHORT_SITE_PACKAGES}/nvidia/*/lib/*.so*)
      list(APPEND opened ${opened_on_gpus})
    endif()
    # A component of its own: the wheel, which has those libraries in other wheels, takes the others by name.
    install(CODE "set(COHORT_PREFIX \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
                  set(COHORT_FROM \"${COHORT_SITE_PACKAGES}\")
                  set(COHORT_FOLDERS \"${folders}\")
                  set(COHORT_OPENED \"${opened}\")
                  set(COHORT_ON_GPUS ${on_gpus})
                  include(\"${PROJECT_SOURCE_DIR}/cmake/InstallLibraries.cmake\")" COMPONENT libraries)
  endif()
endfunction()
