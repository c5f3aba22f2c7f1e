// Which models leave alone the numbers that follow from sizes, and the sizes of tensors: they pass
// them on, or look at them through the recorder's operations, which follow them. Of all others the
// arguments' sizes are used.
#include <string>
#include <unordered_map>

#include "capture/models.h"
#include "capture/models/table.h"

namespace assay::capture {

namespace {

constexpr const char* kFollowing[] = {
    "builtins.type",
    "builtins.getattr",
    "builtins.hasattr",
    "builtins.setattr",
    "builtins.delattr",
    "builtins.super",
    "builtins.isinstance",
    "builtins.issubclass",
    "builtins.callable",
    "builtins.len",
    "builtins.next",
    "builtins.zip",
    "builtins.reversed",
    "builtins.sum",
    "builtins.any",
    "builtins.all",
    "builtins.min",
    "builtins.max",
    "builtins.list",
    "builtins.tuple",
    "builtins.list.append",
    "builtins.list.extend",
    "builtins.list.copy",
    "builtins.list.clear",
    "builtins.list.reverse",
    "builtins.list.__len__",
    "builtins.tuple.__len__",
    "builtins.tuple.__new__",
    "builtins.object.__new__",
    "builtins.object.__init__",
    "builtins.object.__init_subclass__",
    "builtins.object.__setattr__",
    "builtins.object.__delattr__",
    "builtins.object.__getattribute__",
    "builtins.type.__call__",
    "operator.add",
    "operator.sub",
    "operator.mul",
    "operator.floordiv",
    "operator.mod",
    "operator.iadd",
    "operator.isub",
    "operator.imul",
    "operator.lt",
    "operator.le",
    "operator.eq",
    "operator.ne",
    "operator.gt",
    "operator.ge",
    "operator.neg",
    "operator.not_",
    "operator.truth",
    "operator.getitem",
    "operator.setitem",
    "operator.delitem",
    "functools.reduce",
    "functools.cached_property.__get__",
    "itertools.chain",
    "torch.autograd.function.Function.apply",
    "torch._C._has_torch_function",
    "torch._C._has_torch_function_unary",
    "torch._C._has_torch_function_variadic",
    "torch.is_floating_point",
    "torch.is_complex",
    "torch.is_signed",
    "torch.is_conj",
    "torch.is_neg",
    "torch.Size",
    "torch.Tensor.dim",
    "torch.Tensor.ndimension",
    "torch.Tensor.element_size",
    "torch.Tensor.is_floating_point",
    "torch.Tensor.is_complex",
    "torch.Tensor.is_signed",
    "torch.Tensor.get_device",
    "torch.Tensor.is_inference",
    "torch.Tensor.is_conj",
    "torch.Tensor.is_neg",
};

// Keys are compared where the recorder sees it.
constexpr const char* kDictMethods[] = {
    "get",  "items", "keys",        "values",      "pop",          "setdefault",  "update",
    "copy", "clear", "__setitem__", "__delitem__", "__contains__", "__getitem__", "__len__",
};

// They may compare numbers, and take tensors as they are.
constexpr const char* kStoring[] = {
    "builtins.dict",
    "builtins.dict.__init__",
    "builtins.dict.fromkeys",
    "builtins.enumerate",
    "builtins.iter",
    "builtins.set",
    "builtins.frozenset",
    "builtins.set.add",
    "builtins.list.insert",
    "builtins.list.pop",
    "builtins.list.__getitem__",
    "builtins.tuple.__getitem__",
    "collections.OrderedDict",
    "collections.OrderedDict.__init__",
    "collections.deque",
    "collections.deque.append",
    "collections.defaultdict",
    "functools.partial",
};

}  // namespace

SizeUse size_use_of(PyObject* callable) {
  static const auto* const uses = [] {
    auto* made = new std::unordered_map<PyObject*, SizeUse>;
    for (const char* name : kFollowing) {
      if (Ref found = find_by_name(name)) made->emplace(found.release(), SizeUse::follows);
    }
    for (const char* name : kDictMethods) {
      for (const char* type : {"builtins.dict.", "collections.OrderedDict."}) {
        if (Ref found = find_by_name(std::string(type) + name)) {
          made->emplace(found.release(), SizeUse::follows);
        }
      }
    }
    for (const char* name : kStoring) {
      if (Ref found = find_by_name(name)) made->emplace(found.release(), SizeUse::numbers);
    }
    return made;
  }();
  const auto found = uses->find(callable);
  return found == uses->end() ? SizeUse::all : found->second;
}

}  // namespace assay::capture
