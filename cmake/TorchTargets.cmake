# assay_import_torch(<dir>): imported targets for the libraries of the torch package in <dir>.
# Used by Assay's own build and, once installed, by programs that link to it (assayConfig.cmake).

# torch::<name>; its headers are SYSTEM, so that a program's warnings stay its own.
function(assay_import_torch_library torch_dir name)
  add_library(torch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(torch::${name} PROPERTIES
    IMPORTED_LOCATION ${torch_dir}/lib/lib${name}.so
    INTERFACE_INCLUDE_DIRECTORIES
      "${torch_dir}/include;${torch_dir}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "AT_PER_OPERATOR_HEADERS;_GLIBCXX_USE_CXX11_ABI=1"
    INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

function(assay_import_torch torch_dir)
  assay_import_torch_library(${torch_dir} c10)
  assay_import_torch_library(${torch_dir} torch_cpu torch::c10)
  assay_import_torch_library(${torch_dir} torch_python torch::torch_cpu)
endfunction()
