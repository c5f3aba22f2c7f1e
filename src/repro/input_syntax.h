/// \file The inputs of a repro file, in every form that PyTorch has written them and people write
/// them by hand; used by repro/repro_file.cpp.
///
///   def load_args(reader): buf0 = reader.storage(...); reader.tensor(buf0, (2, 3))
///   reader = torch._dynamo.debug_utils.InputReader(); t0 = reader.tensor(...); args = [t0]
///   args = [((2, 3), (3, 1), torch.float32, 'cuda', True)]
///   args = [rand_strided((2, 3), (3, 1), torch.float32, 'cuda'), torch.randn(4).cuda()]
///   args = []; args.append(torch.ones(2, 3))
///   x = torch.randn(2, 3); mod(x)
///   x = torch.rand(2, 3) * 2 - 1; mod(x, x > 0)
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/python_parser.h"
#include "repro/call_syntax.h"
#include "repro/computed_inputs.h"
#include "repro/repro_file.h"

namespace assay::repro {

/// Adds to `file.storages`, and collects the inputs.
class InputReader {
 public:
  using Expression = graph::python::Expression;
  using Statement = graph::python::Statement;

  /// An input as written; what a size symbol means is settled later (repro/symbol_values.h).
  struct Written {
    Input input;
    std::string name;                  ///< Of the placeholder, if a comment says it.
    bool has_unknown_integer = false;  ///< `reader.symint(None)`
  };

  InputReader(ReproFile& file, const std::vector<graph::python::Comment>& comments)
      : file_(file), source_(*file.source), comments_(comments), computed_(file) {}

  /// The body of load_args(reader). A later definition replaces an earlier one.
  void load_args(const Statement& function);
  /// A statement at the top of the file, if it is about inputs.
  void top_level(const Statement& statement);

  /// The inputs that the file runs its program with, for a graph of `count` inputs; nothing if the
  /// file does not say.
  std::optional<std::vector<Written>> take(std::size_t count);

 private:
  UserError error(const Expression& at, const std::string& message,
                  const std::string& hint = {}) const;
  std::string text_of(const Expression& expression) const;
  std::string comment_behind(const Statement& statement) const;

  bool is_reader_call(const Expression& call, const std::string& reader) const;
  std::optional<Written> reader_call(const Statement& statement, const std::string& reader);
  void repeats_fixup(const Statement& block, const std::string& reader);
  StorageSpec storage(const Call& call) const;
  TensorInput tensor(const Call& call) const;
  Written symint(const Call& call) const;

  void assignment(const Statement& statement);
  void bind(const std::string& name, const Expression& value);
  void bind_value(const std::string& name, const Expression& value);
  void find_use(const Expression& expression);
  std::optional<std::vector<Written>> list_items(const Expression& list);
  std::optional<Written> value(const Expression& expression);
  TensorInput old_form_tensor(const Expression& item);
  Written written_tensor(const graph::TensorAttribute& tensor);
  std::optional<Written> written_value(const aten::Value& value);
  void keep_contents(const TensorInput& tensor, const at::Tensor& contents);

  ReproFile& file_;
  const graph::python::Source& source_;
  const std::vector<graph::python::Comment>& comments_;
  std::map<std::string, std::size_t, std::less<>> storages_;
  std::optional<std::vector<Written>> from_load_args_;
  std::set<std::string, std::less<>> readers_;
  std::vector<Written> from_reader_;  ///< Of a reader at the top of the file, in order.
  std::map<std::string, Written, std::less<>> values_;
  std::map<std::string, std::vector<Written>, std::less<>> lists_;
  std::string starred_;  ///< The last list that a call was given: `mod(*args)`.
  std::vector<std::vector<Written>> direct_calls_;
  ComputedInputs computed_;
  std::optional<UserError> unreadable_;  ///< The first assignment that could not be read.
};

/// A tensor whose storage holds just its elements; adds the storage to `file`.
TensorInput with_own_storage(ReproFile& file, TensorInput tensor);

}  // namespace assay::repro
