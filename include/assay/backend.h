/// \file The backends by name, open to C++ programs: what turns a captured graph into something
/// that runs it.
///
///     class Mine : public assay::CompiledGraph { ... };
///     assay::register_backend({.name = "mine",
///                              .description = "what `assay backends` says about it",
///                              .compile = [](const assay::CompileRequest& request) {
///                                return std::make_shared<const Mine>(request);
///                              }});
///
/// A program that registers one uses it by name in assay::compile. To give it to the `assay`
/// command and its trial servers, build a shared library that registers it when loaded, and name
/// that library in `--plugin` or the setting `plugins`. tests/backends/wrong_sin_plugin.cpp is one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assay/compiler.h"

namespace assay {

/// One option of a backend.
struct BackendOption {
  std::string name;
  OptionValue default_value;
  std::string description;  ///< One line.
};

struct Backend {
  std::string name;
  std::string description = {};  ///< One line.
  /// `debug`: for finding faults; `testing`: has a fault built in; none: for everyday use.
  std::vector<std::string> tags = {};
  std::vector<BackendOption> options = {};
  /// It is passed options that are not in `options`, and checks them itself.
  bool accepts_any_option = false;
  /// It differentiates ahead of time, and puts `CompileContext::decorate` around the compiler of
  /// the halves it makes.
  bool compiles_halves = false;
  /// It binds the last `CompileRequest::bound_inputs` itself. For one that does not, they are
  /// passed to every call.
  bool binds_inputs = false;
  Compiler compile;
  /// For one that only this process has; empty: trials of a reduction know it by its name.
  BackendSender send = {};
};

/// Adds a backend. Throws `UserError` if there is one of that name, or the name is empty.
void register_backend(Backend backend);

/// Every backend: ours in the order in which the guide tries them, then registered ones.
std::vector<std::shared_ptr<const Backend>> all_backends();

/// The backend of that name. Throws `UserError` with the nearest names if there is none.
std::shared_ptr<const Backend> find_backend(std::string_view name);

/// Compiles with the named backend: timed, logged, and with the faults that are being injected.
/// Throws `UserError` for an option the backend does not have.
std::shared_ptr<const CompiledGraph> compile_graph(std::string_view backend,
                                                   CompileRequest request);

}  // namespace assay
