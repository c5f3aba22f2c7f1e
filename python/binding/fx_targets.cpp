#include "fx_targets.h"

#include <array>
#include <string_view>
#include <unordered_map>

#include "assay/error.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

// What PyTorch and the standard library call something stays so while the process lives. A user's
// function may be replaced by another one of the same name, and their operators may be registered
// again, so those are looked up each time.
bool is_stable(std::string_view name) {
  if (name.starts_with("torch.ops.")) {
    return name.starts_with("torch.ops.aten.") || name.starts_with("torch.ops.prims.") ||
           name.starts_with("torch.ops.higher_order.");
  }
  return name.starts_with("torch.") || name.starts_with("operator.") || name.starts_with("math.") ||
         name.find('.') == std::string_view::npos;
}

// Both ways. It holds the objects, so that their addresses are not used again; never destroyed,
// since Python is gone by then.
struct Known {
  std::unordered_map<PyObject*, graph::Target> names;
  std::unordered_map<const void*, py::object> objects;  // by Target::id

  static Known& instance() {
    static Known& known = *new Known;
    return known;
  }
};

py::object ask(const char* function, const py::handle& argument) {
  try {
    return py::module_::import("assay._targets").attr(function)(argument);
  } catch (const py::error_already_set& error) {
    if (!error.matches(py::module_::import("assay.errors").attr("UserError"))) throw;
    throw UserError(py::cast<std::string>(py::str(error.value())));
  }
}

}  // namespace

graph::Target target_of(py::handle callable) {
  Known& known = Known::instance();
  if (const auto found = known.names.find(callable.ptr()); found != known.names.end()) {
    return found->second;
  }
  const graph::Target target(qualified_name_of(callable));
  if (is_stable(target.name()) && callable_of(target).is(callable)) {
    known.names.emplace(callable.ptr(), target);  // held in `objects`
  }
  return target;
}

std::string qualified_name_of(py::handle object) {
  return py::cast<std::string>(ask("name_of", object));
}

py::object object_named(const std::string& name) { return ask("find", py::str(name)); }

py::object callable_of(const graph::Target& target) {
  Known& known = Known::instance();
  if (const auto found = known.objects.find(target.id()); found != known.objects.end()) {
    return found->second;
  }
  py::object object = object_named(target.name());
  if (is_stable(target.name())) known.objects.emplace(target.id(), object);
  return object;
}

}  // namespace assay::binding
