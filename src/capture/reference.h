/// \file The RAII type for CPython references: one owned reference, or null.
#pragma once

#include <utility>

#include "capture/cpython_311.h"

namespace assay::capture {

class Reference {
 public:
  Reference() = default;
  static Reference steal(PyObject* object) { return Reference(object); }
  static Reference borrow(PyObject* object) { return Reference(Py_XNewRef(object)); }

  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  ~Reference() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// Gives the reference to the caller.
  [[nodiscard]] PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  explicit Reference(PyObject* object) : object_(object) {}

  PyObject* object_ = nullptr;
};

}  // namespace assay::capture
