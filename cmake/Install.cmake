# What is installed, and where it finds libtorch afterwards.
#
# The layout is the same under `cmake --install` and inside a wheel, where the prefix is the package
# folder itself (site-packages/assay) and torch is its neighbour:
#   bin/assay  lib/libassay.so  include/assay/*.h  lib/cmake/assay/  and, in a wheel, _C*.so
include(CMakePackageConfigHelpers)

if(SKBUILD)
  set(torch_from_package "$ORIGIN/@up@../torch/lib")
else()
  set(torch_from_package ${ASSAY_TORCH_LIB_DIR})
endif()
# `up` leads from the file's folder to the prefix.
function(assay_set_install_rpath target up libassay_dir)
  string(REPLACE "@up@" "${up}" torch_lib "${torch_from_package}")
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${libassay_dir};${torch_lib}")
endfunction()

assay_set_install_rpath(libassay "../" "$ORIGIN")
install(TARGETS libassay EXPORT assayTargets LIBRARY DESTINATION lib)

get_property(binaries GLOBAL PROPERTY ASSAY_INSTALLED_BINARIES)
foreach(binary ${binaries})
  assay_set_install_rpath(${binary} "../" "$ORIGIN/../lib")
  install(TARGETS ${binary} RUNTIME DESTINATION bin)
endforeach()

if(SKBUILD)
  get_property(modules GLOBAL PROPERTY ASSAY_PYTHON_MODULES)
  foreach(module ${modules})
    assay_set_install_rpath(${module} "" "$ORIGIN/lib")
    install(TARGETS ${module} LIBRARY DESTINATION .)
  endforeach()
  # The command on the PATH: starts bin/assay, wherever pip has put the package.
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/assay_command.py
    DESTINATION ${SKBUILD_SCRIPTS_DIR} RENAME assay)
endif()

if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/include/assay)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/assay DESTINATION include)
endif()
install(FILES ${PROJECT_BINARY_DIR}/include/assay/version.h DESTINATION include/assay)

# find_package(assay) for C++ programs.
set_target_properties(libassay PROPERTIES EXPORT_NAME assay)
target_include_directories(libassay INTERFACE $<INSTALL_INTERFACE:include>)
target_compile_features(libassay INTERFACE cxx_std_20)
if(NOT SKBUILD)
  set(assay_build_torch_dir ${torch_dir})  # pip builds against a copy that is gone afterwards
endif()
configure_package_config_file(cmake/assayConfig.cmake.in ${PROJECT_BINARY_DIR}/assayConfig.cmake
  INSTALL_DESTINATION lib/cmake/assay)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/assayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT assayTargets NAMESPACE assay:: DESTINATION lib/cmake/assay)
install(FILES ${PROJECT_BINARY_DIR}/assayConfig.cmake ${PROJECT_BINARY_DIR}/assayConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/TorchTargets.cmake DESTINATION lib/cmake/assay)
