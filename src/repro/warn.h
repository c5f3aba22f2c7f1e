/// \file One warning of the debug wrapper, on stderr unless TORCH_LOGS says otherwise.
#pragma once

#include <string>

#include "observe/observe.h"

namespace assay::repro {

inline void warn(const std::string& message,
                 const observe::SourceLocation& place = observe::SourceLocation::current()) {
  observe::log(observe::Component::repro, observe::Level::warning, message, place);
}

}  // namespace assay::repro
