/// \file The recorder: what the loop's operations do while a segment is recorded. Each one does
/// what CPython does, on real objects, and besides follows where every object comes from: reading
/// something from outside adds a guard, a call of a tensor function adds a node to the graph, a
/// change of an older object becomes an effect. Whatever it cannot follow ends the segment.
///
/// One recorder per thread (driver.cpp). The operations are implemented by theme, in record_*.cpp;
/// recorder.cpp has the life of a segment, and models/ the models of builtins.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aten/autocast_regions.h"
#include "aten/operator_watch.h"
#include "capture/operations.h"
#include "capture/recorder_state.h"
#include "capture/segment.h"
#include "capture/size_numbers.h"
#include "capture/source.h"
#include "capture/trace_log.h"
#include "capture/tracked.h"
#include "graph/graph.h"
#include "graph/stack_trace.h"

namespace assay::capture {

enum class SizeUse;     // models.h
struct PythonArgument;  // python_calls.h
struct PythonCall;      // likewise

class Recorder final : public Operations, public RecorderState {
 public:
  explicit Recorder(SegmentSink& sink) : sink_(sink) {}

  // Life of a segment.
  bool is_recording() const { return root_ != nullptr; }
  /// Frames that CPython enters now are not followed: a tensor function or a plain call runs.
  bool is_suspended() const { return suspended_ > 0; }
  Activation* root() const { return root_; }
  /// Starts a segment at the instruction at which `root` stands. It is to fit other sizes and
  /// numbers of what is in `open`, too.
  void begin(Activation& root, OpenSources open = {}, bool is_open_by_default = false);
  /// At every instruction of the root frame: what happens later can be forgotten back to here.
  void checkpoint(Activation& root);
  /// The root frame is about to return the value on top of its stack. Ends the segment.
  bool finish_with_return(Activation& root);
  /// Ends the segment before the instruction at which the root frame stands. False with an
  /// exception set if that is an error.
  bool stop(Activation& a, std::string reason, bool is_break = true);
  /// Forgets the segment.
  void abandon();
  /// A function that is being called inline has a frame now, or leaves it.
  void enter(Activation& inlined);
  void leave(Activation& inlined);

  // Tracking; for models.
  Tracked* find(PyObject* object) { return tracked_.find(object); }
  /// Makes sure the checks for what kind of object it is are there. False: nothing is known of it.
  bool touch(PyObject* object);
  /// An operand's value is used: a number from outside is guarded.
  void read(const Operand& operand);
  /// The object at `source` was read.
  bool arrived(PyObject* object, Source* source);
  /// The object is guarded, or otherwise sure, to be this very one.
  void is_constant(PyObject* object);
  /// The object was found where it cannot change while the segment's guards hold: in a class, or
  /// among a function's defaults. Where it is also known from elsewhere, that must stay the same
  /// one.
  void found_fixed(PyObject* object);
  /// From now on the object at its source must be this very one.
  void guard_identity(PyObject* object);
  /// A new object of a builtin type whose contents are all known. False if it is not that.
  bool is_local(PyObject* object);
  /// A new reference that was just made: `is_local`, or else the segment ends. Passes it on.
  PyObject* made(Activation& a, PyObject* object, const char* what);
  /// Makes sure that all contents of a container are tracked, and guarded where from outside.
  /// `opens`: the operation passes on what is in it, and looks at nothing.
  bool know_contents(PyObject* container, bool opens = false);
  /// What C code reads that makes something of an iterable's items, or of pairs in it. False: it is
  /// not known.
  bool know_given_items(PyObject* iterable);
  /// Whether C code may advance the iterator: it was made here, or its code is Python's.
  bool may_be_advanced(PyObject* iterator);
  /// The same, for containers in containers too. False: something in it is unknown.
  bool know_all(PyObject* object, int depth = 0);
  /// What C code reads to compare the objects by value, which may be containers in containers.
  /// False: something in them is unknown, or a tensor's values would be read.
  bool know_comparable(PyObject* one, PyObject* other);
  bool know_sortable(PyObject* object);
  /// What `_PyType_Lookup` finds, guarded. Borrowed.
  PyObject* lookup_on_type(PyTypeObject* type, PyObject* name);
  /// issubclass(type, of), guarded; -1 with an exception set. `is_abstract`: it asks a registry.
  int is_subclass(PyTypeObject* type, PyObject* of, bool is_abstract);
  /// Guards what a functools.partial holds.
  bool know_partial(Activation& a, PyObject* partial);
  /// dict[key] with its guard: a borrowed reference, or null without an exception. `opens`: it is
  /// passed on as it is.
  PyObject* read_item(PyObject* dict, PyObject* key, bool opens = false);
  /// An object's __dict__, tracked; borrowed, or null if it has none.
  PyObject* dict_of(PyObject* object);
  /// An object becomes a key of a dict or an item of a set, or is looked for there: from now on
  /// it must differ from all others that did. False: nothing is known of it.
  bool use_as_key(PyObject* key);
  /// The same for all items of a container or keys of a dict.
  bool use_items_as_keys(PyObject* container);
  /// Before a key is looked for in a dict or set, or put into it: what it is compared with is
  /// known. False: it is not.
  bool prepare_key(PyObject* container, PyObject* key);
  bool is_known_key(PyObject* key);
  bool is_compared_by_identity(PyObject* object);
  /// Before an item of a dict is set or deleted.
  void before_item_change(PyObject* dict);
  /// Before a container or cell is changed. False: it cannot be.
  bool before_change(PyObject* object);
  void changed_item(PyObject* dict, PyObject* key, PyObject* value);
  /// After a container was changed in some other way.
  void changed_contents(PyObject* container);
  /// After a method of a set was called, to which the arguments of a call after the first were
  /// given.
  void called_method(const Call& call);
  bool append(PyObject* list, PyObject* item);
  bool set_grad_mode(Activation& a, bool enabled);
  bool grad_mode() const { return grad_mode_; }
  /// The innermost one, or null.
  const AutocastRegion* autocast_region() const {
    return autocast_.empty() ? nullptr : &autocast_.back();
  }
  /// The thread's state is that of a region now; `before` is what it was.
  void entered_autocast(PyObject* manager, const aten::AutocastState& before);
  /// The thread's state is that from before the innermost region again.
  void left_autocast();
  /// Made in this segment, and forgotten as a whole if the root's current instruction ends it.
  bool is_new(PyObject* object) {
    const Tracked* tracked = find(object);
    return tracked != nullptr && tracked->kind == Tracked::Kind::local &&
           (inlined_.empty() || tracked->order >= checkpoint_.tracked);
  }
  /// A new object whose contents the recorder follows from now on.
  void track_local(PyObject* object);
  /// A list, tuple or dict of numbers, strings and the like, nested or not; known.
  bool has_only_values(PyObject* container, int depth = 0);
  /// An attribute that a C descriptor keeps in the object (a slot of __slots__).
  PyObject* read_member(Activation& a, PyObject* object, PyObject* descriptor, PyObject* name);
  bool write_member(Activation& a, PyObject* object, PyObject* descriptor, PyObject* name,
                    PyObject* value);
  /// Attributes of a class: whether the recorder can follow that one is set or deleted.
  bool can_write_to_class(PyObject* type, PyObject* name);
  bool write_to_class(PyObject* type, PyObject* name, PyObject* value);
  /// As object.__getattribute__ does, guarded.
  PyObject* generic_attribute(Activation& a, PyObject* object, PyObject* name);
  /// What was found on a type, bound to an object (null: to the type), as attribute access does.
  PyObject* bind_found(Activation& a, PyObject* found, PyObject* object, PyObject* type,
                       PyObject* name);

  /// The segment fits only where no exception is being handled when it starts.
  void depends_on_no_exception() { no_exception_ = true; }

  // Calls; for models.
  /// Whether the class of an object has a method that is written in Python; guarded.
  bool is_python_method(PyObject* object, const char* name);
  bool is_python_method_of(PyTypeObject* type, const char* name);
  /// Calls it.
  PyObject* call_method(Activation& a, PyObject* object, const char* name,
                        std::initializer_list<PyObject*> args);
  PyObject* call_object(Activation& a, const Call& call, Source* const* origins = nullptr);
  /// Ends the segment, then makes the call as CPython does.
  PyObject* call_plainly(Activation& a, const Call& call, std::string reason);
  /// Makes the call as CPython does, and goes on recording: Python functions that it calls back are
  /// followed, and an operator that runs unseen ends the segment.
  PyObject* call_watched(Activation& a, const Call& call);
  /// Makes the call as CPython does, unseen: its operators are not part of the program's.
  PyObject* call_unseen(const Call& call);
  /// Calls a function that answers a question about global state: its answer is guarded.
  PyObject* call_question(Activation& a, const Call& call);
  /// As type.__call__ does: makes an object, and initializes it.
  PyObject* instantiate(Activation& a, const Call& call);
  /// What of a call that becomes one of the graph is followed, to see that it does nothing but
  /// compute.
  enum class Followed : std::uint8_t {
    all,                 ///< Of C code: what it calls back.
    what_it_calls_back,  ///< Of a function of torch: the program's functions, and modules.
    nothing,             ///< The program says so (allow_in_graph).
  };
  /// Makes a call whose result only depends on its arguments, and adds it to the graph as one call,
  /// made as CPython does in every run. `context` is the type of an object that C code makes for
  /// what it calls back.
  PyObject* call_as_one(Activation& a, const Call& call, PyTypeObject* context,
                        Followed followed = Followed::all);
  /// Makes a call of a function of torch, whose own code is not followed: what it calls back is,
  /// and becomes part of the graph. It must only call back, and pass on what that returns.
  PyObject* call_around(Activation& a, const Call& call);
  // Arrays of NumPy (record_arrays.cpp).
  /// Makes a call of a function of NumPy that only computes, or one of torch that is given an array
  /// or gives one, and adds it to the graph as one call.
  PyObject* call_array_function(Activation& a, const Call& call);
  /// The same for one that changes its first argument, an array, and returns that or None.
  PyObject* change_array(Activation& a, const Call& call);
  /// An array or a scalar of NumPy whose values may be others in later calls.
  bool is_computed_array(PyObject* object);
  bool has_computed_array(const Call& call);
  /// An attribute of an array; null without an exception if it is one of a type.
  PyObject* array_attribute(Activation& a, PyObject* array, PyObject* name);
  /// The items that a loop over an array goes through: a new list.
  PyObject* items_of_array(Activation& a, PyObject* array);
  /// A call inside of a transform (torch.func), which is part of a call of Python in the graph: it
  /// is made as CPython does.
  PyObject* call_transformed(const Call& call);
  bool allows_no_break() const { return sink_.allows_no_break(); }
  /// Whether a graph that cannot be compiled ahead of time is worse than none.
  bool prefers_breaks() const { return sink_.compiles_ahead_of_time() && !sink_.allows_no_break(); }
  /// A frame that CPython enters while such a call is made is torch's own: it is not followed, but
  /// what it calls back is.
  bool runs_natively(const _PyInterpreterFrame& frame);
  /// The tensor gets a hook, or keeps its gradient, right behind the segment.
  void note_hook(PyObject* tensor);
  /// The size of a tensor is not known when the graph is made.
  bool has_open_size(PyObject* object);
  // Sizes that may be others in later calls (record_sizes.cpp).
  /// Whether there are any.
  bool follows_sizes() const { return follows_sizes_; }
  bool has_varying_size(PyObject* tensor);
  /// The size of a dimension, or all of them as a torch.Size: numbers that are followed.
  PyObject* size_of(PyObject* tensor, std::int64_t dimension);
  PyObject* sizes_of(PyObject* tensor);
  /// `x.size()`, `x.size(0)`, `len(x)`, ... of a tensor whose size varies: true if it was answered.
  bool answers_size(const Call& call, PyObject*& result);
  /// The values of the numbers in an object are used, or what follows from a tensor's sizes: the
  /// segment fits only where they are the same.
  void use_sizes(PyObject* object, int depth = 0);
  /// The same for a call's arguments, as the called function uses them.
  void use_sizes(const Call& call, SizeUse use);
  /// Everything that varies stays as it is: the segment fits these sizes only.
  void fix_all_sizes(const std::string& why);
  /// Calls a function of tensors and adds it to the graph.
  PyObject* call_tensor_function(Activation& a, const graph::Target& target, bool is_method,
                                 const Call& call);
  /// A call whose result follows from the metadata of tensors, or from values that are known.
  PyObject* call_pure(Activation& a, const Call& call);
  PyObject* get_attribute(Activation& a, PyObject* object, PyObject* name);
  bool set_attribute(Activation& a, PyObject* object, PyObject* name, PyObject* value);

  // Operations.
  void entered(Activation& a) override;
  void leaving(Activation& a) override;
  PyObject* load_global(Activation& a, PyObject* name) override;
  bool store_global(Activation& a, PyObject* name, Operand value) override;
  bool delete_global(Activation& a, PyObject* name) override;
  PyObject* load_cell(Activation& a, PyObject* cell, int index) override;
  bool store_cell(Activation& a, PyObject* cell, Operand value) override;
  bool delete_cell(Activation& a, PyObject* cell, int index) override;
  PyObject* make_cell(Activation& a, Operand value) override;
  void copied_free_variables(Activation& a, PyObject* function) override;
  void loaded_constant(Activation& a, PyObject* constant) override;
  PyObject* unary(Activation& a, Unary op, Operand value) override;
  PyObject* binary(Activation& a, int op, Operand left, Operand right) override;
  PyObject* compare(Activation& a, int op, Operand left, Operand right) override;
  PyObject* is(Activation& a, Operand left, Operand right, bool invert) override;
  PyObject* contains(Activation& a, Operand item, Operand container, bool invert) override;
  int is_true(Activation& a, Operand value) override;
  bool is_none(Activation& a, Operand value) override;
  PyObject* load_attr(Activation& a, Operand owner, PyObject* name) override;
  PyObject* load_method(Activation& a, Operand owner, PyObject* name, bool& is_method) override;
  bool store_attr(Activation& a, Operand owner, PyObject* name, Operand value) override;
  bool delete_attr(Activation& a, Operand owner, PyObject* name) override;
  PyObject* load_item(Activation& a, Operand container, Operand key) override;
  bool store_item(Activation& a, Operand container, Operand key, Operand value) override;
  bool delete_item(Activation& a, Operand container, Operand key) override;
  PyObject* build_tuple(Activation& a, PyObject* const* items, Source* const* origins,
                        std::size_t count) override;
  PyObject* build_list(Activation& a, PyObject* const* items, Source* const* origins,
                       std::size_t count) override;
  PyObject* build_set(Activation& a, PyObject* const* items, Source* const* origins,
                      std::size_t count) override;
  PyObject* build_map(Activation& a, PyObject* const* items, Source* const* origins,
                      std::size_t pairs) override;
  PyObject* build_const_key_map(Activation& a, PyObject* keys, PyObject* const* values,
                                Source* const* origins) override;
  PyObject* build_string(Activation& a, PyObject* const* items, Source* const* origins,
                         std::size_t count) override;
  PyObject* build_slice(Activation& a, Operand start, Operand stop, Operand step) override;
  PyObject* format_value(Activation& a, Operand value, int conversion, Operand spec) override;
  bool list_append(Activation& a, PyObject* list, Operand item) override;
  bool list_extend(Activation& a, PyObject* list, Operand iterable) override;
  PyObject* list_to_tuple(Activation& a, PyObject* list) override;
  bool set_add(Activation& a, PyObject* set, Operand item) override;
  bool set_update(Activation& a, PyObject* set, Operand iterable) override;
  bool map_add(Activation& a, PyObject* dict, Operand key, Operand value) override;
  bool dict_update(Activation& a, PyObject* dict, Operand other) override;
  bool dict_merge(Activation& a, PyObject* dict, Operand other, PyObject* function) override;
  bool unpack(Activation& a, Operand iterable, int before, int after, PyObject** out) override;
  PyObject* get_iter(Activation& a, Operand iterable) override;
  PyObject* next(Activation& a, Operand iterator) override;
  PyObject* get_yield_from_iter(Activation& a, Operand iterable) override;
  PySendResult send(Activation& a, Operand receiver, Operand value, PyObject** result) override;
  void yielding(Activation& a, Operand value) override;
  PyObject* call(Activation& a, const CallOperands& operands) override;
  PyObject* call_ex(Activation& a, Operand callable, Operand args, Operand kwargs) override;
  PyObject* make_function(Activation& a, PyObject* code, PyObject* defaults, PyObject* kwdefaults,
                          PyObject* annotations, PyObject* closure) override;
  PyObject* before_with(Activation& a, Operand manager, PyObject** exit) override;
  PyObject* with_except_start(Activation& a, PyObject* exit, PyObject* exception) override;
  void raise(Activation& a, Operand exception, Operand cause) override;
  int exception_matches(Activation& a, PyObject* exception, Operand type) override;
  void handling(Activation& a, PyObject* exception) override;
  PyObject* import_name(Activation& a, PyObject* name, Operand from_list, Operand level) override;
  PyObject* import_from(Activation& a, Operand module, PyObject* name) override;
  PyObject* match_keys(Activation& a, Operand subject, Operand keys) override;
  PyObject* match_class(Activation& a, Operand subject, Operand type, int count,
                        PyObject* names) override;
  bool matches_kind(Activation& a, Operand subject, unsigned long type_flag) override;
  PyObject* get_len(Activation& a, Operand value) override;
  PyObject* load_name(Activation& a, PyObject* name) override;
  void unusual(Activation& a, const char* what) override;

 private:
  friend class RecipeBuilder;
  friend class SuspendScope;

  bool end_segment(int end, bool is_return, BreakReason reason);
  void roll_back();
  BreakReason describe_break(const Activation& a, std::string reason) const;
  void add_slots(Activation& root);
  graph::Node* node_of(PyObject* tensor);
  bool to_argument(PyObject* object, graph::Argument& argument, int depth = 0);
  bool arguments_of(const Call& call, std::vector<graph::Argument>& args,
                    std::vector<graph::NamedArgument>& kwargs);
  bool bind_results(PyObject* result, graph::Node& node);
  std::vector<PyObject*> untracked_tensors(PyObject* result);
  /// The graph's node of an array or a scalar of NumPy: a tensor. Null if it cannot be one.
  graph::Node* array_node(PyObject* array);
  /// After a change of memory that arrays may have: their values are those of each run.
  void forget_fixed_arrays();
  bool describe_array(PyObject* object, PythonArgument& made, CallTensors& tensors);
  /// The truth of a tensor where the program only raises if it is another one: each run checks it.
  std::optional<int> expected_truth(Activation& a, PyObject* tensor);
  PyObject* array_operator(Activation& a, const char* name, PyObject* left, PyObject* right);
  /// The node of a call of Python that has returned `items`: tensors, arrays and scalars.
  void add_python_call_node(PythonCall call, CallTensors tensors,
                            const std::vector<PyObject*>& items);
  /// All tensors that are known, with their versions.
  using TensorVersions = std::vector<std::pair<at::Tensor, std::int64_t>>;
  TensorVersions versions_of_tensors();
  bool are_unchanged(const TensorVersions& versions) const;
  void take_back(std::size_t first_node);
  /// How each run makes an argument of such a call; false if it cannot.
  bool describe_argument(PyObject* object, PythonArgument& made, CallTensors& tensors,
                         int depth = 0);
  bool describe_arguments(PyObject* container, PythonArgument& made, CallTensors& tensors,
                          int depth);
  bool describe_function(PyObject* object, PythonArgument& made, CallTensors& tensors, int depth);
  /// A function of the program is called by code that is not followed: what that has made for it
  /// is known from now on.
  void called_back(Activation& inlined);
  /// Whether there are no other effects than changes of these dicts, which were taken back.
  bool are_taken_back(const std::vector<DictBefore>& changed) const;
  graph::StackTrace user_stack() const;
  PyObject* tensor_attribute(Activation& a, PyObject* tensor, PyObject* name);
  PyObject* instance_attribute(Activation& a, PyObject* object, PyObject* name);
  /// As object.__getattribute__, but says that nothing was found instead of raising.
  PyObject* find_attribute(Activation& a, PyObject* object, PyObject* name, bool& is_missing);
  PyObject* fallback_attribute(Activation& a, PyObject* object, PyObject* name);
  PyObject* after_attribute_error(Activation& a, PyObject* object, PyObject* name);
  PyObject* type_attribute(Activation& a, PyObject* type, PyObject* name);
  PyObject* module_attribute(Activation& a, PyObject* module, PyObject* name);
  PyObject* module_like_attribute(Activation& a, PyObject* module, PyObject* name);
  PyObject* module_getattr(PyObject* module, PyObject* name, bool& found);
  PyObject* bind_descriptor(Activation& a, PyObject* descriptor, PyObject* object, PyObject* type,
                            PyObject* name);
  PyObject* call_function(Activation& a, const Call& call, Source* const* origins);
  PyObject* call_type(Activation& a, const Call& call);
  PyObject* call_instance(Activation& a, const Call& call);
  PyObject* match_attributes(Activation& a, PyObject* subject, PyObject* type, int count,
                             PyObject* names);
  void know_import(PyObject* name);
  bool was_written_to(PyTypeObject* type, PyObject* name) const;
  PyObject* call_weak_reference(Activation& a, const Call& call);
  PyObject* call_builtin(Activation& a, const Call& call);
  PyObject* call_partial(Activation& a, const Call& call);
  PyObject* call_cached(Activation& a, const Call& call, bool may_run_operators = false);
  PyObject* call_program_cache(Activation& a, const Call& call);
  /// Calls a function that logs, which later calls do when their graph has run.
  PyObject* call_logging(Activation& a, const Call& call);
  PyObject* tensor_operator(Activation& a, const char* name, PyObject* left, PyObject* right);
  /// Which dimensions of a tensor from outside may have other sizes later.
  std::uint64_t open_dimensions(const Tracked& tracked, PyObject* tensor) const;
  graph::Node& add_size_node(graph::Node& node);
  graph::Node& add_placeholder(const Source& source);
  /// For a number from outside that may be another one later: the object that is to stand in its
  /// place wherever the program found it. A new reference, or null.
  PyObject* open_number(PyObject* value, Source& source);
  void expect_number(graph::Node& node, std::int64_t value);
  bool to_number(PyObject* object, graph::Argument& argument);
  /// Arithmetic and comparisons of numbers that are followed: true if it was one.
  bool calculates_size(int op, PyObject* left, PyObject* right, PyObject*& result);
  bool compares_size(int op, PyObject* left, PyObject* right, PyObject*& result);
  bool multiplies_sizes(const Call& call, PyObject*& result);
  PyObject* is_same_number(PyObject* left, PyObject* right, bool invert);
  /// After a call whose arguments vary.
  void use_numbers(PyObject* object, int depth = 0);
  void results_vary(const graph::Target& target, const Call& call, PyObject* result);
  void use_split_size(const Call& call, std::size_t place);
  void save_for_rollback(PyObject* object, bool always = false);
  void save_generator(const Activation& inlined);
  /// Operators that ran without being recorded. If an operation that was thought to run none has
  /// raised this, the segment ends.
  std::size_t unexplained() const { return watch_.count() - expected_operators_; }
  PyObject* watched(Activation& a, std::size_t before, PyObject* result);
  /// Groups of keys that must differ from one another.
  void distinct_keys(std::vector<std::vector<const Source*>>& groups) const;
  bool has_tensor(const Call& call);
  bool is_iterable_known(PyObject* object);
  bool has_known_items(PyObject* object);
  bool know_items(PyObject* dict, Tracked& tracked, bool opens);
  /// Guards the order in which a loop over a set meets its items. False: it is not known.
  bool know_order(PyObject* object);
  /// Whether a class finds dict's own method.
  bool is_method_of_dict(PyObject* object, const char* name);
  PyObject* default_item(Activation& a, PyObject* dict, Operand key);
  PyObject* contains_by_iterating(Activation& a, Operand item, PyObject* object, bool invert);

  SegmentSink& sink_;
  Activation* root_ = nullptr;
  int start_ = 0;
  int suspended_ = 0;
  std::vector<Inlined> inlined_;
  const PyCodeObject* calling_ = nullptr;  // of the function that the program itself calls
  SourceTree sources_;
  TrackedObjects tracked_;
  std::vector<TypeLookup> lookups_;
  std::vector<SubclassCheck> subclass_checks_;
  std::set<std::pair<PyObject*, PyObject*>> looked_up_;
  std::vector<RecordedEffect> effects_;
  std::vector<Saved> saved_;
  std::vector<Member> known_members_;
  std::vector<PyTypeObject*> creating_;  // types whose instances are being made
  int calls_as_one_ = 0;                 // code that calls back is running
  int calls_around_ = 0;                 // likewise
  std::uint64_t one_call_start_ = 0;     // what was tracked before the innermost of these
  bool one_call_changes_older_ = false;  // what it calls back has changed some of that
  const PyCodeObject* entering_natively_ = nullptr;
  std::vector<DictBefore> one_call_dicts_;
  std::vector<graph::NodeId> hooked_;
  bool has_array_calls_ = false;   // what they give may share memory without a storage in common
  bool is_random_ = false;         // a call of Python in the graph draws random numbers
  bool saw_open_size_ = false;     // among the arguments of a call
  bool saw_varying_size_ = false;  // likewise
  OpenSources open_;
  bool is_open_by_default_ = false;  // sizes of tensors that are not a module's
  bool follows_sizes_ = false;
  bool fixes_all_sizes_ = false;
  SizeNumbers size_numbers_;
  std::vector<std::pair<Source*, Source*>> distinct_;
  bool writes_to_classes_ = false;
  std::set<const Source*> keys_;  // of objects that were compared as keys
  std::shared_ptr<graph::Graph> graph_;
  std::vector<graph::Node*> nodes_;  // calls in order
  std::vector<Input> inputs_;
  aten::OperatorWatch watch_;
  std::size_t expected_operators_ = 0;
  Checkpoint checkpoint_;
  bool grad_mode_ = true;  // as the program has set it
  bool initial_grad_mode_ = true;
  std::vector<AutocastRegion> autocast_;
  guards::GlobalState state_;
  std::vector<PyObject*> initial_slots_;
  std::vector<Source*> initial_origins_;
  Source* pending_origins_[8] = {};
  graph::StackTable stacks_;
  bool collects_garbage_ = false;  // and does so again when the segment ends
  bool after_pop_except_ = false;
  bool no_exception_ = false;
  int handling_ = 0;  // exceptions being handled by the root, begun in this segment
};

/// Descriptors of __slots__ and what is in them, in turn: a list.
Ref values_of_slots(PyObject* object);
/// While it lives, Python frames are not followed.
class SuspendScope {
 public:
  explicit SuspendScope(Recorder& recorder) : recorder_(recorder) { ++recorder_.suspended_; }
  ~SuspendScope() { --recorder_.suspended_; }
  SuspendScope(const SuspendScope&) = delete;
  SuspendScope& operator=(const SuspendScope&) = delete;

 private:
  Recorder& recorder_;
};

/// Hashing a tensor, which is by its identity, runs Python code: it is not followed while this
/// lives.
class KeyScope {
 public:
  KeyScope(Recorder& recorder, PyObject* key);

 private:
  std::optional<SuspendScope> suspended_;
};

}  // namespace assay::capture
