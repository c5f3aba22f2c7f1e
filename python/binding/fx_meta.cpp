#include "fx_meta.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include <charconv>

#include "assay/error.h"
#include "fx_arguments.h"
#include "graph/annotation.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

using graph::SizeExpr;
using graph::ValueMeta;

PyObject* item(py::handle dict, const char* key) {
  PyObject* found = PyDict_GetItemString(dict.ptr(), key);
  return found == Py_None ? nullptr : found;
}

bool is_sym_int(py::handle object) {
  static PyObject* const type =
      py::object(py::module_::import("torch").attr("SymInt")).release().ptr();
  return Py_IS_TYPE(object.ptr(), reinterpret_cast<PyTypeObject*>(type));
}

// The number of elements of the storage of a tensor.
std::int64_t storage_size(const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& strides, std::int64_t offset) {
  std::int64_t last = offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return offset;
    last += (sizes[i] - 1) * strides[i];
  }
  return last + 1;
}

std::optional<std::vector<std::int64_t>> numbers(const std::vector<SizeExpr>& sizes) {
  std::vector<std::int64_t> made;
  for (const SizeExpr& size : sizes) {
    const auto number = size.constant();
    if (!number) return std::nullopt;
    made.push_back(*number);
  }
  return made;
}

py::object fake_tensor(const graph::TensorMeta& meta, py::handle mode) {
  const auto sizes = numbers(meta.sizes);
  const auto strides = numbers(meta.strides);
  const auto offset = meta.storage_offset.constant();
  if (!sizes || !strides || !offset || !meta.device.is_cpu()) return py::none();
  const auto options = at::TensorOptions().dtype(meta.dtype).device(at::kMeta);
  at::Tensor tensor = *offset == 0 ? at::empty_strided(*sizes, *strides, options)
                                   : at::empty({storage_size(*sizes, *strides, *offset)}, options)
                                         .as_strided(*sizes, *strides, *offset);
  if (meta.requires_grad) tensor.requires_grad_();
  static PyObject* const type =
      py::object(py::module_::import("torch._subclasses.fake_tensor").attr("FakeTensor"))
          .release()
          .ptr();
  return py::reinterpret_borrow<py::object>(type)(mode, tensor, meta.device);
}

py::object example_of(const ValueMeta& meta, py::handle mode) {
  if (const auto* tensor = meta.tensor()) return fake_tensor(*tensor, mode);
  if (const auto* size = std::get_if<SizeExpr>(&meta.value)) {
    const auto number = size->constant();
    return number ? py::object(py::int_(*number)) : py::none();
  }
  if (const auto* items = std::get_if<std::vector<ValueMeta>>(&meta.value)) {
    py::tuple made(items->size());
    for (std::size_t i = 0; i < items->size(); ++i) made[i] = example_of((*items)[i], mode);
    return made;
  }
  return py::none();
}

// `  File "model.py", line 12, in forward`; false if it is another line.
bool read_frame(std::string_view line, graph::StackFrame& frame) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  constexpr std::string_view kIn = ", in ";
  if (!line.starts_with(kFile)) return false;
  const auto end_of_file = line.find(kLine);
  if (end_of_file == std::string_view::npos) return false;
  frame.file = line.substr(kFile.size(), end_of_file - kFile.size());
  const char* number = line.data() + end_of_file + kLine.size();
  const auto [rest, problem] = std::from_chars(number, line.data() + line.size(), frame.line);
  if (problem != std::errc()) return false;
  const std::string_view after(rest, static_cast<std::size_t>(line.data() + line.size() - rest));
  if (after.starts_with(kIn)) frame.function = after.substr(kIn.size());
  return true;
}

std::string_view stripped(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

// `    ^^^^~~~^`, which marks a part of the line above.
bool is_marker(std::string_view line) {
  return line.find_first_not_of("^~ ") == std::string_view::npos;
}

}  // namespace

std::string stack_text(const graph::StackTrace& stack) {
  std::string text;
  for (const graph::StackFrame& frame : stack) {
    text += "  File \"" + frame.file + "\", line " + std::to_string(frame.line) + ", in " +
            frame.function + "\n";
    if (!frame.text.empty()) text += "    " + frame.text + "\n";
  }
  return text;
}

graph::StackTrace stack_from_text(const std::string& text) {
  std::vector<graph::StackFrame> frames;
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('\n');
    const std::string_view line = stripped(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    graph::StackFrame frame;
    if (read_frame(line, frame)) {
      frames.push_back(std::move(frame));
    } else if (!frames.empty() && frames.back().text.empty() && !is_marker(line)) {
      frames.back().text = line;
    }
  }
  return frames;
}

py::object example_from_annotation(const std::string& annotation, py::handle mode) {
  const auto meta = graph::parse_annotation(annotation);
  return meta ? example_of(*meta, mode) : py::none();
}

graph::TensorMeta tensor_meta_of(const at::Tensor& tensor) {
  graph::TensorMeta meta;
  meta.dtype = tensor.scalar_type();
  meta.device = tensor.device();
  meta.requires_grad = tensor.requires_grad();
  for (const std::int64_t size : tensor.sizes()) meta.sizes.emplace_back(size);
  for (const std::int64_t stride : tensor.strides()) meta.strides.emplace_back(stride);
  meta.storage_offset = tensor.storage_offset();
  return meta;
}

void MetaReader::read(py::handle meta, graph::NodeMeta& into) {
  if (!PyDict_Check(meta.ptr())) return;
  if (PyObject* stack = item(meta, "stack_trace")) into.stack = stack_of(stack);
  if (PyObject* names = item(meta, "assay_from")) {
    into.provenance = origins_.of(py::cast<std::vector<std::string>>(py::handle(names)));
  }
  for (const char* key : {"val", "example_value"}) {
    if (PyObject* example = item(meta, key)) {
      into.value = value_of(example);
      if (into.value.known()) return;
    }
  }
  if (PyObject* metadata = item(meta, "tensor_meta")) into.value = tensor_metadata_of(metadata);
  if (into.value.known()) return;
  PyObject* annotation = item(meta, "assay_value");  // of a module that we made
  if (annotation == nullptr || !PyUnicode_Check(annotation)) return;
  if (auto value = graph::parse_annotation(py::cast<std::string>(py::handle(annotation)))) {
    into.value = std::move(*value);
  }
}

ValueMeta MetaReader::value_of(py::handle example) {
  PyObject* object = example.ptr();
  if (THPVariable_Check(object)) return tensor_of(THPVariable_Unpack(object));
  if (PyBool_Check(object)) return {};
  if (PyLong_Check(object)) {
    int overflow = 0;
    const std::int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return {};
    return {SizeExpr(number)};
  }
  if (is_sym_int(example)) return {size_of(py::cast<c10::SymInt>(example))};
  if (PyTuple_Check(object) || PyList_Check(object)) {
    std::vector<ValueMeta> items;
    for (py::handle part : py::reinterpret_borrow<py::sequence>(example)) {
      items.push_back(value_of(part));
    }
    return {std::move(items)};
  }
  return {};
}

SizeExpr MetaReader::size_of(const c10::SymInt& size) {
  if (const auto number = size.maybe_as_int()) return *number;
  std::string text = size.toSymNodeImplUnowned()->str();
  const auto known = sizes_.find(text);
  if (known != sizes_.end()) return known->second;
  if (!shape_env_) {
    shape_env_ = py::getattr(py::getattr(py::cast(size), "node"), "shape_env", py::none());
  }
  SizeExpr made = size_from_text(text);
  sizes_.emplace(std::move(text), made);
  return made;
}

ValueMeta MetaReader::tensor_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != c10::kStrided) return {};
  graph::TensorMeta meta;
  meta.dtype = tensor.scalar_type();
  meta.device = tensor.device();
  meta.requires_grad = tensor.requires_grad();
  try {
    for (const c10::SymInt& size : tensor.sym_sizes()) meta.sizes.push_back(size_of(size));
    for (const c10::SymInt& stride : tensor.sym_strides()) meta.strides.push_back(size_of(stride));
    meta.storage_offset = size_of(tensor.sym_storage_offset());
  } catch (const UserError&) {
    return {};  // a size that our expressions cannot spell: the value is not known
  }
  return {std::move(meta)};
}

// torch.fx.passes.shape_prop.TensorMetadata, which has no device.
ValueMeta MetaReader::tensor_metadata_of(py::handle metadata) {
  if (!py::hasattr(metadata, "shape") || !py::hasattr(metadata, "dtype")) return {};
  const py::object dtype = metadata.attr("dtype");
  if (!THPDtype_Check(dtype.ptr())) return {};
  graph::TensorMeta meta;
  meta.dtype = reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type;
  meta.requires_grad = py::cast<bool>(metadata.attr("requires_grad"));
  for (py::handle size : metadata.attr("shape")) {
    meta.sizes.push_back(size_of(py::cast<c10::SymInt>(size)));
  }
  for (py::handle stride : metadata.attr("stride")) {
    meta.strides.push_back(size_of(py::cast<c10::SymInt>(stride)));
  }
  return {std::move(meta)};
}

graph::StackTrace MetaReader::stack_of(py::handle text) {
  if (!PyUnicode_Check(text.ptr())) return {};
  auto key = py::cast<std::string>(text);
  const auto known = stacks_.find(key);
  if (known != stacks_.end()) return known->second;
  graph::StackTrace made = stack_table_.intern(stack_from_text(key));
  stacks_.emplace(std::move(key), made);
  return made;
}

graph::SizeSymbols MetaReader::symbols(py::handle module_meta) const {
  graph::SizeSymbols found;
  for (const auto& [text, size] : sizes_) {
    size.for_each_symbol([&](const std::string& name) { found[name]; });
  }
  const auto read_rows = [&](py::handle rows, bool adds) {
    for (py::handle row : py::reinterpret_borrow<py::list>(rows)) {
      const auto [name, hint, low, high] =
          py::cast<std::tuple<std::string, std::optional<std::int64_t>, std::optional<std::int64_t>,
                              std::optional<std::int64_t>>>(row);
      if (!adds && !found.contains(name)) continue;
      graph::SizeSymbol& symbol = found[name];
      symbol.hint = hint;
      if (low) symbol.range.low = *low;
      if (high) symbol.range.high = *high;
    }
  };
  if (!found.empty() && shape_env_ && !shape_env_.is_none()) {
    const py::object rows = py::module_::import("assay._symbols").attr("describe")(shape_env_);
    read_rows(rows, false);
  }
  if (PyObject* rows = item(module_meta, "assay_symbols")) read_rows(rows, true);  // made by us
  return found;
}

}  // namespace assay::binding
