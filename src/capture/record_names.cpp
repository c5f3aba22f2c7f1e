// Names: globals, variables of enclosing functions, constants.
#include <string>

#include "capture/cpython_311.h"
#include "capture/recorder.h"

namespace assay::capture {

PyObject* Recorder::load_global(Activation& a, PyObject* name) {
  if (!is_recording()) return Operations::load_global(a, name);
  PyObject* globals = a.frame->f_globals;
  PyObject* builtins = a.frame->f_builtins;
  if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins)) {
    if (!stop(a, "the function's globals are not a dict")) return nullptr;
    return Operations::load_global(a, name);
  }
  is_constant(globals);
  PyObject* found = read_item(globals, name, true);
  if (found == nullptr && PyErr_Occurred() == nullptr) {
    is_constant(builtins);
    found = read_item(builtins, name);
  }
  if (found == nullptr) return Operations::load_global(a, name);  // raises
  return Py_NewRef(found);
}

PyObject* Recorder::load_name(Activation& a, PyObject* name) {
  if (is_recording() && !stop(a, "the code of a class or module")) return nullptr;
  return Operations::load_name(a, name);
}

bool Recorder::store_global(Activation& a, PyObject* name, Operand value) {
  if (!is_recording()) return Operations::store_global(a, name, value);
  read(value);
  is_constant(a.frame->f_globals);
  if (!Operations::store_global(a, name, value)) return false;
  changed_item(a.frame->f_globals, name, value.object);
  return true;
}

bool Recorder::delete_global(Activation& a, PyObject* name) {
  if (!is_recording()) return Operations::delete_global(a, name);
  is_constant(a.frame->f_globals);
  read_item(a.frame->f_globals, name);
  if (!Operations::delete_global(a, name)) return false;
  changed_item(a.frame->f_globals, name, nullptr);
  return true;
}

PyObject* Recorder::load_cell(Activation& a, PyObject* cell, int index) {
  if (!is_recording()) return Operations::load_cell(a, cell, index);
  Tracked* tracked = tracked_.find(cell);
  if (tracked == nullptr) {
    if (!stop(a, "a variable of an enclosing function that is not known")) return nullptr;
    return Operations::load_cell(a, cell, index);
  }
  PyObject* contents = PyCell_GET(cell);
  if (tracked->source != nullptr && !tracked->is_known) {
    touch(cell);
    tracked->is_known = true;
    Source* source = sources_.get(Access::contents, tracked->source, nullptr);
    if (contents == nullptr) {
      source->checks.absent = true;
    } else {
      source->checks.present = true;
      if (const Ref number = Ref::steal(open_number(contents, *source))) {
        PyCell_Set(cell, number.get());
      } else {
        arrived(contents, source);
      }
    }
  }
  return Operations::load_cell(a, cell, index);
}

bool Recorder::store_cell(Activation& a, PyObject* cell, Operand value) {
  if (!is_recording()) return Operations::store_cell(a, cell, value);
  read(value);
  Tracked* tracked = tracked_.find(cell);
  if (tracked == nullptr) {
    if (!stop(a, "a variable of an enclosing function that is not known")) return false;
    return Operations::store_cell(a, cell, value);
  }
  if (tracked->source == nullptr) {
    save_for_rollback(cell);
  } else {
    touch(cell);
    tracked->is_known = tracked->is_mutated = true;
    effects_.push_back(
        {Effect::Kind::set_contents, Ref::borrow(cell), Ref(), Ref::borrow(value.object)});
  }
  return Operations::store_cell(a, cell, value);
}

bool Recorder::delete_cell(Activation& a, PyObject* cell, int index) {
  if (is_recording() && !stop(a, "del of a variable that an inner function uses")) return false;
  return Operations::delete_cell(a, cell, index);
}

PyObject* Recorder::make_cell(Activation& a, Operand value) {
  if (!is_recording()) return Operations::make_cell(a, value);
  read(value);
  PyObject* cell = Operations::make_cell(a, value);
  if (cell != nullptr) tracked_.add(cell, Tracked::Kind::local).is_known = true;
  return cell;
}

void Recorder::copied_free_variables(Activation& a, PyObject* function) {
  if (!is_recording()) return;
  PyObject* closure = reinterpret_cast<PyFunctionObject*>(function)->func_closure;
  if (closure == nullptr) return;
  Tracked* tracked = tracked_.find(function);
  Source* owner = nullptr;
  if (tracked != nullptr && tracked->source != nullptr) {
    owner = tracked->source;
  } else if (tracked == nullptr && &a == root_) {
    owner = sources_.get(Access::function, nullptr, nullptr);
  } else if (tracked == nullptr) {
    is_constant(function);
    owner = tracked_.find(function)->source;
  } else {
    return;  // made in this segment: so were its cells, or they are known by other ways
  }
  PyObject* names = a.code->co_localsplusnames;
  const Py_ssize_t first = PyTuple_GET_SIZE(names) - PyTuple_GET_SIZE(closure);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure); ++i) {
    Source* source = sources_.get(Access::closure, owner, nullptr, i);
    source->name = to_string(PyTuple_GET_ITEM(names, first + i));
    arrived(PyTuple_GET_ITEM(closure, i), source);
  }
}

void Recorder::loaded_constant(Activation&, PyObject* constant) {
  if (!is_recording() || is_scalar(constant)) return;
  is_constant(constant);
  if (PyTuple_Check(constant)) know_contents(constant);
}

}  // namespace assay::capture
