/// \file The instructions that take more than a line: what they do to the stack, around the
/// operation that does the work. Called by the loop's switch (loop.cpp). They return false if an
/// exception is set.
#pragma once

#include "capture/activation.h"

namespace assay::capture {

bool load_global(Activation& a, int arg);
bool load_method(Activation& a, PyObject* name);
bool call(Activation& a, int count, PyObject* names);
bool call_function_ex(Activation& a, int flags);
bool make_function(Activation& a, int flags);
/// UNPACK_SEQUENCE (`after` < 0) and UNPACK_EX.
bool unpack(Activation& a, int before, int after);
/// `arg` is the depth of the dict below what is merged into it.
bool dict_merge(Activation& a, int arg);
bool build_slice(Activation& a, int count);
bool format_value(Activation& a, int flags);
bool before_with(Activation& a);
/// `jump` is how far to go once the receiver is exhausted.
bool send(Activation& a, int jump);
bool for_iter(Activation& a, int jump);
bool check_exception_match(Activation& a);
bool raise(Activation& a, int count);
bool make_cell(Activation& a, int index);
void copy_free_variables(Activation& a, int count);
void push_exception_info(Activation& a);
void pop_except(Activation& a);
bool setup_annotations(Activation& a);

}  // namespace assay::capture
