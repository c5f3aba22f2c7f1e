/// \file `assay::compile`: a C++ function of tensors as a compiled graph.
///
///     auto step = assay::compile([](const at::Tensor& x, const at::Tensor& w, double scale) {
///       return at::relu(at::matmul(x, w)) * scale;
///     });
///     step(x, w, 0.5).sum().backward();
///
/// The first call runs the function once on copies of its arguments, records the operators it calls
/// as a graph, differentiates that and gives it to a backend. This and later calls run what the
/// backend made. The contract:
///
/// - **Guards.** A graph holds for arguments with the same dtype, sizes, strides, requires_grad and
///   sharing of memory, the same numbers, the same lengths of vectors, and the same grad mode,
///   inference mode, autocast and default dtype. For others the function is compiled again, up to
///   `cache_limit` times; after that it runs as it is, with one warning.
/// - **What is read from elsewhere.** Tensors that the function does not get as arguments, such as
///   the parameters of a module, are inputs of the graph: an optimizer may update them in place,
///   and what the function writes to them (running statistics) is written. A
///   parameter that was frozen or given another shape since is noticed, one that was replaced by
///   another tensor is not. Numbers, and choices made by them (`if (module->is_training())`), are
///   baked in and never looked at again; pass as arguments those that change.
/// - **What is refused**, with `TraceError`, which says where in your program: reading values of
///   tensors (`item()`, `if (x.sum() > 0)`, `std::cout << x`), results whose sizes depend on values
///   (`nonzero`, indexing by a mask), calling backward() inside, custom autograd functions, and
///   arguments a graph cannot hold (sparse, complex, quantized). With `fallback` such calls run the
///   function as it is, with one warning. A function that throws leaves nothing changed by being
///   recorded, and the next call tries again.
/// - **Nesting.** A compiled function called while another is being recorded becomes part of the
///   other's graph, with the outer one's options.
/// - **Threads.** Calls may come from any number of threads. One of them compiles at a time; calls
///   that run eagerly call the function from several threads at once.
/// - **Twice differentiating** (`create_graph`) through a compiled function is an error.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "assay/compiler.h"

namespace assay {

struct CompileOptions {
  /// What compiles the graph; `assay backends` lists the names.
  std::string backend = kDefaultBackend;
  /// Run eagerly, with a warning, what cannot be a graph; otherwise that is a `TraceError`.
  bool fallback = false;
  /// After this many graphs further calls run eagerly, with one warning. By default the setting
  /// `cache_size_limit`, 8.
  std::optional<std::size_t> cache_limit = std::nullopt;
  /// What messages and the text of the graphs call the function.
  std::string name = "program";
  /// Options of the backend; `assay backends --json` lists them.
  BackendOptions options = {};
};

namespace detail {

using Program = std::function<std::vector<at::Tensor>(std::span<const c10::IValue>)>;

/// Values of one call; a few need no memory of their own.
using Values = c10::SmallVector<c10::IValue, 8>;

/// The part of `Compiled` that does not depend on the signature.
class CompiledProgram {
 public:
  CompiledProgram(Program program, CompileOptions options);

  /// One value per result is appended to `outputs`.
  void call(std::span<c10::IValue> inputs, Outputs& outputs) const;
  std::size_t compilations() const;
  std::vector<std::string> graphs() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

template <typename T>
inline constexpr bool is_parameter =
    std::is_same_v<T, at::Tensor> || std::is_same_v<T, std::vector<at::Tensor>> ||
    std::is_same_v<T, double> || std::is_same_v<T, std::int64_t> || std::is_same_v<T, int> ||
    std::is_same_v<T, bool>;

/// By value or by reference to const: what a function does to its own copy nobody sees.
template <typename T>
inline constexpr bool is_passed_in =
    !std::is_reference_v<T> ||
    (std::is_lvalue_reference_v<T> && std::is_const_v<std::remove_reference_t<T>>);

template <typename T>
inline constexpr bool is_vector = std::is_same_v<std::remove_cvref_t<T>, std::vector<at::Tensor>>;

/// The arguments one after the other. Where several are vectors, their lengths come first: the same
/// tensors divided in another way are another call.
template <typename... Parameters>
Values flatten(const Parameters&... arguments) {
  Values inputs;
  if constexpr ((0 + ... + int{is_vector<Parameters>}) > 1) {
    const auto add_length = [&](const auto& argument) {
      if constexpr (is_vector<decltype(argument)>) {
        inputs.emplace_back(static_cast<std::int64_t>(argument.size()));
      }
    };
    (add_length(arguments), ...);
  }
  [[maybe_unused]] const auto add = [&](const auto& argument) {
    using Argument = std::remove_cvref_t<decltype(argument)>;
    if constexpr (is_vector<Argument>) {
      for (const at::Tensor& tensor : argument) inputs.emplace_back(tensor);
    } else if constexpr (std::is_same_v<Argument, int>) {
      inputs.emplace_back(std::int64_t{argument});
    } else {
      inputs.emplace_back(argument);
    }
  };
  (add(arguments), ...);
  return inputs;
}

template <typename Parameter>
Parameter from_input(const c10::IValue& input) {
  if constexpr (std::is_same_v<Parameter, at::Tensor>) {
    return input.toTensor();
  } else if constexpr (std::is_same_v<Parameter, double>) {
    return input.toDouble();
  } else if constexpr (std::is_same_v<Parameter, bool>) {
    return input.toBool();
  } else {
    return static_cast<Parameter>(input.toInt());
  }
}

/// Undoes `flatten`.
template <typename... Parameters>
std::tuple<Parameters...> unflatten(std::span<const c10::IValue> inputs) {
  constexpr std::size_t vectors = (std::size_t{0} + ... + std::size_t{is_vector<Parameters>});
  constexpr std::size_t others = sizeof...(Parameters) - vectors;
  std::size_t next_length = 0;
  std::size_t next = vectors > 1 ? vectors : 0;
  [[maybe_unused]] const auto take =
      [&]<typename Parameter>(std::type_identity<Parameter>) -> Parameter {
    if constexpr (is_vector<Parameter>) {
      const std::size_t length = vectors > 1
                                     ? static_cast<std::size_t>(inputs[next_length++].toInt())
                                     : inputs.size() - others;
      std::vector<at::Tensor> tensors;
      tensors.reserve(length);
      for (std::size_t i = 0; i < length; ++i) tensors.push_back(inputs[next++].toTensor());
      return tensors;
    } else {
      return from_input<Parameter>(inputs[next++]);
    }
  };
  return std::tuple<Parameters...>{take(std::type_identity<Parameters>())...};  // left to right
}

template <typename Result>
struct ResultOf {
  static constexpr bool is_supported = false;
};
template <>
struct ResultOf<at::Tensor> {
  static constexpr bool is_supported = true;
  static std::vector<at::Tensor> flatten(at::Tensor result) { return {std::move(result)}; }
  static at::Tensor unflatten(Values results) { return std::move(results[0]).toTensor(); }
};
template <>
struct ResultOf<std::vector<at::Tensor>> {
  static constexpr bool is_supported = true;
  static std::vector<at::Tensor> flatten(std::vector<at::Tensor> results) { return results; }
  static std::vector<at::Tensor> unflatten(Values results) {
    std::vector<at::Tensor> tensors;
    tensors.reserve(results.size());
    for (c10::IValue& result : results) tensors.push_back(std::move(result).toTensor());
    return tensors;
  }
};
template <typename... Tensors>
struct ResultOf<std::tuple<Tensors...>> {
  static constexpr bool is_supported = (std::is_same_v<Tensors, at::Tensor> && ...);
  using Result = std::tuple<Tensors...>;
  static std::vector<at::Tensor> flatten(const Result& result) {
    return std::apply([](const Tensors&... items) { return std::vector<at::Tensor>{items...}; },
                      result);
  }
  static Result unflatten(Values results) {
    auto next = results.begin();
    Result result;
    std::apply([&](Tensors&... items) { ((items = std::move(*next++).toTensor()), ...); }, result);
    return result;
  }
};

/// The signature of a function, a function pointer, a lambda or an object with one operator().
template <typename Callable>
struct SignatureOf : SignatureOf<decltype(&Callable::operator())> {};
template <typename Result, typename... Parameters>
struct SignatureOf<Result (*)(Parameters...)> {
  using type = Result(Parameters...);
};
template <typename Result, typename... Parameters>
struct SignatureOf<Result (*)(Parameters...) noexcept> : SignatureOf<Result (*)(Parameters...)> {};
template <typename Object, typename Result, typename... Parameters>
struct SignatureOf<Result (Object::*)(Parameters...)> : SignatureOf<Result (*)(Parameters...)> {};
template <typename Object, typename Result, typename... Parameters>
struct SignatureOf<Result (Object::*)(Parameters...) const>
    : SignatureOf<Result (*)(Parameters...)> {};
template <typename Object, typename Result, typename... Parameters>
struct SignatureOf<Result (Object::*)(Parameters...) noexcept>
    : SignatureOf<Result (*)(Parameters...)> {};
template <typename Object, typename Result, typename... Parameters>
struct SignatureOf<Result (Object::*)(Parameters...) const noexcept>
    : SignatureOf<Result (*)(Parameters...)> {};

}  // namespace detail

template <typename Signature>
class Compiled;

/// A compiled function, called like the function itself. Copies share the compiled graphs.
template <typename Result, typename... Parameters>
class Compiled<Result(Parameters...)> {
  static_assert(
      (detail::is_parameter<std::remove_cvref_t<Parameters>> && ...),
      "parameters of a compiled function are at::Tensor, std::vector<at::Tensor>, double, "
      "std::int64_t, int or bool");
  static_assert((detail::is_passed_in<Parameters> && ...),
                "parameters of a compiled function are passed by value or by reference to const");
  static_assert(
      detail::ResultOf<std::remove_cvref_t<Result>>::is_supported,
      "a compiled function returns at::Tensor, std::vector<at::Tensor> or a std::tuple of "
      "at::Tensor");

 public:
  using result_type = std::remove_cvref_t<Result>;

  /// Throws `UserError` if there is no backend of that name.
  template <typename Callable>
  Compiled(Callable function, CompileOptions options)
      : program_(wrap(std::move(function)), std::move(options)) {}

  /// Throws `TraceError` if the function cannot be a graph, and what the function throws.
  result_type operator()(Parameters... arguments) const {
    detail::Values inputs = detail::flatten(arguments...);
    detail::Values results;
    program_.call(inputs, results);
    return detail::ResultOf<result_type>::unflatten(std::move(results));
  }

  /// How many graphs were compiled so far.
  std::size_t compilations() const { return program_.compilations(); }
  /// The captured graphs as text (docs/text_form.md), oldest first.
  std::vector<std::string> graphs() const { return program_.graphs(); }

 private:
  template <typename Callable>
  static detail::Program wrap(Callable function) {
    // Shared, since a callable need not be copyable and std::function demands it.
    return [shared = std::make_shared<Callable>(std::move(function))](
               std::span<const c10::IValue> inputs) {
      return detail::ResultOf<result_type>::flatten(
          std::apply(*shared, detail::unflatten<std::remove_cvref_t<Parameters>...>(inputs)));
    };
  }

  detail::CompiledProgram program_;
};

/// The function, compiled when it is first called and whenever its guards fail; see the top of this
/// file. Throws `UserError` if there is no backend of that name.
template <typename Callable>
auto compile(Callable function, CompileOptions options = {}) {
  return Compiled<typename detail::SignatureOf<Callable>::type>(std::move(function),
                                                                std::move(options));
}

}  // namespace assay
