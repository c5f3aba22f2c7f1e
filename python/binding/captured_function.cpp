#include "captured_function.h"

#include <optional>
#include <string>

#include "assay/backend.h"
#include "capture/code_facts.h"
#include "capture/driver.h"
#include "capture/frame_record.h"
#include "capture/function.h"
#include "capture/listener.h"
#include "capture/logging_functions.h"
#include "capture/size_numbers.h"
#include "capture/stance.h"
#include "capture/unsupported.h"
#include "config/config.h"
#include "graph_handle.h"
#include "python_backend.h"
#include "repro/config.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

py::object capture_function(const py::object& function, const py::object& backend,
                            const BackendOptions& options, bool fullgraph,
                            std::optional<std::size_t> cache_limit, std::optional<bool> dynamic) {
  capture::check_settings();
  capture::CaptureSettings settings{
      backend_from(backend, {.compile_subgraph_reason = compile_subgraph_reason}),
      options,
      fullgraph,
      cache_limit,
      dynamic,
      capture::Ref::borrow(backend.ptr())};
  PyObject* made = capture::make_captured_function(
      function.ptr(), std::make_shared<capture::SegmentCache>(std::move(settings)));
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

void set_stance(const std::string& name) {
  const std::optional<capture::Stance> stance = capture::stance_of(name);
  if (!stance) {
    throw py::value_error("unknown stance '" + name +
                          "'; there are default, force_eager, eager_on_recompile, "
                          "fail_on_recompile, eager_then_compile and aot_eager_then_compile");
  }
  capture::set_stance(*stance);
}

capture::SegmentCache& cache_of(const py::object& captured) {
  capture::SegmentCache* cache = capture::cache_of(captured.ptr());
  if (cache == nullptr) throw py::type_error("not a function that assay.compile returned");
  return *cache;
}

py::list frames_of(const capture::CaptureRecord& record) {
  py::list frames;
  for (const capture::CodeLine& line : record.stack) {
    frames.append(py::make_tuple(line.file, line.line, line.function, line.text));
  }
  return frames;
}

bool ends_with_a_break(const capture::CaptureRecord& record) {
  return !record.reason.reason.empty() && record.reason.is_break;
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
    made["eager_reason"] = record.eager_reason;
    made["graph"] = py::none();
    if (record.graph != nullptr) {
      made["graph"] = std::make_unique<GraphHandle>(GraphAndObjects{record.graph, {}});
    }
    made["break"] =
        ends_with_a_break(record) ? py::object(py::str(record.reason.reason)) : py::none();
    made["stack"] = frames_of(record);
    records.append(made);
  }
  return records;
}

}  // namespace

py::object compile_subgraph_reason(const CompileRequest&) {
  const capture::CaptureRecord* record = capture::record_being_compiled();
  if (record == nullptr) return py::none();
  return py::module_::import("assay._observer")
      .attr("GraphCompileReason")
      .attr("of")(
          ends_with_a_break(*record) ? py::object(py::str(record->reason.reason)) : py::none(),
          frames_of(*record));
}

void add_captured_functions(py::module_& module) {
  module.attr("CapturedFunction") = py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject*>(capture::captured_function_type()));
  module.def("capture_function", &capture_function, py::arg("function"), py::arg("backend"),
             py::arg("options"), py::arg("fullgraph"), py::arg("cache_limit"), py::arg("dynamic"));
  module.def("capture_records", &capture_records, py::arg("captured"));
  module.def("capture_clear", [](const py::object& captured) { cache_of(captured).clear(); });
  module.def("capture_replays",
             [](const py::object& captured) { return cache_of(captured).replays; });
  module.def("capture_reset", &capture::reset_all);
  module.def("capture_is_recording", &capture::is_capturing);
  module.def("capture_note_marked_tensors", &capture::note_marked_tensors);
  module.def("capture_set_stance", &set_stance, py::arg("name"));
  module.def("capture_skip_files", &capture::set_library_files, py::arg("prefixes"));
  module.def("capture_set_unsupported",
             [](const py::object& type) { capture::set_unsupported_class(type.ptr()); });
  module.def("capture_set_listener",
             [](const py::object& function) { capture::set_listener(function.ptr()); });
  module.def("capture_set_recompile_check",
             [](const py::object& function) { capture::set_recompile_check(function.ptr()); });
  module.def("capture_set_logging_functions",
             [](const py::object& reordered, const py::object& ignored) {
               capture::set_logging_functions(reordered.ptr(), ignored.ptr());
             });
  module.def("capture_set_frame_recorder", [](const py::object& take, const py::object& keep) {
    capture::set_frame_recorder(take.ptr(), keep.ptr());
  });
  module.def("debug_directory", [] {
    repro::DebugConfig settings;
    settings.debug_directory = config::get<"debug_dir_root">();
    return repro::minifier_directory(settings).parent_path().string();
  });
  // Calls a function that is not to be captured.
  module.def("capture_run_eagerly",
             [](const py::function& function, const py::args& args, const py::kwargs& kwargs) {
               const capture::CaptureScope none(nullptr);
               return function(*args, **kwargs);
             });
}

}  // namespace assay::binding
