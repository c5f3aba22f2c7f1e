// The one header other rooms include to say what they are doing: log(), artifact(), event() and
// Phase. To switch consumers on: configure.h; to listen: subscribe.h; to work unheard: quiet.h;
// for compile_times(): timings.h; for the table of names: log_names.h. See docs/observe.md.
#pragma once

#include "observe/channel.h"  // IWYU pragma: export
#include "observe/event.h"    // IWYU pragma: export
#include "observe/phase.h"    // IWYU pragma: export
#include "observe/stream.h"   // IWYU pragma: export
