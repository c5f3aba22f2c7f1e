#include "compare.h"

#include <memory>
#include <optional>
#include <string>

#include "compare/first_divergence.h"
#include "compare/fp64.h"
#include "compare/models.h"
#include "compare/same.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "held_object.h"
#include "python_values.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

using aten::Value;
using compare::Comparison;
using compare::SameOptions;

py::list to_list(const std::vector<Value>& values) {
  py::list made;
  for (const Value& value : values) made.append(to_python(value));
  return made;
}

compare::Callable program(py::function function) {
  return [held = hold(std::move(function))](const std::vector<Value>& inputs) {
    const py::gil_scoped_acquire gil;
    return from_python((*held)(*py::tuple(to_list(inputs))));
  };
}

compare::NodeKernel kernel(py::function function) {
  return [held = hold(std::move(function))](const graph::Node& node,
                                            const std::vector<Value>& inputs) {
    const py::gil_scoped_acquire gil;
    return from_python((*held)(node.name(), node.target().name(), to_list(inputs)));
  };
}

Comparison same(const py::object& reference, const py::object& result,
                const py::object& fp64_reference, const SameOptions& options) {
  const Value left = from_python(reference);
  const Value right = from_python(result);
  const Value judge = from_python(fp64_reference);
  const py::gil_scoped_release unlocked;
  return compare::same(left, right, &judge, options);
}

py::tuple as_tuple(const compare::Results& results) {
  return py::make_tuple(to_python(results.output), to_list(results.gradients),
                        to_list(results.inputs));
}

py::tuple run_fwd_maybe_bwd(py::function function, const py::iterable& inputs, bool only_forward) {
  const std::vector<Value> values = values_from(inputs);
  compare::Results results;
  {
    const py::gil_scoped_release unlocked;
    results = compare::run_fwd_maybe_bwd(program(std::move(function)), values, only_forward);
  }
  return as_tuple(results);
}

py::object reduce_to_scalar_loss(const py::object& output) {
  const at::Tensor loss = compare::reduce_to_scalar_loss(from_python(output));
  return to_python(Value(c10::IValue(loss)));
}

py::tuple cast_to_fp64(const std::string& graph, const py::iterable& inputs) {
  const compare::Fp64Program cast =
      compare::cast_to_fp64(*graph::parse(graph, "<graph>"), values_from(inputs));
  return py::make_tuple(graph::print(*cast.graph), to_list(cast.inputs));
}

compare::TwoModels same_two_models(const std::string& graph, py::function compiled,
                                   const py::iterable& inputs, bool only_forward, bool use_fp64,
                                   bool require_fp64, const SameOptions& same,
                                   std::optional<std::uint64_t> seed) {
  const std::vector<Value> values = values_from(inputs);
  const py::gil_scoped_release unlocked;
  return compare::same_two_models(*graph::parse(graph, "<graph>"), program(std::move(compiled)),
                                  values, {only_forward, use_fp64, require_fp64, same, seed});
}

std::optional<compare::Divergence> first_divergence(const std::string& reference,
                                                    const py::object& suspect,
                                                    const py::iterable& inputs,
                                                    const SameOptions& same, bool use_fp64,
                                                    bool relative) {
  const std::vector<Value> values = values_from(inputs);
  const compare::DivergenceOptions options{same, use_fp64, relative};
  const auto graph = graph::parse(reference, "<reference>");
  if (py::isinstance<py::str>(suspect)) {
    const auto other = graph::parse(py::cast<std::string>(suspect), "<suspect>");
    const py::gil_scoped_release unlocked;
    return compare::first_divergence(*graph, *other, values, options);
  }
  const compare::NodeKernel calls = kernel(suspect);
  const py::gil_scoped_release unlocked;
  return compare::first_divergence(*graph, calls, values, options);
}

py::list stack_lines(const compare::Divergence& found) {
  py::list lines;
  for (const graph::StackFrame& frame : found.stack) {
    lines.append(py::make_tuple(frame.file, frame.line, frame.function, frame.text));
  }
  return lines;
}

void add_types(py::module_& module) {
  py::class_<SameOptions>(module, "SameOptions")
      .def(py::init<>())
      .def_readwrite("cos_similarity", &SameOptions::cos_similarity)
      .def_readwrite("tol", &SameOptions::tol)
      .def_readwrite("equal_nan", &SameOptions::equal_nan)
      .def_readwrite("exact_dtype", &SameOptions::exact_dtype)
      .def_readwrite("ignore_non_fp", &SameOptions::ignore_non_fp)
      .def_readwrite("use_larger_multiplier_for_smaller_tensor",
                     &SameOptions::use_larger_multiplier_for_smaller_tensor)
      .def_readwrite("force_max_multiplier", &SameOptions::force_max_multiplier)
      .def_readwrite("use_iou_for_bool", &SameOptions::use_iou_for_bool)
      .def_readwrite("iou_threshold", &SameOptions::iou_threshold);
  py::class_<Comparison>(module, "Comparison")
      .def_readonly("same", &Comparison::same)
      .def_property_readonly("kind",
                             [](const Comparison& found) -> std::optional<std::string> {
                               if (found.same) return std::nullopt;
                               return compare::to_string(found.kind);
                             })
      .def_readonly("where", &Comparison::where)
      .def_readonly("message", &Comparison::message)
      .def_readonly("error", &Comparison::error)
      .def_readonly("reference_error", &Comparison::reference_error)
      .def_readonly("tolerance", &Comparison::tolerance)
      .def_readonly("compiled_is_closer", &Comparison::compiled_is_closer)
      .def_readonly("not_compared", &Comparison::not_compared)
      .def("__bool__", [](const Comparison& found) { return found.same; })
      .def("__repr__", [](const Comparison& found) {
        if (found.same) return std::string("<same>");
        const std::string place = found.where.empty() ? "" : " at " + found.where;
        return std::string("<") + compare::to_string(found.kind) + " differ" + place + ": " +
               found.message + ">";
      });
  py::class_<compare::TwoModels>(module, "TwoModels")
      .def_property_readonly("same", &compare::TwoModels::same)
      .def_readonly("comparison", &compare::TwoModels::comparison)
      .def_readonly("eager_failed", &compare::TwoModels::eager_failed)
      .def_readonly("eager_error", &compare::TwoModels::eager_error)
      .def_readonly("has_fp64_reference", &compare::TwoModels::has_fp64_reference)
      .def_readonly("fp64_error", &compare::TwoModels::fp64_error)
      .def_readonly("not_compared", &compare::TwoModels::not_compared)
      .def("__bool__", &compare::TwoModels::same);
  py::class_<compare::Divergence>(module, "Divergence")
      .def_readonly("node", &compare::Divergence::node)
      .def_readonly("call", &compare::Divergence::call)
      .def_property_readonly("stack", &stack_lines)
      .def_readonly("text_offset", &compare::Divergence::text_offset)
      .def_readonly("comparison", &compare::Divergence::comparison)
      .def("__repr__", [](const compare::Divergence& found) {
        return "<" + found.node + " = " + found.call + ": " + found.comparison.message + ">";
      });
}

}  // namespace

void add_compare(py::module_& module) {
  add_types(module);
  module.def("same", &same, py::arg("reference"), py::arg("result"), py::arg("fp64_reference"),
             py::arg("options"));
  module.def("clone_inputs_retaining_gradness", [](const py::iterable& inputs) {
    return to_list(compare::clone_inputs_retaining_gradness(values_from(inputs)));
  });
  module.def("requires_bwd_pass", [](const py::object& output) {
    return compare::requires_bwd_pass(from_python(output));
  });
  module.def("reduce_to_scalar_loss", &reduce_to_scalar_loss);
  module.def("collect_results", [](const py::object& output, const py::iterable& inputs) {
    return as_tuple(compare::collect_results(from_python(output), values_from(inputs)));
  });
  module.def("run_fwd_maybe_bwd", &run_fwd_maybe_bwd, py::arg("program"), py::arg("inputs"),
             py::arg("only_forward"));
  module.def("cast_to_fp64", &cast_to_fp64, py::arg("graph"), py::arg("inputs"));
  module.def("same_two_models", &same_two_models, py::arg("graph"), py::arg("compiled"),
             py::arg("inputs"), py::arg("only_forward"), py::arg("use_fp64"),
             py::arg("require_fp64"), py::arg("same"), py::arg("seed"));
  module.def("first_divergence", &first_divergence, py::arg("reference"), py::arg("suspect"),
             py::arg("inputs"), py::arg("same"), py::arg("use_fp64"), py::arg("relative"));
}

}  // namespace assay::binding
