/// \file The programs in a text: what of it can be read, and where one ends and the next begins.
/// People publish launchers with settings that are not Python, files that were cut off, and several
/// repros behind each other. Called by repro/repro_file.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/error.h"
#include "graph/python_parser.h"

namespace assay::repro {

struct Recovered {
  graph::python::Module module;
  std::vector<std::string> notes;  ///< What was skipped, one sentence each.
  std::optional<UserError> first_error;
};

/// Parses `source`. A statement at the top of the file that is not Python is blanked in it and
/// noted, unless it defines a class or the inputs. Throws `UserError` if nothing else is left.
Recovered parse_what_can_be_read(graph::python::Source& source);

/// The statements of each program: a new one begins where torch is imported again after a graph
/// that nothing behind uses.
/// Moves the statements of `module`, which must outlive the parts: the trees stay in it.
std::vector<graph::python::Module> split_programs(graph::python::Module& module,
                                                  const graph::python::Source& source);

}  // namespace assay::repro
