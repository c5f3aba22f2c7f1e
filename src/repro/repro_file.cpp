#include "repro/repro_file.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "assay/error.h"
#include "graph/inline_modules.h"
#include "graph/module_constants.h"
#include "graph/parse.h"
#include "graph/python_parser.h"
#include "repro/baked_shapes.h"
#include "repro/bundle.h"
#include "repro/call_syntax.h"
#include "repro/cpu_devices.h"
#include "repro/header.h"
#include "repro/input_syntax.h"
#include "repro/old_operators.h"
#include "repro/process_groups.h"
#include "repro/read_program.h"
#include "repro/repeats_fixup.h"
#include "repro/shapes_config.h"
#include "repro/symbol_values.h"
#include "repro/unwrap_pytrees.h"

namespace assay::repro {

namespace {

using graph::SizeExpr;
using graph::python::dotted_name;
using graph::python::Expression;
using graph::python::Module;
using graph::python::Source;
using graph::python::Statement;
using Kind = Expression::Kind;

class FileReader {
 public:
  FileReader(ReproFile& file, const Module& module)
      : file_(file), source_(*file.source), module_(module), inputs_(file, module.comments) {}

  void read() {
    file_.graph = graph::parse(source_, module_);
    constants_ = graph::module_constants(source_, module_);
    for (const Statement& statement : module_.statements) top_level(statement);
    read_header();
    unwrap_pytrees(*file_.graph);
    graph::inline_modules(*file_.graph);
    rename_old_operators(*file_.graph);
    read_inputs();
    move_to_cpu(file_);
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
        if (statement.name == "load_args") inputs_.load_args(statement);
        return;
      case Statement::Kind::assign:
        assignment(statement);
        inputs_.top_level(statement);
        return;
      case Statement::Kind::augmented:
        inputs_.top_level(statement);
        return;
      case Statement::Kind::import:
        note_stage(source_.text.substr(statement.offset, statement.end - statement.offset));
        return;
      case Statement::Kind::expression:
        if (statement.value->kind == Kind::call) called(*statement.value);
        inputs_.top_level(statement);
        return;
      case Statement::Kind::with_block:
        note_autocast(*statement.value);
        [[fallthrough]];
      case Statement::Kind::if_block:
        for (const Statement& inner : statement.body) top_level(inner);
        return;
      default:
        return;
    }
  }

  // with torch.cuda.amp.autocast(enabled=True):
  void note_autocast(const Expression& header) {
    if (header.kind != Kind::call) return;
    const Call call(source_, header);
    if (!call.callee().ends_with("autocast")) return;
    const Expression* enabled = call.argument(Call::kKeywordOnly, "enabled");
    if (enabled == nullptr || enabled->kind != Kind::boolean || enabled->magnitude != 0) {
      file_.autocast = true;
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
    if (value.kind == Kind::call) called(value);  // mod, args = run_repro(...)
    if (target.kind == Kind::name && value.kind == Kind::integer && is_symbol_name(name)) {
      file_.symbols[name] = static_cast<std::int64_t>(value.magnitude);
    } else if (name.starts_with("torch.") && name.find("config.") != std::string::npos) {
      setting(name, value);
    } else if (target.kind == Kind::subscript && dotted_name(*target.children[0]) == "os.environ" &&
               target.children[1]->kind == Kind::string) {
      file_.environment.push_back({std::string(target.children[1]->value), text_of(value)});
    } else if (name == kInlinedStorages && value.kind == Kind::dict) {
      inlined_storages(value);
    } else if (name == "_shapes_config" && value.kind == Kind::string) {
      shapes_ = parse_shapes_config(value.value);
    } else if (name == "opt_mod" && value.kind == Kind::call) {
      const Call call(source_, value);
      if (auto backend = call.constant<std::string>(1, "backend", "a string")) {
        file_.backend = *backend;
      }
    }
  }

  void setting(const std::string& name, const Expression& value) {
    if (value.kind == Kind::missing) {  // an object, of which stock wrote only the address
      note("the setting " + name + " is not in the file: stock PyTorch wrote '" + text_of(value) +
           "'");
      return;
    }
    file_.config.push_back({name, text_of(value)});
  }

  void note(const std::string& text) {
    if (std::ranges::find(file_.notes, text) == file_.notes.end()) file_.notes.push_back(text);
  }

  void called(const Expression& call) {
    run_repro(call);
    read_process_groups(file_, call);
    if (Call(source_, call).callee().ends_with("config.load_config")) {
      note("the file's settings are pickled, and Assay does not unpickle them");
    }
  }

  void run_repro(const Expression& expression) {
    const Call call(source_, expression);
    if (call.callee() != "run_repro") return;
    constexpr std::size_t kOnly = Call::kKeywordOnly;
    const auto text = [&](std::string_view keyword, std::string& into) {
      const Expression* given = call.argument(kOnly, keyword);
      if (given == nullptr || given->kind == Kind::none) return;
      if (given->kind == Kind::string) {
        into = std::string(given->value);
      } else {  // command=sys.argv[1]
        note("run_repro's argument " + std::string(keyword) + " is computed: '" + text_of(*given) +
             "'; Assay ignores it");
      }
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
    note("run_repro's argument save_dir is computed: '" + text + "'; Assay ignores it");
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

  // ---- inputs ----

  void read_inputs() {
    const auto placeholders = std::as_const(*file_.graph).placeholders();
    auto written = inputs_.take(placeholders.size());
    if (!written) written = from_shapes_config();
    std::vector<InputReader::Written> aligned =
        written ? align(std::move(*written)) : from_annotations();
    settle_symbols(file_, aligned, constants_);
    for (InputReader::Written& input : aligned) file_.inputs.push_back(std::move(input.input));
    apply_repeats_fixups(file_);
  }

  // What a placeholder's annotation says of it; nothing if it has none.
  std::optional<InputReader::Written> annotated(const graph::Node& placeholder) {
    const graph::ValueMeta& value = placeholder.meta.value;
    if (const graph::TensorMeta* meta = value.tensor()) {
      TensorInput tensor;
      tensor.meta = *meta;
      return InputReader::Written{with_own_storage(file_, std::move(tensor)), {}};
    }
    if (const auto* size = std::get_if<SizeExpr>(&value.value)) {
      if (const auto number = size->constant()) {
        return InputReader::Written{IntegerInput{*number, {}}, placeholder.target().name()};
      }
      return InputReader::Written{IntegerInput{0, size->str()}, {}, true};
    }
    return std::nullopt;
  }

  UserError undescribed(const graph::Node& placeholder) const {
    return UserError(
        source_.file + ": the file does not describe the input '" + placeholder.name() + "'",
        "expected def load_args(reader), args = [...], or an annotation such as '" +
            placeholder.name() + ": \"f32[8, 16]\"'");
  }

  std::optional<std::vector<InputReader::Written>> from_shapes_config() {
    const auto placeholders = file_.graph->placeholders();
    if (!shapes_ || shapes_->size() != placeholders.size()) return std::nullopt;
    std::vector<InputReader::Written> made;
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      if (const auto* meta = std::get_if<graph::TensorMeta>(&(*shapes_)[i])) {
        TensorInput tensor;
        tensor.meta = *meta;
        made.push_back({with_own_storage(file_, std::move(tensor)), {}});
      } else {
        bake_in(*file_.graph, *placeholders[i], std::get<graph::Argument>((*shapes_)[i]));
      }
    }
    return made;
  }

  // A readable graph has no load_args, but its parameters say what they are.
  std::vector<InputReader::Written> from_annotations() {
    bake_in_shapes(*file_.graph);
    std::vector<InputReader::Written> made;
    for (const graph::Node* placeholder : std::as_const(*file_.graph).placeholders()) {
      if (auto input = annotated(*placeholder)) {
        made.push_back(std::move(*input));
      } else if (placeholder->args().empty()) {
        if (!file_.undescribed_input) file_.undescribed_input = undescribed(*placeholder);
        made.push_back({UnsupportedInput{placeholder->name()}, {}});
      }
    }
    return made;
  }

  // One input for each placeholder. Stock leaves out what it cannot write, and says in a comment
  // behind each of the others which one it is.
  std::vector<InputReader::Written> align(std::vector<InputReader::Written> written) {
    const auto placeholders = std::as_const(*file_.graph).placeholders();
    if (written.size() < placeholders.size()) written = by_name(std::move(written), placeholders);
    const auto needed = static_cast<std::size_t>(std::ranges::count_if(
        placeholders, [](const graph::Node* node) { return node->args().empty(); }));
    if (written.size() < needed || written.size() > placeholders.size()) {
      throw UserError(source_.file + ": the graph takes " + std::to_string(placeholders.size()) +
                      " inputs, the file gives " + std::to_string(written.size()));
    }
    for (std::size_t i = 0; i < written.size(); ++i)
      replace_unsupported(written[i], *placeholders[i]);
    return written;
  }

  std::vector<InputReader::Written> by_name(std::vector<InputReader::Written> written,
                                            const std::vector<const graph::Node*>& placeholders) {
    std::map<std::string, InputReader::Written*> named;
    for (auto& input : written) named.emplace(input.name, &input);
    std::vector<InputReader::Written> aligned;
    std::size_t found = 0;
    std::size_t synthesized = 0;
    for (const graph::Node* placeholder : placeholders) {
      const auto input = named.find(placeholder->target().name());
      if (input != named.end()) {
        aligned.push_back(*input->second);
        ++found;
      } else if (auto made = annotated(*placeholder)) {
        aligned.push_back(std::move(*made));
        ++synthesized;
      } else {
        return written;
      }
    }
    if (found != written.size()) return written;
    note(std::to_string(synthesized) +
         " inputs are not in the file; they are made from the "
         "graph's annotations");
    return aligned;
  }

  // What stock could not write, such as a tensor subclass, has at least a shape where the graph is
  // annotated.
  void replace_unsupported(InputReader::Written& written, const graph::Node& placeholder) {
    if (!std::holds_alternative<UnsupportedInput>(written.input)) return;
    auto made = annotated(placeholder);
    if (!made) return;
    note("the input '" + placeholder.name() +
         "' is of a type that stock PyTorch does not save; "
         "Assay makes a plain tensor of its shape");
    written = std::move(*made);
  }

  ReproFile& file_;
  const Source& source_;
  const Module& module_;
  graph::ModuleConstants constants_;
  InputReader inputs_;
  std::optional<std::vector<ShapesEntry>> shapes_;
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

void read_program(ReproFile& file, const Module& module) { FileReader(file, module).read(); }

}  // namespace assay::repro
