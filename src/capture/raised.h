/// \file The Python exception that is set, as one object: to look at it, to add a note, to set it
/// again. Used where a failure is reported besides being raised.
#pragma once

#include <string>

#include "capture/ref.h"

namespace assay::capture {

/// Takes the exception that is set, with its traceback. Null if there is none.
Ref take_raised();
/// Sets it again, as it was.
void set_raised(const Ref& error);
/// Adds a line that tracebacks show below the exception's message.
void add_note(const Ref& error, const std::string& note);
/// As Python prints it: with its traceback and causes, or only its type and message.
std::string text_of_raised(const Ref& error, bool with_traceback);

}  // namespace assay::capture
