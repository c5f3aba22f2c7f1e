#include "config.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/describe.h"
#include "config/store.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

// An empty choice is None, as torch._dynamo.config.repro_after is.
py::object to_python(const config::Setting& setting, const config::Value& value) {
  if (setting.domain.type == config::Type::choice && std::get<std::string>(value).empty()) {
    return py::none();
  }
  return std::visit([](const auto& held) -> py::object { return py::cast(held); }, value);
}

config::Value from_python(const config::Setting& setting, const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return py::cast<bool>(value);
  if (py::isinstance<py::int_>(value)) {
    int overflow = 0;
    const long long integer = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow == 0) return std::int64_t{integer};
    throw UserError("the setting " + std::string(setting.name) + " cannot be " +
                        py::cast<std::string>(py::str(value)),
                    "expected " + config::allowed_values(setting));
  }
  if (py::isinstance<py::float_>(value)) return py::cast<double>(value);
  if (py::isinstance<py::str>(value)) return py::cast<std::string>(value);
  if (value.is_none() && setting.domain.type == config::Type::choice) return std::string();
  throw config::WrongType("the setting " + std::string(setting.name) +
                              " cannot be a value of type " +
                              py::cast<std::string>(py::type::of(value).attr("__name__")),
                          "expected " + config::allowed_values(setting));
}

config::Assignment assignment(const std::string& name, const py::handle& value) {
  const std::size_t index = config::find_index(name);
  return {index, from_python(config::settings[index], value)};
}

py::dict describe(const config::Description& row) {
  const config::Setting& setting = *row.setting;
  py::list variables;
  for (const std::string_view name : setting.variables.names()) {
    if (!name.empty()) variables.append(py::str(name.data(), name.size()));
  }
  py::dict entry;
  entry["name"] = std::string(setting.name);
  entry["type"] = config::to_string(setting.domain.type);
  entry["default"] = to_python(setting, config::default_value(setting));
  entry["allowed"] = config::allowed_values(setting);
  entry["origin"] = config::to_string(row.origin);
  entry["environment"] = variables;
  entry["reserved"] = setting.is_reserved();
  entry["doc"] = std::string(setting.doc);
  return entry;
}

// A patch that begins when it is entered, and may be entered many times, one inside the other.
class Patch {
 public:
  explicit Patch(std::vector<config::Assignment> assignments)
      : assignments_(std::move(assignments)) {}

  void enter() { scopes_.push_back(std::make_unique<config::PatchScope>(assignments_)); }
  void exit() {
    if (scopes_.empty()) throw UserError("the patch was not entered");
    scopes_.pop_back();
  }

 private:
  std::vector<config::Assignment> assignments_;
  std::vector<std::unique_ptr<config::PatchScope>> scopes_;
};

}  // namespace

void add_config(py::module_& module) {
  // Python expects these of attributes. They come before the handlers of their base, `UserError`.
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const config::UnknownSetting& error) {
      PyErr_SetString(PyExc_AttributeError, error.what());
    } catch (const config::WrongType& error) {
      PyErr_SetString(PyExc_TypeError, error.what());
    }
  });
  module.def("config_get", [](const std::string& name) {
    const std::size_t index = config::find_index(name);
    return to_python(config::settings[index], config::current_value(index).first);
  });
  module.def("config_set", [](const std::string& name, const py::handle& value) {
    config::set_value(assignment(name, value));
  });
  module.def("config_unset",
             [](const std::string& name) { config::unset_value(config::find_index(name)); });
  module.def("config_describe", [] {
    py::list rows;
    for (const config::Description& row : config::describe_settings()) rows.append(describe(row));
    return rows;
  });
  module.def("config_reload_environment", &config::reload_environment);
  py::class_<Patch>(module, "ConfigPatch")
      .def(py::init([](const py::dict& values) {
        std::vector<config::Assignment> assignments;
        for (auto [name, value] : values) {
          assignments.push_back(assignment(py::cast<std::string>(name), value));
          config::checked_value(config::settings[assignments.back().index],
                                assignments.back().value);
        }
        return std::make_unique<Patch>(std::move(assignments));
      }))
      .def("enter", &Patch::enter)
      .def("exit", &Patch::exit);
}

}  // namespace assay::binding
