# The functions that the CMakeLists.txt files of the folders call.
#
#   assay_add_room(<room> <source>...)            src/<room>/: sources of libassay (or of assay._C)
#   assay_add_executable(<name> <source>...)      src/cli/: an installed command
#   assay_add_python_module(<name> <source>...)   python/binding/: the extension assay.<name>
#   assay_add_test(<name> <source>... [LABELS <label>...] [TIMEOUT <seconds>] [SERIAL])
#                                                 tests/*/: one GoogleTest binary, run by ctest
#   assay_add_tool(<name> <source>...)            tests/*/, bench/*/: a helper binary, not installed
#   assay_add_plugin(<name> <source>...)          tests/*/: a library for `assay --plugin`, in <build>/lib
#
# Every target may be built alone while the rest is broken: `cmake --build build/dev -t room_graph`.

find_package(nlohmann_json 3.9 REQUIRED)
find_package(CLI11 REQUIRED)
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.h.in ${PROJECT_BINARY_DIR}/include/assay/version.h)

# The precompiled header, and the object file that keeps libassay a library before it has rooms.
add_library(assay_precompiled OBJECT ${CMAKE_CURRENT_LIST_DIR}/precompiled.cpp)
target_link_libraries(assay_precompiled PRIVATE assay_build torch::torch_cpu)
if(ASSAY_PCH)
  target_precompile_headers(assay_precompiled PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:${CMAKE_CURRENT_LIST_DIR}/precompiled.h>)
endif()

add_library(libassay SHARED $<TARGET_OBJECTS:assay_precompiled>)
set_target_properties(libassay PROPERTIES OUTPUT_NAME assay LINKER_LANGUAGE CXX)
target_link_libraries(libassay
  PUBLIC torch::torch_cpu torch::c10
  PRIVATE assay_build)
# libtorch of a CUDA wheel leaves symbols to libraries that we do not link; our own must all be there.
target_link_options(libassay PRIVATE LINKER:--no-undefined LINKER:--allow-shlib-undefined)

# Includes every direct subfolder of `parent` that has a CMakeLists.txt, now or later.
macro(assay_add_folders parent)
  file(GLOB assay_folders CONFIGURE_DEPENDS
    RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${parent}/*/CMakeLists.txt)
  foreach(assay_folder ${assay_folders})
    get_filename_component(assay_folder ${assay_folder} DIRECTORY)
    add_subdirectory(${assay_folder})
  endforeach()
endmacro()

# What all our targets have in common.
function(assay_configure_target target)
  target_link_libraries(${target} PRIVATE assay_build torch::torch_cpu torch::c10
    nlohmann_json::nlohmann_json)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(ASSAY_PCH AND NOT folder IN_LIST ASSAY_PLAIN_FOLDERS)
    target_precompile_headers(${target} REUSE_FROM assay_precompiled)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.c$")
    set_source_files_properties(${sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# With ASSAY_UNITY, the files of a folder are compiled ASSAY_UNITY_FILES at a time: most of what it
# takes to compile a small file is reading headers. So names in anonymous namespaces must be unique
# in a folder. Folders are not mixed: src/autograd/decompositions has functions named like ATen's,
# and must not see ATen/Functions.h, which files of the room around it include.
function(assay_compile_together target)
  if(NOT ASSAY_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    list(LENGTH files_in_${folder} position)
    list(APPEND files_in_${folder} ${source})
    math(EXPR batch "${position} / ${ASSAY_UNITY_FILES}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# For the targets that include CPython's headers. Their symbols are hidden, as pybind11's are:
# nothing but the module's entry is called from outside.
function(assay_use_python target)
  target_link_libraries(${target} PRIVATE torch::torch_python)
  target_include_directories(${target} SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
endfunction()

function(assay_add_room room)
  set(is_python FALSE)
  if(room IN_LIST ASSAY_PYTHON_ROOMS)
    set(is_python TRUE)
  endif()
  if(is_python AND NOT ASSAY_PYTHON)
    return()
  endif()
  add_library(room_${room} OBJECT ${ARGN})
  assay_configure_target(room_${room})
  assay_compile_together(room_${room})
  if(is_python)
    assay_use_python(room_${room})
    set_property(GLOBAL APPEND PROPERTY ASSAY_PYTHON_ROOM_TARGETS room_${room})
  else()
    target_sources(libassay PRIVATE $<TARGET_OBJECTS:room_${room}>)
  endif()
endfunction()

function(assay_add_binary name)
  add_executable(${name} ${ARGN})
  assay_configure_target(${name})
  target_link_libraries(${name} PRIVATE libassay CLI11::CLI11)
  target_link_options(${name} PRIVATE LINKER:--allow-shlib-undefined)
endfunction()

function(assay_add_executable name)
  assay_add_binary(${name} ${ARGN})
  assay_compile_together(${name})
  set_property(GLOBAL APPEND PROPERTY ASSAY_INSTALLED_BINARIES ${name})
endfunction()

function(assay_add_tool name)
  assay_add_binary(${name} ${ARGN})
  target_compile_definitions(${name} PRIVATE
    ASSAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ASSAY_BINARY="${PROJECT_BINARY_DIR}/bin/assay")
  if(TARGET assay)
    add_dependencies(${name} assay)  # tests and benchmarks run the command
  endif()
endfunction()

# A shared library that registers backends when the command loads it.
function(assay_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  assay_configure_target(${name})
  target_link_libraries(${name} PRIVATE libassay)
  target_link_options(${name} PRIVATE LINKER:--allow-shlib-undefined)
  set_target_properties(${name} PROPERTIES PREFIX "")
endfunction()

function(assay_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "SERIAL" "TIMEOUT" "LABELS")
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
  assay_add_tool(${name} ${test_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main)
  # One ctest entry per binary, not per case: each start of libtorch costs 0.3 s.
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES
    LABELS "${test_LABELS}" TIMEOUT ${test_TIMEOUT} RUN_SERIAL ${test_SERIAL})
endfunction()

function(assay_add_python_module name)
  get_property(rooms GLOBAL PROPERTY ASSAY_PYTHON_ROOM_TARGETS)
  add_library(${name} MODULE ${ARGN})
  foreach(room ${rooms})
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${room}>)
  endforeach()
  assay_configure_target(${name})
  assay_compile_together(${name})
  target_link_libraries(${name} PRIVATE libassay)
  assay_use_python(${name})
  # CPython's symbols come from the interpreter that loads the module.
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".${Python_SOABI}.so"
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/assay)
  set_property(GLOBAL APPEND PROPERTY ASSAY_PYTHON_MODULES ${name})
endfunction()

# <build>/python/assay: the extension beside links to the package's own files, so that
# PYTHONPATH=<build>/python imports what is in the source tree. Linked anew at every build, since
# files of the package come and go.
if(ASSAY_PYTHON)
  add_custom_target(python_package ALL
    COMMAND ${CMAKE_COMMAND} -DPACKAGE=${PROJECT_SOURCE_DIR}/python/assay
      -DDESTINATION=${PROJECT_BINARY_DIR}/python/assay
      -P ${CMAKE_CURRENT_LIST_DIR}/LinkPythonPackage.cmake
    COMMENT "Linking the files of the Python package" VERBATIM)
endif()
