# How our own code is compiled: language, warnings, sanitizers, compiler cache, linker.
# Everything is carried by the interface target `assay_build`, which Rooms.cmake gives to each target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

add_library(assay_build INTERFACE)
target_include_directories(assay_build INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/include)
# -fPIC for executables too, so that libraries, tests and tools can share one precompiled header.
target_compile_options(assay_build INTERFACE -fPIC -Wall -Wextra -Wpedantic -Wconversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
if(ASSAY_WERROR)
  target_compile_options(assay_build INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlapping copies inside std::string's own operator+ (GCC bug 105651).
  target_compile_options(assay_build INTERFACE -Wno-restrict)
  # And of overflows inside std::vector's copy of types that hold a c10::intrusive_ptr.
  target_compile_options(assay_build INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
endif()

if(ASSAY_SANITIZE)
  string(REPLACE ";" "," sanitizers "${ASSAY_SANITIZE}")
  target_compile_options(assay_build INTERFACE
    -fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # The instrumentation hides initialisations from GCC's analysis; release builds keep the warning.
  target_compile_options(assay_build INTERFACE -Wno-maybe-uninitialized)
  if("thread" IN_LIST ASSAY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # libtorch's headers have fences, which GCC's ThreadSanitizer does not see and warns about.
    target_compile_options(assay_build INTERFACE -Wno-tsan)
  endif()
  if("undefined" IN_LIST ASSAY_SANITIZE)
    # The vptr check wants the type information of libtorch's classes, some of which is hidden.
    target_compile_options(assay_build INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(assay_build INTERFACE -fsanitize=${sanitizers})
  target_compile_definitions(assay_build INTERFACE ASSAY_SANITIZE="${sanitizers}")
endif()

find_package(Threads REQUIRED)
target_link_libraries(assay_build INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

if(ASSAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(ASSAY_CCACHE_PROGRAM ccache)
  if(ASSAY_CCACHE_PROGRAM)
    # Without this sloppiness ccache refuses every file that uses a precompiled header.
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      ${ASSAY_CCACHE_PROGRAM})
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  endif()
endif()

# The quickest linker that the compiler accepts; the system's own otherwise.
include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} ASSAY_LINKER_${linker})
  if(ASSAY_LINKER_${linker})
    target_link_options(assay_build INTERFACE -fuse-ld=${linker})
    break()
  endif()
endforeach()
