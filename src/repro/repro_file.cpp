#include "repro/repro_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "assay/error.h"
#include "graph/annotation.h"
#include "graph/parse.h"
#include "graph/python_names.h"
#include "graph/python_parser.h"
#include "repro/bundle.h"
#include "repro/header.h"

namespace assay::repro {

namespace {

using graph::SizeExpr;
using graph::python::dotted_name;
using graph::python::Expression;
using graph::python::Module;
using graph::python::Source;
using graph::python::Statement;
using Kind = Expression::Kind;

constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{64} << 20U;

// The keyword and positional arguments of one call, read by name.
class Call {
 public:
  Call(const Source& source, const Expression& call) : source_(source), call_(call) {}

  std::string callee() const { return dotted_name(*call_.children[0]); }
  std::size_t positional() const { return call_.children.size() - 1; }
  const Expression* argument(std::size_t position, std::string_view keyword) const {
    if (position < positional()) return call_.children[position + 1];
    for (const auto& candidate : call_.keywords) {
      if (candidate.name == keyword) return candidate.value;
    }
    return nullptr;
  }
  const Expression& required(std::size_t position, std::string_view keyword) const {
    if (const Expression* found = argument(position, keyword)) return *found;
    throw error(call_, "expected the argument '" + std::string(keyword) + "'");
  }

  UserError error(const Expression& at, const std::string& message) const {
    return source_.error(at.offset, at.end - at.offset, message);
  }

  /// An argument that we do not know could change what the values are.
  void refuse_others(std::initializer_list<std::string_view> known) const {
    for (const auto& keyword : call_.keywords) {
      if (std::ranges::find(known, keyword.name) == known.end()) {
        throw error(*keyword.value, "unknown argument '" + std::string(keyword.name) + "'");
      }
    }
  }

  SizeExpr size(const Expression& expression) const {
    if (auto size = graph::size_from_syntax(expression)) return std::move(*size);
    throw error(expression, "expected a size");
  }
  std::vector<SizeExpr> sizes(const Expression& expression) const {
    if (expression.kind != Kind::tuple && expression.kind != Kind::list) {
      throw error(expression, "expected a tuple of sizes");
    }
    std::vector<SizeExpr> made;
    for (const Expression* item : expression.children) made.push_back(size(*item));
    return made;
  }
  template <typename T>
  std::optional<T> constant(std::size_t position, std::string_view keyword,
                            const char* expected) const {
    const Expression* given = argument(position, keyword);
    if (given == nullptr || given->kind == Kind::none) return std::nullopt;
    const graph::Argument value = graph::constant_from_syntax(source_, *given);
    if (const T* found = value.get_if<T>()) return *found;
    throw error(*given, std::string("expected ") + expected);
  }
  bool flag(std::string_view keyword, bool fallback) const {
    return constant<bool>(kKeywordOnly, keyword, "True or False").value_or(fallback);
  }
  c10::Device device(std::size_t position, std::string_view keyword) const {
    const Expression* given = argument(position, keyword);
    if (given == nullptr || given->kind == Kind::none) return c10::Device(c10::DeviceType::CPU);
    const graph::Argument value = graph::constant_from_syntax(source_, *given);
    if (const auto* found = value.get_if<c10::Device>()) return *found;
    if (const auto* name = value.get_if<std::string>()) {
      try {
        return c10::Device(*name);
      } catch (const c10::Error&) {
        throw error(*given, "unknown device");
      }
    }
    throw error(*given, "expected a device");
  }

  static constexpr std::size_t kKeywordOnly = 1000;

 private:
  const Source& source_;
  const Expression& call_;
};

class FileReader {
 public:
  FileReader(ReproFile& file, const Module& module)
      : file_(file), source_(*file.source), module_(module) {}

  void read() {
    file_.graph = graph::parse(source_, module_);
    for (const Statement& statement : module_.statements) top_level(statement);
    read_header();
    if (!has_inputs_) inputs_from_annotations();
    check_input_count();
  }

 private:
  UserError error(const Expression& at, const std::string& message,
                  const std::string& hint = {}) const {
    return source_.error(at.offset, at.end - at.offset, message, hint);
  }
  std::string text_of(const Expression& expression) const {
    return source_.text.substr(expression.offset, expression.end - expression.offset);
  }

  void top_level(const Statement& statement) {
    switch (statement.kind) {
      case Statement::Kind::function:
        if (statement.name == "load_args") load_args(statement);
        return;
      case Statement::Kind::assign:
        assignment(statement);
        return;
      case Statement::Kind::import:
        note_stage(source_.text.substr(statement.offset, statement.end - statement.offset));
        return;
      case Statement::Kind::expression:
        if (statement.value->kind == Kind::call) run_repro(*statement.value);
        return;
      case Statement::Kind::if_block:
      case Statement::Kind::with_block:
        for (const Statement& inner : statement.body) top_level(inner);
        return;
      default:
        return;
    }
  }

  void note_stage(std::string_view import) {
    if (import.find("repro.after_aot") != std::string_view::npos) file_.stage = Stage::after_aot;
    if (import.find("repro.after_dynamo") != std::string_view::npos) {
      file_.stage = Stage::after_dynamo;
    }
    if (file_.stage != Stage::unknown) return;
    // The older forms import the tool they run with.
    if (import.find("run_fwd_maybe_bwd") != std::string_view::npos) {
      file_.stage = Stage::after_dynamo;
    }
    if (import.find("make_fx") != std::string_view::npos) file_.stage = Stage::after_aot;
  }

  void assignment(const Statement& statement) {
    const Expression& target = *statement.targets[0];
    const Expression& value = *statement.value;
    const std::string name = dotted_name(target);
    if (name == "args" && value.kind == Kind::list) {
      old_form_arguments(value);
    } else if (target.kind == Kind::name && value.kind == Kind::integer && is_symbol(name)) {
      file_.symbols[name] = static_cast<std::int64_t>(value.magnitude);
    } else if (name.starts_with("torch.") && name.find("config.") != std::string::npos) {
      file_.config.push_back({name, text_of(value)});
    } else if (target.kind == Kind::subscript && dotted_name(*target.children[0]) == "os.environ" &&
               target.children[1]->kind == Kind::string) {
      file_.environment.push_back({std::string(target.children[1]->value), text_of(value)});
    } else if (name == kInlinedStorages && value.kind == Kind::dict) {
      inlined_storages(value);
    } else if (name == "opt_mod" && value.kind == Kind::call) {
      const Call call(source_, value);
      if (auto backend = call.constant<std::string>(1, "backend", "a string")) {
        file_.backend = *backend;
      }
    }
  }

  // Size symbols are called s77, u0, zf3.
  static bool is_symbol(std::string_view name) {
    const auto digits = name.find_first_of("0123456789");
    return digits != std::string_view::npos && digits >= 1 && digits <= 2 &&
           std::ranges::all_of(name.substr(digits), [](char c) { return c >= '0' && c <= '9'; });
  }

  void run_repro(const Expression& expression) {
    const Call call(source_, expression);
    if (call.callee() != "run_repro") return;
    constexpr std::size_t kOnly = Call::kKeywordOnly;
    const auto text = [&](std::string_view keyword, std::string& into) {
      if (auto found = call.constant<std::string>(kOnly, keyword, "a string")) into = *found;
    };
    text("command", file_.command);
    text("tracing_mode", file_.tracing_mode);
    text("check_str", file_.check_string);
    text("backend", file_.backend);
    if (const Expression* directory = call.argument(kOnly, "save_dir")) save_directory(*directory);
    file_.autocast = call.flag("autocast", false);
    if (const Expression* accuracy = call.argument(kOnly, "accuracy")) {
      file_.accuracy = text_of(*accuracy);
    }
  }

  // A string, or what write.cpp writes for a directory that moves with the file:
  // os.path.join(os.path.dirname(os.path.abspath(__file__)), 'checkpoints').
  void save_directory(const Expression& directory) {
    if (directory.kind == Kind::none) return;
    if (directory.kind == Kind::string) {
      file_.save_directory = std::string(directory.value);
      return;
    }
    const std::string text = text_of(directory);
    if (text == kUnpackCall) return;  // the file holds them itself
    constexpr std::string_view kBeside = "os.path.dirname(os.path.abspath(__file__))";
    if (text == kBeside) {
      file_.save_directory = ".";
      return;
    }
    if (directory.kind == Kind::call && dotted_name(*directory.children[0]) == "os.path.join" &&
        directory.children.size() == 3 && directory.keywords.empty() &&
        text_of(*directory.children[1]) == kBeside && directory.children[2]->kind == Kind::string) {
      file_.save_directory = std::string(directory.children[2]->value);
      return;
    }
    throw error(directory, "expected a string",
                "or os.path.join(os.path.dirname(os.path.abspath(__file__)), 'directory')");
  }

  void inlined_storages(const Expression& dictionary) {
    for (std::size_t i = 0; i + 1 < dictionary.children.size(); i += 2) {
      const Expression& hash = *dictionary.children[i];
      const Expression& text = *dictionary.children[i + 1];
      if (hash.kind != Kind::string || text.kind != Kind::string) {
        throw error(hash, "expected 'hash': 'contents in base64'");
      }
      auto bytes = from_base64(text.value);
      if (!bytes) throw error(text, "this is not base64");
      file_.inlined_storages.insert_or_assign(std::string(hash.value), std::move(*bytes));
    }
  }

  // ---- load_args(reader) ----

  void load_args(const Statement& function) {
    if (has_inputs_) throw source_.error(function.offset, 3, "load_args is defined twice");
    has_inputs_ = true;
    const std::string reader =
        function.parameters.empty() ? "reader" : std::string(function.parameters[0].name);
    for (const Statement& statement : function.body) {
      if (statement.kind == Statement::Kind::pass) continue;
      if (statement.kind == Statement::Kind::expression && statement.value->kind == Kind::string) {
        continue;  // stock PyTorch describes unsupported inputs in a string
      }
      const bool is_call = statement.value != nullptr && statement.value->kind == Kind::call &&
                           (statement.kind == Statement::Kind::assign ||
                            statement.kind == Statement::Kind::expression);
      if (!is_call) {
        throw source_.error(statement.offset, statement.end - statement.offset,
                            "load_args can only call the reader",
                            "expected 'buf0 = reader.storage(...)' or 'reader.tensor(...)'");
      }
      reader_call(statement, reader);
    }
  }

  void reader_call(const Statement& statement, const std::string& reader) {
    const Call call(source_, *statement.value);
    const std::string callee = call.callee();
    if (callee == reader + ".storage") {
      if (statement.kind != Statement::Kind::assign || statement.targets[0]->kind != Kind::name) {
        throw error(*statement.value, "expected 'name = reader.storage(...)'");
      }
      storages_[std::string(statement.targets[0]->text)] = file_.storages.size();
      file_.storages.push_back(storage(call));
    } else if (callee == reader + ".tensor") {
      file_.inputs.emplace_back(tensor(call));
    } else if (callee == reader + ".symint") {
      file_.inputs.emplace_back(symint(call));
    } else if (callee == reader + ".const") {
      file_.inputs.emplace_back(
          ConstantInput{call.constant<std::string>(0, "name", "a string").value_or("")});
    } else if (callee == reader + ".unsupported" || callee == reader + ".opaque" ||
               callee == reader + ".generator") {
      file_.inputs.emplace_back(UnsupportedInput{text_of(*statement.value)});
    } else {
      throw error(*statement.value, "unknown reader method '" + callee + "'",
                  "expected reader.storage, reader.tensor, reader.symint or reader.const");
    }
  }

  StorageSpec storage(const Call& call) const {
    StorageSpec made;
    made.hash = call.constant<std::string>(0, "storage_hash", "a hash or None").value_or("");
    const bool is_plain = std::ranges::all_of(made.hash, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    // The hash is a file name: nothing that could leave the storage directory.
    if (!is_plain) throw call.error(call.required(0, "storage_hash"), "not a storage's hash");
    made.bytes = call.size(call.required(1, "nbytes"));
    made.device = call.device(Call::kKeywordOnly, "device");
    made.dtype_hint = call.constant<c10::ScalarType>(Call::kKeywordOnly, "dtype_hint", "a dtype")
                          .value_or(c10::ScalarType::Float);
    return made;
  }

  TensorInput tensor(const Call& call) const {
    TensorInput made;
    const Expression& storage_name = call.required(0, "storage");
    auto found = storages_.find(dotted_name(storage_name));
    if (found == storages_.end()) throw call.error(storage_name, "this storage is not defined");
    made.storage = found->second;
    made.meta.sizes = call.sizes(call.required(1, "shape"));
    const Expression* strides = call.argument(2, "stride");
    if (strides != nullptr && strides->kind != Kind::none) {
      made.meta.strides = call.sizes(*strides);
      if (made.meta.strides.size() != made.meta.sizes.size()) {
        throw call.error(*strides, "expected as many strides as sizes");
      }
    } else {
      made.meta.strides = graph::contiguous_strides(made.meta.sizes);
    }
    constexpr std::size_t kOnly = Call::kKeywordOnly;
    made.meta.dtype =
        call.constant<c10::ScalarType>(kOnly, "dtype", "a dtype").value_or(c10::ScalarType::Float);
    made.meta.device = file_.storages[made.storage].device;
    made.meta.requires_grad = call.flag("requires_grad", false);
    made.is_leaf = call.flag("is_leaf", true);
    made.is_conjugate = call.flag("conj", false);
    made.is_negative = call.flag("neg", false);
    call.refuse_others({"storage", "shape", "stride", "storage_offset", "dtype", "requires_grad",
                        "is_leaf", "conj", "neg"});
    if (const Expression* offset = call.argument(kOnly, "storage_offset")) {
      made.storage_offset = call.size(*offset);
    }
    return made;
  }

  IntegerInput symint(const Call& call) {
    IntegerInput made;
    const auto value = call.constant<std::int64_t>(0, "val", "an integer");
    if (!value) throw call.error(call.required(0, "val"), "expected an integer");
    made.value = *value;
    made.expression =
        call.constant<std::string>(Call::kKeywordOnly, "expr", "a string").value_or("");
    if (is_symbol(made.expression)) file_.symbols.emplace(made.expression, made.value);
    return made;
  }

  // ---- args = [((200, 200), (200, 1), torch.float32, 'cpu', True)] ----

  void old_form_arguments(const Expression& list) {
    const bool converts = std::ranges::any_of(
        list.children, [](const Expression* item) { return item->kind == Kind::opaque; });
    if (converts) return;  // args = [rand_strided(...) for ... in args]
    if (has_inputs_) throw error(list, "the inputs are defined twice");
    has_inputs_ = true;
    for (const Expression* item : list.children) {
      if (item->kind != Kind::tuple || item->children.size() < 4) {
        throw error(*item, "expected (sizes, strides, dtype, device[, requires_grad])");
      }
      old_form_tensor(*item);
    }
  }

  void old_form_tensor(const Expression& item) {
    std::vector<const Expression*> items = {&item};  // the items read like a call's arguments
    items.insert(items.end(), item.children.begin(), item.children.end());
    Expression as_call = item;
    as_call.children = items;
    const Call call(source_, as_call);
    TensorInput made;
    made.meta.sizes = call.sizes(*item.children[0]);
    made.meta.strides = call.sizes(*item.children[1]);
    if (made.meta.strides.size() != made.meta.sizes.size()) {
      throw error(*item.children[1], "expected as many strides as sizes");
    }
    const auto dtype = call.constant<c10::ScalarType>(2, "dtype", "a dtype");
    if (!dtype) throw error(*item.children[2], "expected a dtype");
    made.meta.dtype = *dtype;
    made.meta.device = call.device(3, "device");
    made.meta.requires_grad =
        call.constant<bool>(4, "requires_grad", "True or False").value_or(false);
    add_own_storage(std::move(made));
  }

  // A tensor whose storage holds just its elements.
  void add_own_storage(TensorInput tensor) {
    using Operation = SizeExpr::Operation;
    const auto binary = SizeExpr::binary;
    SizeExpr elements = 1;
    for (std::size_t i = 0; i < tensor.meta.sizes.size(); ++i) {
      const SizeExpr& size = tensor.meta.sizes[i];
      elements = binary(Operation::add, elements,
                        binary(Operation::multiply,
                               binary(Operation::maximum, binary(Operation::subtract, size, 1), 0),
                               tensor.meta.strides[i]));
    }
    StorageSpec storage;
    storage.bytes = binary(Operation::multiply, elements,
                           static_cast<std::int64_t>(c10::elementSize(tensor.meta.dtype)));
    storage.device = tensor.meta.device;
    storage.dtype_hint = tensor.meta.dtype;
    tensor.storage = file_.storages.size();
    file_.storages.push_back(std::move(storage));
    file_.inputs.emplace_back(std::move(tensor));
  }

  // ---- the rest ----

  void read_header() {
    std::size_t end = source_.text.size();
    for (const Statement& statement : module_.statements) {
      if (statement.kind == Statement::Kind::class_def) end = std::min(end, statement.offset);
    }
    constexpr std::string_view kBackend = "assay backend: ";
    for (const auto& comment : module_.comments) {
      if (comment.offset >= end) break;
      if (is_header_comment(comment.text)) file_.header += "# " + std::string(comment.text) + "\n";
      if (comment.text.starts_with(kBackend)) {
        file_.backend = std::string(comment.text.substr(kBackend.size()));
      }
    }
  }

  // A readable graph has no load_args, but its parameters say what they are.
  void inputs_from_annotations() {
    for (const graph::Node* placeholder : std::as_const(*file_.graph).placeholders()) {
      const graph::ValueMeta& value = placeholder->meta.value;
      if (const graph::TensorMeta* meta = value.tensor()) {
        TensorInput tensor;
        tensor.meta = *meta;
        add_own_storage(std::move(tensor));
      } else if (const auto* size = std::get_if<SizeExpr>(&value.value)) {
        file_.inputs.emplace_back(IntegerInput{size->evaluate(file_.symbols), size->str()});
      } else if (placeholder->args().empty()) {
        throw UserError(
            source_.file + ": the file does not describe the input '" + placeholder->name() + "'",
            "expected def load_args(reader), args = [...], or an annotation such as "
            "'" +
                placeholder->name() + ": \"f32[8, 16]\"'");
      }
    }
  }

  void check_input_count() const {
    const auto placeholders = std::as_const(*file_.graph).placeholders();
    const auto needed = static_cast<std::size_t>(std::ranges::count_if(
        placeholders, [](const graph::Node* node) { return node->args().empty(); }));
    if (file_.inputs.size() < needed || file_.inputs.size() > placeholders.size()) {
      throw UserError(source_.file + ": the graph takes " + std::to_string(placeholders.size()) +
                      " inputs, the file gives " + std::to_string(file_.inputs.size()));
    }
  }

  ReproFile& file_;
  const Source& source_;
  const Module& module_;
  std::map<std::string, std::size_t, std::less<>> storages_;
  bool has_inputs_ = false;
};

}  // namespace

const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::after_aot:
      return "after_aot";
    case Stage::after_dynamo:
      return "after_dynamo";
    case Stage::unknown:
      return "unknown";
  }
  throw InternalError("unknown stage");
}

ReproFile parse_repro_file(std::string text, const std::string& name) {
  ReproFile file;
  file.source = std::make_unique<Source>(Source{name, std::move(text)});
  const Module module = graph::python::parse_module(*file.source);
  FileReader(file, module).read();
  return file;
}

ReproFile read_repro_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UserError(path.string() + ": this is a directory", "expected a file such as repro.py");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw UserError(path.string() + ": " + std::strerror(errno));
  std::string text;
  std::vector<char> block(std::size_t{1} << 16U);
  // Read no more than the limit, also from a device or pipe that never ends.
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())),
         stream.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxFileBytes) break;
  }
  if (stream.bad()) throw UserError(path.string() + ": the file cannot be read");
  return parse_repro_file(std::move(text), path.string());
}

}  // namespace assay::repro
