# Finds the torch wheel and makes targets of it: torch::c10, torch::torch_cpu, torch::torch_python.
#
# find_package(Torch) is not used: it drags in CUDA, MKL and protobuf lookups, and flags of its own.
# The wheel is asked for by name, never imported (importing torch costs two seconds).

# Python first: a -DPython_EXECUTABLE (pip sets one), then the project's .venv, then the PATH.
if(NOT Python_EXECUTABLE)
  if(EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
    set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  else()
    find_program(ASSAY_PYTHON_PROGRAM NAMES python3.11 python3 REQUIRED)
    set(Python_EXECUTABLE ${ASSAY_PYTHON_PROGRAM})
  endif()
endif()

set(torch_dir "${ASSAY_TORCH_DIR}")
if(NOT torch_dir)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed OR NOT torch_dir)
    message(FATAL_ERROR "${Python_EXECUTABLE} has no torch. Run `make setup`, or "
      "`pip install torch==${ASSAY_TORCH_VERSION}`, or pass -DASSAY_TORCH_DIR=<.../site-packages/torch>.")
  endif()
endif()

if(NOT EXISTS ${torch_dir}/version.py OR NOT EXISTS ${torch_dir}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "${torch_dir} is not an installed torch package: "
    "version.py or lib/libtorch_cpu.so is missing.")
endif()
file(STRINGS ${torch_dir}/version.py torch_version REGEX "^__version__")
string(REGEX REPLACE "^__version__[^'\"]*['\"]([^'\"]+)['\"].*" "\\1" torch_version "${torch_version}")
string(REGEX REPLACE "\\+.*" "" torch_release "${torch_version}")
if(NOT torch_release STREQUAL ASSAY_TORCH_VERSION)
  message(FATAL_ERROR "Assay is written for torch ${ASSAY_TORCH_VERSION}, but ${torch_dir} holds "
    "${torch_version}. Install the right one: `pip install torch==${ASSAY_TORCH_VERSION}`.")
endif()
message(STATUS "torch ${torch_version} in ${torch_dir}")
set(ASSAY_TORCH_LIB_DIR ${torch_dir}/lib)

include(TorchTargets)
assay_import_torch(${torch_dir})

if(ASSAY_PYTHON)
  find_package(Python 3.11...<3.12 COMPONENTS Interpreter Development.Module REQUIRED)
endif()
