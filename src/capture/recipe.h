/// \file Recipes: how a replay makes the objects that are alive at the end of a segment, from the
/// graph's outputs, the objects that the guards fetched, and constants. Objects that were one
/// object while recording are one object again. Made by recipe_builder.h, cooked by segment.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "assay/compiler.h"
#include "capture/ref.h"
#include "capture/segment_guards.h"

namespace assay::capture {

enum class Make : std::uint8_t {
  source,     ///< What guard step `index` fetched.
  constant,   ///< `object`.
  output,     ///< Output `index` of the graph: a tensor.
  array,      ///< Output `index` of the graph as an array of NumPy.
  scalar,     ///< Output `index` of the graph as a scalar of NumPy.
  number,     ///< Number `index` of those that follow from sizes (sized_runs.h).
  tuple,      ///< Of `parts`; `object` is the type (a tuple, namedtuple or torch.return_types one).
  list,       ///< Of `parts`; `object` is the type.
  set,        ///< Of `parts`; `object` is the type.
  dict,       ///< Keys and values in turn; `object` is the type.
  deque,      ///< Of `parts`; the first is maxlen.
  slice,      ///< Start, stop, step.
  cell,       ///< Contents; no part: empty.
  method,     ///< Function, receiver.
  builtin,    ///< The attribute `object` of the only part: a bound method of a builtin type.
  function,   ///< `object` is a function it is like; parts: defaults, kwdefaults, closure, dict.
  generator,  ///< Standing at `index` (generators.h); parts: its function, or none and `object` is
              ///< the code of one that has ended, then what its frame holds.
  exception,  ///< `object` is the type; parts: its args.
  instance,   ///< `object` is the type; parts: descriptors of __slots__ and their values in turn.
  call,       ///< The first part called with the others, then __setstate__(`object`) if set.
  partial,    ///< functools.partial; parts: function, tuple of arguments, dict of keywords.
};

struct Recipe {
  Make make = Make::constant;
  int index = 0;
  Ref object;
  std::vector<int> parts;
  /// The __dict__ of an instance, of a container of a subclass, or of a tensor; or -1.
  int attributes = -1;
  int factory = -1;  ///< A defaultdict's.
};

/// Parts come before what is made of them, except where an object contains itself.
using Recipes = std::vector<Recipe>;

/// Makes every object, in order. Throws `PythonError` if one cannot be made.
std::vector<Ref> cook(const Recipes& recipes, const GuardValues& values,
                      std::span<const c10::IValue> outputs, std::span<const std::int64_t> numbers);

/// A Python exception is set.
struct PythonError {};

}  // namespace assay::capture
