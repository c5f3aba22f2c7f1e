#include "captured_function.h"

#include <optional>
#include <string>

#include "assay/backend.h"
#include "capture/code_facts.h"
#include "capture/driver.h"
#include "capture/function.h"
#include "graph/print.h"
#include "python_backend.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

py::object capture_function(const py::object& function, const py::object& backend,
                            const BackendOptions& options, bool fullgraph,
                            std::optional<std::size_t> cache_limit) {
  capture::CaptureSettings settings{backend_from(backend), options, fullgraph, cache_limit};
  PyObject* made = capture::make_captured_function(
      function.ptr(), std::make_shared<capture::SegmentCache>(std::move(settings)));
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

capture::SegmentCache& cache_of(const py::object& captured) {
  capture::SegmentCache* cache = capture::cache_of(captured.ptr());
  if (cache == nullptr) throw py::type_error("not a function that assay.compile returned");
  return *cache;
}

// What was recorded, oldest first; for explain and the profiler.
py::list capture_records(const py::object& captured) {
  py::list records;
  for (const capture::CaptureRecord& record : cache_of(captured).records) {
    py::dict made;
    made["function"] = record.function;
    made["file"] = record.file;
    made["line"] = record.line;
    made["guards"] = record.guards;
    made["recompile"] = record.recompile;
    made["graph"] = py::none();
    py::list calls;
    if (record.graph != nullptr) {
      made["graph"] = graph::print(*record.graph);
      for (const graph::Node& node : record.graph->nodes()) {
        if (node.is_call()) calls.append(node.target().name());
      }
    }
    made["calls"] = calls;
    made["break"] = py::none();
    if (!record.reason.reason.empty() && record.reason.is_break) {
      py::dict reason;
      reason["reason"] = record.reason.reason;
      reason["file"] = record.reason.file;
      reason["line"] = record.reason.line;
      reason["function"] = record.reason.function;
      reason["text"] = record.reason.source_line;
      made["break"] = reason;
    }
    records.append(made);
  }
  return records;
}

}  // namespace

void add_captured_functions(py::module_& module) {
  module.attr("CapturedFunction") = py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject*>(capture::captured_function_type()));
  module.def("capture_function", &capture_function, py::arg("function"), py::arg("backend"),
             py::arg("options"), py::arg("fullgraph"), py::arg("cache_limit"));
  module.def("capture_records", &capture_records, py::arg("captured"));
  module.def("capture_clear", [](const py::object& captured) { cache_of(captured).clear(); });
  module.def("capture_replays", [](const py::object& captured) { return cache_of(captured).replays; });
  module.def("capture_reset", &capture::reset_all);
  module.def("capture_is_recording", &capture::is_capturing);
  module.def("capture_skip_files", &capture::set_library_files, py::arg("prefixes"));
  module.def("capture_set_unsupported",
             [](const py::object& type) { capture::set_unsupported_class(type.ptr()); });
  // Calls a function that is not to be captured.
  module.def("capture_run_eagerly", [](const py::function& function, const py::args& args,
                                       const py::kwargs& kwargs) {
    const capture::CaptureScope none(nullptr);
    return function(*args, **kwargs);
  });
}

}  // namespace assay::binding
