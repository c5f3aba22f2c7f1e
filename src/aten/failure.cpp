#include "aten/failure.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <system_error>
#include <typeinfo>

#include "aten/runner.h"
#include "observe/settings_error.h"

namespace assay::aten {

namespace {

using Blame = FailureDetail::Blame;

// Without namespaces.
std::string type_of(const std::exception& error) {
  int status = 0;
  char* name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status);
  const std::string full = status == 0 ? name : typeid(error).name();
  std::free(name);  // NOLINT: the ABI says so
  return full.substr(full.rfind(':') == std::string::npos ? 0 : full.rfind(':') + 1);
}

FailureDetail plain(Blame blame, const std::exception& error) {
  return {blame, type_of(error), error.what(), error.what()};
}

FailureDetail describe(const UserError& error) {
  const bool is_refused = dynamic_cast<const TraceError*>(&error) != nullptr;
  FailureDetail detail = plain(is_refused ? Blame::program : Blame::user, error);
  detail.message = error.detail().message;
  detail.where = error.detail().where;
  detail.hint = error.detail().hint;
  return detail;
}

}  // namespace

const char* python_class_of(const c10::Error& error) {
  const auto is = [&]<typename T>() { return dynamic_cast<const T*>(&error) != nullptr; };
  if (is.operator()<c10::IndexError>()) return "IndexError";
  if (is.operator()<c10::ValueError>()) return "ValueError";
  if (is.operator()<c10::TypeError>()) return "TypeError";
  if (is.operator()<c10::NotImplementedError>()) return "NotImplementedError";
  if (is.operator()<c10::OutOfMemoryError>()) return "OutOfMemoryError";
  if (is.operator()<c10::LinAlgError>()) return "LinAlgError";
  return "RuntimeError";
}

FailureDetail describe_exception() {
  try {
    throw;
  } catch (const OperatorError& error) {
    FailureDetail detail = {Blame::program, "OperatorError", error.message(), error.what()};
    detail.node = error.node_name();
    detail.target = error.target();
    detail.raised = error.raised();
    detail.call = error.call();
    detail.stack = error.stack();
    detail.provenance = error.provenance();
    return detail;
  } catch (const ProgramError& error) {
    FailureDetail detail = {Blame::program, error.type(), error.message(), error.what()};
    detail.node = error.node();
    detail.provenance = error.provenance();
    return detail;
  } catch (const observe::SettingsError& error) {
    return plain(Blame::user, error);
  } catch (const UserError& error) {
    return describe(error);
  } catch (const InternalError& error) {
    return plain(Blame::assay, error);
  } catch (const c10::Error& error) {  // raised outside of any node, by autograd
    const std::string message = error.what_without_backtrace();
    FailureDetail detail = {Blame::program, "c10::Error", message, message};
    detail.raised = python_class_of(error);
    return detail;
  } catch (const std::system_error& error) {
    return plain(Blame::user, error);
  } catch (const std::exception& error) {
    return plain(Blame::program, error);
  } catch (...) {
    const std::string message = "an exception that is not a std::exception";
    return {Blame::program, "unknown exception", message, message};
  }
}

}  // namespace assay::aten
