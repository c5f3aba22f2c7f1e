/// \file Sources: how the objects that a segment reads are reached from the frame it starts in, and
/// what must hold of each for the segment to be used again. The recorder makes them while it
/// records; guards.h checks them.
#pragma once

#include <Python.h>

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/ref.h"
#include "guards/guards.h"

namespace assay::capture {

/// One step from an object to another.
enum class Access : std::uint8_t {
  slot,      ///< Slot `index` of the frame: a local, a cell or a place on the stack.
  function,  ///< The frame's own function.
  constant,  ///< `key` itself, whatever the frame.
  closure,   ///< Cell `index` of a function.
  contents,  ///< What a cell holds.
  dict,      ///< An object's __dict__.
  item,      ///< dict[key].
  element,   ///< list[index] or tuple[index].
  member,    ///< An attribute read through the C descriptor `key` (a slot of __slots__, a getset).
  receiver,  ///< A bound method's __self__.
  callee,    ///< A bound method's __func__.
  referent,  ///< What a weak reference refers to, or None.
  array,     ///< A tensor on the memory of an array of NumPy.
  answer,    ///< What a function answers that looks at global state: `key` is (function, args...).
};

class Source;

/// What must hold of the object at a source. Everything that is unset is not checked.
struct Checks {
  bool absent = false;        ///< There is nothing there.
  bool present = false;       ///< There is something, whatever it is.
  bool may_be_unset = false;  ///< Only fetched; null is fine.
  Ref identical;              ///< It is this object.
  Ref type;                   ///< Its type is this one, exactly.
  Ref value;                  ///< It is a number, string, ... of the same type and value.
  bool is_int64 = false;      ///< It is an int of any value that a graph can take.
  Py_ssize_t length = -1;     ///< Of a list, tuple, dict or set.
  Ref keys;                   ///< A dict's keys in order, a tuple.
  Ref order;                  ///< A set's items in the order of a loop, a tuple.
  std::optional<guards::TensorGuard> tensor;
  const Source* same_as = nullptr;  ///< It is the object at another source.
  /// A function's code, defaults, keyword defaults and globals (borrowed from `function`'s tuple).
  Ref function;

  bool any() const;
};

class Source {
 public:
  Source(int number, Access access_, Source* parent_, Ref key_, Py_ssize_t index_)
      : id(number), access(access_), parent(parent_), key(std::move(key_)), index(index_) {}

  const int id;  ///< Its place in the tree; parents come first.
  const Access access;
  Source* const parent;  ///< Null for slot, function, constant and answer.
  const Ref key;
  const Py_ssize_t index;
  Checks checks;
  /// The variable's name, for slots.
  std::string name;

  /// As Python would write it: `x`, `self.layers[0].weight`.
  std::string expression() const;
  /// As the placeholder of a captured graph is called: `L_self_layers_0_weight_`.
  std::string placeholder_name() const;
};

/// All sources of a segment.
class SourceTree {
 public:
  /// Finds or makes one.
  Source* get(Access access, Source* parent, PyObject* key, Py_ssize_t index = 0);
  Source* slot(Py_ssize_t index, std::string name);
  Source* constant(PyObject* object) { return get(Access::constant, nullptr, object); }

  std::size_t size() const { return sources_.size(); }
  std::deque<Source>& all() { return sources_; }
  /// Forgets the sources made after there were `size` of them.
  void truncate(std::size_t size);

 private:
  struct Key {
    Access access;
    const Source* parent;
    PyObject* key;  // strings by value: interned before
    Py_ssize_t index;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::deque<Source> sources_;
  std::vector<std::pair<Key, Source*>> order_;
  std::unordered_map<Key, Source*, Hash> found_;
};

/// None, bool, int, float, complex, str, bytes, Ellipsis, NotImplemented and torch.Size of ints:
/// values that are compared by value, and that nobody can mutate.
bool is_scalar(PyObject* object);
/// Same type and same value, bit for bit for floats. Of scalars and values of subclasses.
bool same_scalar(PyObject* left, PyObject* right);
/// An instance of a subclass of int, float, complex, str or bytes (numpy.float64, a class of the
/// program): C code reads the value in it, which nobody can change.
bool is_value_of_subclass(PyObject* object);
/// For messages and logs: at most about 60 characters of repr().
std::string short_repr(PyObject* object);
std::string to_string(PyObject* unicode);

}  // namespace assay::capture
