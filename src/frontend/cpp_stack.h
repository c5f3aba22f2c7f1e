/// \file Where in the user's C++ program a call stands that a graph cannot hold: the text behind
/// `FunctionOptions::where` of C++ programs.
#pragma once

#include <string>
#include <string_view>

namespace assay::frontend {

/// While it lives, this thread runs the user's program: frames outside of it are not the program's.
class UserProgramScope {
 public:
  UserProgramScope();
  ~UserProgramScope();
  UserProgramScope(const UserProgramScope&) = delete;
  UserProgramScope& operator=(const UserProgramScope&) = delete;

 private:
  int saved_;
};

/// The user's frames on this thread's stack, innermost first, a line each:
/// "\n  in <function> at <file>:<line>", or "... at <object>+0x<offset>" for an object without
/// debug information. Frames of libtorch, Assay and the C++ runtime are left out; empty if none is
/// left. Asks `addr2line` if it is on the PATH, for two seconds at most.
std::string cpp_stack();

/// The qualified name of a demangled function, without its return type and parameters.
/// For tests: it decides which frames are the user's.
std::string_view function_name(std::string_view demangled);

}  // namespace assay::frontend
