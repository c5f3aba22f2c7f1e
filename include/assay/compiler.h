/// \file The one compile interface and the one calling convention (docs/frame.md).
///
/// Every compiler, whatever its stage, turns a `CompileRequest` into a `CompiledGraph`: backends
/// compile captured graphs, and those that differentiate ahead of time compile the forward and
/// backward graphs they make with another compiler of the same type. Backends are registered in
/// assay/backend.h.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace assay {

namespace graph {
class Graph;
namespace python {
struct Source;
}
}  // namespace graph

/// The results of a call, one value per leaf of the graph's output.
using Outputs = c10::SmallVectorImpl<c10::IValue>;

/// A graph that can be called, from several threads at once.
class CompiledGraph {
 public:
  CompiledGraph() = default;
  virtual ~CompiledGraph() = default;
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  /// One call. `inputs` holds one value per placeholder that was not bound when compiling, and may
  /// be moved from: a tensor whose only reference is here dies at its last use. One value per leaf
  /// of the graph's output (constants included, None where there is no gradient) is appended to
  /// `outputs`. What only Python can hold is packed (aten/value.h).
  virtual void call(std::span<c10::IValue> inputs, Outputs& outputs) const = 0;
};

/// A compiled graph that is called through a callable `void(std::span<c10::IValue>, Outputs&)`.
template <typename Callable>
std::shared_ptr<const CompiledGraph> make_compiled_graph(Callable callable) {
  class FromCallable : public CompiledGraph {
   public:
    explicit FromCallable(Callable held) : callable_(std::move(held)) {}
    void call(std::span<c10::IValue> inputs, Outputs& outputs) const override {
      callable_(inputs, outputs);
    }

   private:
    Callable callable_;
  };
  return std::make_shared<const FromCallable>(std::move(callable));
}

/// What a graph is to the program it comes from.
enum class Role {
  captured,   ///< The program itself, as captured.
  inference,  ///< Its only half: nothing needs a gradient.
  forward,    ///< The first half; also returns what backward needs.
  backward,
};

const char* to_string(Role role);

/// What a user may set of a backend by name, as in `options={"lazy_backward": True}`.
using OptionValue = std::variant<bool, std::int64_t, double, std::string>;
using BackendOptions = std::map<std::string, OptionValue, std::less<>>;

/// What `assay reduce` must be given to have a backend in its trials: arguments, and variables of
/// its environment.
struct SentBackend {
  std::vector<std::string> arguments = {};
  std::map<std::string, std::string> environment = {};
};

/// Sends a backend to the trials of a reduction of `graph`; files that they need are written to
/// `directory`. Throws `UserError` if it cannot be sent.
using BackendSender =
    std::function<SentBackend(const std::filesystem::path& directory, const graph::Graph& graph)>;

struct CompileRequest;

/// What compiles where no backend is named.
inline constexpr const char* kDefaultBackend = "native";

using Compiler = std::function<std::shared_ptr<const CompiledGraph>(const CompileRequest&)>;

/// Puts something around a compiler: faults, the debug wrapper, timing.
using CompilerDecorator = std::function<Compiler(Compiler)>;

/// What belongs to one compilation as a whole. Whatever may compile later (a backward graph, at the
/// first backward) shares it.
struct CompileContext {
  /// The backend's name, for messages.
  std::string backend = {};
  /// How a reduction's trials get the backend; empty: by its name.
  BackendSender send_backend = {};
  /// The text the graph was read from, for messages; may be null. Outlives the compiled graph.
  const graph::python::Source* source = nullptr;
  /// For backends that compile halves: put around the compiler of each. May be empty.
  CompilerDecorator decorate = {};
};

struct CompileRequest {
  std::shared_ptr<const graph::Graph> graph;
  /// Example inputs, one per placeholder; not changed by compiling. Empty for a backward graph that
  /// is compiled before the first backward: the placeholders' metadata says what they will be.
  std::vector<c10::IValue> inputs = {};
  Role role = Role::captured;
  /// How many of the last inputs are captured tensors: bound when compiling, not passed to calls.
  std::size_t bound_inputs = 0;
  BackendOptions options = {};
  std::shared_ptr<const CompileContext> context = std::make_shared<const CompileContext>();
};

}  // namespace assay
