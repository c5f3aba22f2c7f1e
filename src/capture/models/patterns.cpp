// Regular expressions: methods of a pattern and of a match, on strings.
#include "capture/models/table.h"

namespace assay::capture {

namespace {

// A pattern and a match do not change: what a method answers follows from the values it gets.
PyObject* of_values(Recorder& recorder, Activation& a, const Call& call) {
  const auto plainly = [&] {
    return recorder.call_plainly(a, call, "a regular expression on an object not modelled");
  };
  if (call.count == 0 || !recorder.touch(call.args[0])) return plainly();
  for (std::size_t i = 1; i < call.count; ++i) {
    if (!is_scalar(call.args[i])) return plainly();
  }
  recorder.guard_identity(call.args[0]);
  PyObject* result = recorder.call_watched(a, call);
  if (result == nullptr || !recorder.is_recording() || recorder.is_local(result)) return result;
  recorder.is_constant(result);  // a match
  return result;
}

}  // namespace

ModelTable pattern_models() {
  return {
      {"re.Pattern.match", of_values},     {"re.Pattern.search", of_values},
      {"re.Pattern.fullmatch", of_values}, {"re.Pattern.sub", of_values},
      {"re.Pattern.subn", of_values},      {"re.Pattern.split", of_values},
      {"re.Pattern.findall", of_values},   {"re.Match.group", of_values},
      {"re.Match.groups", of_values},      {"re.Match.groupdict", of_values},
      {"re.Match.start", of_values},       {"re.Match.end", of_values},
      {"re.Match.span", of_values},
  };
}

}  // namespace assay::capture
