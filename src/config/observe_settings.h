/// \file What the settings say for the observe room: logs, their format and file, the trace.
#pragma once

#include "observe/configure.h"

namespace assay::config {

/// For `observe::configure`, which a program calls once at its start; later changes of the settings
/// are pushed. Throws `observe::SettingsError`, or `observe::HelpRequested` for TORCH_LOGS=help.
observe::Settings observe_settings();

}  // namespace assay::config
