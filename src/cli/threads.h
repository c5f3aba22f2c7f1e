/// \file How many threads a trial has, for the commands that fork trial servers.
#pragma once

namespace assay::cli {

/// What the user asked for, else PyTorch's default. From then on this process has one: a server
/// that is forked from it must not have started any.
int take_threads(int wanted);

}  // namespace assay::cli
