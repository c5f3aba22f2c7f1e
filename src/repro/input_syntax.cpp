#include "repro/input_syntax.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "assay/error.h"
#include "aten/plan.h"
#include "graph/annotation.h"
#include "graph/tensor_syntax.h"
#include "repro/inputs.h"

namespace assay::repro {

namespace {

using graph::SizeExpr;
using graph::python::dotted_name;
using graph::python::Expression;
using graph::python::Statement;
using Kind = Expression::Kind;

// Contents that the file determines are kept with it, unless they are huge.
constexpr std::size_t kMaxWrittenBytes = std::size_t{16} << 20U;

bool is_call_statement(const Statement& statement) {
  return statement.value != nullptr && statement.value->kind == Kind::call &&
         (statement.kind == Statement::Kind::assign ||
          statement.kind == Statement::Kind::expression);
}

bool is_identifier(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

UserError InputReader::error(const Expression& at, const std::string& message,
                             const std::string& hint) const {
  return source_.error(at.offset, at.end - at.offset, message, hint);
}

std::string InputReader::text_of(const Expression& expression) const {
  return source_.text.substr(expression.offset, expression.end - expression.offset);
}

// `reader.tensor(...)  # primals_1`: stock names the placeholder behind each input.
std::string InputReader::comment_behind(const Statement& statement) const {
  const auto found =
      std::ranges::lower_bound(comments_, statement.end, {}, &graph::python::Comment::offset);
  if (found == comments_.end()) return {};
  const std::string_view between =
      std::string_view(source_.text).substr(statement.end, found->offset - statement.end);
  if (between.find('\n') != std::string_view::npos) return {};
  const std::string_view text = found->text;
  const std::string_view name = text.substr(0, text.find_first_of(" ,"));
  return is_identifier(name) ? std::string(name) : std::string();
}

// ---- load_args(reader) ----

void InputReader::load_args(const Statement& function) {
  std::string reader = "reader";
  if (!function.parameters.empty()) reader = std::string(function.parameters.back().name);
  std::vector<Written> inputs;
  for (const Statement& statement : function.body) {
    if (statement.kind == Statement::Kind::pass) continue;
    if (statement.kind == Statement::Kind::expression && statement.value->kind == Kind::string) {
      continue;  // stock PyTorch describes unsupported inputs in a string
    }
    if (statement.kind == Statement::Kind::assign &&
        dotted_name(*statement.targets[0]) == "load_args._version") {
      continue;  // where there are no inputs, stock's indentation puts it inside
    }
    if (statement.kind == Statement::Kind::if_block) {
      repeats_fixup(statement, reader);
      continue;
    }
    if (!is_call_statement(statement)) {
      throw source_.error(statement.offset, statement.end - statement.offset,
                          "load_args can only call the reader",
                          "expected 'buf0 = reader.storage(...)' or 'reader.tensor(...)'");
    }
    if (auto input = reader_call(statement, reader)) inputs.push_back(std::move(*input));
  }
  from_load_args_ = std::move(inputs);
}

// `_repeats = reader.args[1]` and `_output_size = reader.args[2]`, before code that makes them fit.
void InputReader::repeats_fixup(const Statement& block, const std::string& reader) {
  RepeatsFixup fixup;
  std::size_t found = 0;
  for (const Statement& statement : block.body) {
    if (statement.kind != Statement::Kind::assign || statement.value->kind != Kind::subscript ||
        dotted_name(*statement.value->children[0]) != reader + ".args" ||
        statement.value->children[1]->kind != Kind::integer) {
      continue;
    }
    const auto index = static_cast<std::size_t>(statement.value->children[1]->magnitude);
    const std::string name = dotted_name(*statement.targets[0]);
    if (name == "_repeats") fixup.repeats = index;
    if (name == "_output_size") fixup.output_size = index;
    ++found;
  }
  if (found != 2) {
    throw source_.error(block.offset, 2, "load_args can only call the reader",
                        "expected 'buf0 = reader.storage(...)' or 'reader.tensor(...)'");
  }
  file_.repeats_fixups.push_back(fixup);
}

bool InputReader::is_reader_call(const Expression& call, const std::string& reader) const {
  return call.kind == Kind::call && Call(source_, call).callee().starts_with(reader + ".");
}

std::optional<InputReader::Written> InputReader::reader_call(const Statement& statement,
                                                             const std::string& reader) {
  const Call call(source_, *statement.value);
  const std::string callee = call.callee();
  Written made;
  made.name = comment_behind(statement);
  if (callee == reader + ".storage") {
    if (statement.kind != Statement::Kind::assign || statement.targets[0]->kind != Kind::name) {
      throw error(*statement.value, "expected 'name = reader.storage(...)'");
    }
    storages_[std::string(statement.targets[0]->text)] = file_.storages.size();
    file_.storages.push_back(storage(call));
    return std::nullopt;
  }
  if (callee == reader + ".tensor") {
    made.input = tensor(call);
  } else if (callee == reader + ".symint") {
    std::string name = std::move(made.name);
    made = symint(call);
    made.name = std::move(name);
  } else if (callee == reader + ".const") {
    made.input = ConstantInput{call.constant<std::string>(0, "name", "a string").value_or("")};
  } else if (callee == reader + ".generator") {
    made.input = GeneratorInput{};
  } else if (callee == reader + ".unsupported") {
    made.name = call.constant<std::string>(0, "name", "a string").value_or("");
    made.input = UnsupportedInput{made.name};
  } else if (callee == reader + ".opaque") {
    made.input = UnsupportedInput{text_of(*statement.value)};
  } else {
    throw error(*statement.value, "unknown reader method '" + callee + "'",
                "expected reader.storage, reader.tensor, reader.symint or reader.const");
  }
  return made;
}

StorageSpec InputReader::storage(const Call& call) const {
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

TensorInput InputReader::tensor(const Call& call) const {
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

InputReader::Written InputReader::symint(const Call& call) const {
  IntegerInput made;
  const Expression& given = call.required(0, "val");
  bool is_unknown = false;
  if (given.kind == Kind::none) {
    is_unknown = true;
  } else if (given.kind == Kind::boolean) {
    made.value = static_cast<std::int64_t>(given.magnitude);
  } else {
    const auto value = call.constant<std::int64_t>(0, "val", "an integer");
    if (!value) throw call.error(given, "expected an integer");
    made.value = *value;
  }
  made.expression = call.constant<std::string>(Call::kKeywordOnly, "expr", "a string").value_or("");
  return {made, {}, is_unknown};
}

// ---- at the top of the file ----

void InputReader::top_level(const Statement& statement) {
  computed_.top_level(statement);
  if (statement.kind == Statement::Kind::assign) {
    assignment(statement);
  } else if (statement.kind == Statement::Kind::augmented && statement.operation == "+=") {
    const auto list = lists_.find(dotted_name(*statement.targets[0]));
    if (list == lists_.end()) return;
    if (auto items = list_items(*statement.value)) {
      list->second.insert(list->second.end(), items->begin(), items->end());
    }
  } else if (statement.kind == Statement::Kind::expression && statement.value->kind == Kind::call) {
    const Expression& call = *statement.value;
    const std::string callee = Call(source_, call).callee();
    for (const std::string& reader : readers_) {
      if (!callee.starts_with(reader + ".")) continue;
      if (auto input = reader_call(statement, reader)) from_reader_.push_back(std::move(*input));
      return;
    }
    constexpr std::string_view kAppend = ".append";
    if (callee.ends_with(kAppend) && call.children.size() == 2) {
      const auto list = lists_.find(callee.substr(0, callee.size() - kAppend.size()));
      if (list == lists_.end()) return;
      auto item = value(*call.children[1]);
      if (!item) throw error(*call.children[1], "not an input Assay can make without Python");
      list->second.push_back(std::move(*item));
      return;
    }
    find_use(call);
  }
}

void InputReader::assignment(const Statement& statement) {
  const Expression& assigned = *statement.value;
  if (assigned.kind == Kind::call) {
    const Call call(source_, assigned);
    if (call.callee().ends_with("InputReader")) {
      readers_.insert(dotted_name(*statement.targets[0]));
      const Expression* directory = call.argument(0, "save_dir");
      if (directory != nullptr && directory->kind == Kind::string) {
        file_.save_directory = std::string(directory->value);
      }
      return;
    }
    for (const std::string& reader : readers_) {
      if (!is_reader_call(assigned, reader)) continue;
      auto input = reader_call(statement, reader);
      if (!input) return;
      from_reader_.push_back(*input);
      values_.insert_or_assign(dotted_name(*statement.targets[0]), std::move(*input));
      return;
    }
  }
  if (statement.targets.size() != 1) return;
  const Expression& target = *statement.targets[0];
  if (target.kind == Kind::name) {
    bind(std::string(target.text), assigned);
  } else if (target.kind == Kind::tuple && assigned.kind == Kind::tuple &&
             target.children.size() == assigned.children.size()) {
    for (std::size_t i = 0; i < target.children.size(); ++i) {
      if (target.children[i]->kind == Kind::name) {
        bind(std::string(target.children[i]->text), *assigned.children[i]);
      }
    }
  }
  find_use(assigned);
}

void InputReader::bind(const std::string& name, const Expression& assigned) {
  try {
    bind_value(name, assigned);
  } catch (const UserError& failure) {
    if (!unreadable_) unreadable_ = failure;  // matters only if it is an input
  }
}

void InputReader::bind_value(const std::string& name, const Expression& assigned) {
  if (assigned.kind == Kind::list || assigned.kind == Kind::tuple) {
    if (auto items = list_items(assigned)) lists_.insert_or_assign(name, std::move(*items));
    return;
  }
  for (const std::string& reader : readers_) {
    if (dotted_name(assigned) == reader + ".args") lists_.insert_or_assign(name, from_reader_);
  }
  if (assigned.kind == Kind::call) {
    if (auto made = value(assigned)) values_.insert_or_assign(name, std::move(*made));
  }
}

// Which list a program is called with: `mod(*args)`, `make_fx(mod)(*args)`, `compiled(args)`.
void InputReader::find_use(const Expression& expression) {
  if (expression.kind != Kind::call) return;
  find_use(*expression.children[0]);
  std::vector<Written> direct;
  for (const Expression* argument : expression.children.subspan(1)) {
    if (argument->kind == Kind::starred && lists_.contains(dotted_name(*argument->children[0]))) {
      starred_ = dotted_name(*argument->children[0]);
    }
    find_use(*argument);
    if (const auto found = values_.find(dotted_name(*argument)); found != values_.end()) {
      direct.push_back(found->second);
    }
  }
  const bool is_plain = direct.size() + 1 == expression.children.size();
  if (is_plain && !direct.empty() && expression.children[0]->kind == Kind::name) {
    direct_calls_.push_back(std::move(direct));
  }
}

// The items of a list, if all of them are inputs. A comprehension turns descriptions into tensors:
// args = [rand_strided(...) for ... in args].
std::optional<std::vector<InputReader::Written>> InputReader::list_items(const Expression& list) {
  std::vector<Written> items;
  for (const Expression* item : list.children) {
    auto made = value(*item);
    if (!made) return std::nullopt;
    items.push_back(std::move(*made));
  }
  return items;
}

std::optional<InputReader::Written> InputReader::value(const Expression& expression) {
  switch (expression.kind) {
    case Kind::name: {
      const auto found = values_.find(expression.text);
      return found == values_.end() ? std::nullopt : std::optional(found->second);
    }
    case Kind::integer:
      return Written{IntegerInput{static_cast<std::int64_t>(expression.magnitude), {}}, {}};
    case Kind::none:
      return Written{ConstantInput{}, {}};
    case Kind::tuple:
      if (expression.children.size() < 4) {
        throw error(expression, "expected (sizes, strides, dtype, device[, requires_grad])");
      }
      return Written{old_form_tensor(expression), {}};
    case Kind::call:
      if (auto tensor = graph::tensor_from_syntax(source_, expression)) {
        return written_tensor(*tensor);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// ((200, 200), (200, 1), torch.float32, 'cpu', True)
TensorInput InputReader::old_form_tensor(const Expression& item) {
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
  return with_own_storage(file_, std::move(made));
}

InputReader::Written InputReader::written_tensor(const graph::TensorAttribute& tensor) {
  using Fill = graph::TensorAttribute::Fill;
  TensorInput made;
  made.meta = tensor.meta;
  made = with_own_storage(file_, std::move(made));
  const bool is_synthesized =
      tensor.fill == Fill::randn ||
      (tensor.fill == Fill::zeros && !c10::isFloatingType(tensor.meta.dtype));
  const bool is_sized = std::ranges::all_of(
      tensor.meta.sizes, [](const SizeExpr& size) { return size.is_constant(); });
  const auto bytes = file_.storages[made.storage].bytes.constant();
  if (!is_synthesized && is_sized && bytes && *bytes >= 0 &&
      static_cast<std::size_t>(*bytes) <= kMaxWrittenBytes) {
    graph::TensorAttribute on_cpu = tensor;
    on_cpu.meta.device = c10::Device(c10::DeviceType::CPU);
    on_cpu.meta.requires_grad = false;
    seed_generator(0);
    const at::Tensor contents = aten::attribute_value(on_cpu).leaf.toTensor();
    if (contents.contiguous().nbytes() == static_cast<std::size_t>(*bytes)) {
      keep_contents(made, contents);
    }
  }
  return {std::move(made), {}};
}

void InputReader::keep_contents(const TensorInput& tensor, const at::Tensor& contents) {
  const at::Tensor flat = contents.contiguous();
  const std::string hash = "written" + std::to_string(file_.inlined_storages.size());
  file_.inlined_storages.emplace(
      hash, std::string(static_cast<const char*>(flat.data_ptr()), flat.nbytes()));
  file_.storages[tensor.storage].hash = hash;
}

std::optional<InputReader::Written> InputReader::written_value(const aten::Value& value) {
  if (value.is_none()) return Written{ConstantInput{}, {}};
  if (!value.is_leaf()) return std::nullopt;
  if (value.leaf.isInt()) return Written{IntegerInput{value.leaf.toInt(), {}}, {}};
  if (!value.leaf.isTensor() || value.leaf.toTensor().layout() != c10::kStrided) {
    return std::nullopt;
  }
  const at::Tensor computed = value.leaf.toTensor().detach();
  const at::Tensor contents = computed.is_non_overlapping_and_dense() ? computed : computed.clone();
  TensorInput made;
  made.meta.dtype = contents.scalar_type();
  made.meta.sizes.assign(contents.sizes().begin(), contents.sizes().end());
  made.meta.strides.assign(contents.strides().begin(), contents.strides().end());
  made.meta.requires_grad = value.leaf.toTensor().requires_grad();
  made = with_own_storage(file_, std::move(made));
  // The elements in the order of memory.
  keep_contents(made, contents.as_strided({contents.numel()}, {1}));
  return Written{std::move(made), {}};
}

// ---- which of them ----

std::optional<std::vector<InputReader::Written>> InputReader::take(std::size_t count) {
  if (from_load_args_) return std::move(from_load_args_);
  for (const std::string_view name : {std::string_view("args"), std::string_view(starred_)}) {
    if (const auto found = lists_.find(name); found != lists_.end()) return found->second;
  }
  if (!from_reader_.empty()) return std::move(from_reader_);
  for (const auto& [name, list] : lists_) {
    const auto is_tensor = [](const Written& written) {
      return std::holds_alternative<TensorInput>(written.input);
    };
    if (list.size() == count && std::ranges::any_of(list, is_tensor)) return list;
  }
  for (auto& call : direct_calls_) {
    if (call.size() == count) return std::move(call);
  }
  if (const auto values = computed_.take(count)) {
    file_.storages.clear();  // of assignments that are not used
    std::vector<Written> written;
    for (const aten::Value& each : *values) {
      if (auto made = written_value(each)) written.push_back(std::move(*made));
    }
    if (written.size() == count) return written;
  }
  if (unreadable_) throw *unreadable_;
  return std::nullopt;
}

TensorInput with_own_storage(ReproFile& file, TensorInput tensor) {
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
  tensor.storage = file.storages.size();
  file.storages.push_back(std::move(storage));
  return tensor;
}

}  // namespace assay::repro
