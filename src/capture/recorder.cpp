#include "capture/recorder.h"
#include "capture/generators.h"

#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/dict_order.h"
#include "capture/recipe_builder.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// Leaves the thread's regions of autocast while it lives, if they are not those of `wanted`. What
// has been cast in them is forgotten: a backend may trace with tensors of its own.
class OutsideAutocast {
 public:
  OutsideAutocast(const aten::AutocastState& wanted, bool is_inside)
      : saved_(aten::AutocastState::current()), is_needed_(is_inside || !(saved_ == wanted)) {
    if (!is_needed_) return;
    depth_ = at::autocast::increment_nesting();
    for (int i = 0; i < depth_; ++i) at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    set(wanted);
  }
  ~OutsideAutocast() {
    if (!is_needed_) return;
    at::autocast::clear_cache();
    for (int i = 1; i < depth_; ++i) at::autocast::increment_nesting();
    set(saved_);
  }
  OutsideAutocast(const OutsideAutocast&) = delete;
  OutsideAutocast& operator=(const OutsideAutocast&) = delete;

 private:
  static void set(const aten::AutocastState& state) {
    at::autocast::set_autocast_enabled(at::kCPU, state.is_enabled);
    at::autocast::set_autocast_dtype(at::kCPU, state.dtype);
    at::autocast::set_autocast_cache_enabled(state.is_cache_enabled);
  }
  aten::AutocastState saved_;
  bool is_needed_;
  int depth_ = 0;  // one more than there are regions
};

}  // namespace

// ---- Life of a segment ----

void Recorder::begin(Activation& root, OpenSources open, bool is_open_by_default) {
  // A collection may close generators and run finalizers of anybody's objects in the middle of the
  // program: what they do is not part of the segment.
  collects_garbage_ = PyGC_Disable() != 0;
  root_ = &root;
  // To let go of an object may run Python code, here and below: a callback of a weak reference.
  const SuspendScope not_followed(*this);
  start_ = root.instruction;
  handling_ = 0;
  after_pop_except_ = false;
  no_exception_ = false;
  creating_.clear();
  calls_as_one_ = calls_around_ = 0;
  entering_natively_ = nullptr;
  one_call_dicts_.clear();
  is_random_ = false;
  has_array_calls_ = false;
  hooked_.clear();
  sources_ = SourceTree();
  tracked_.clear();
  lookups_.clear();
  subclass_checks_.clear();
  looked_up_.clear();
  effects_.clear();
  saved_.clear();
  known_members_.clear();
  distinct_.clear();
  keys_.clear();
  writes_to_classes_ = false;
  expected_operators_ = watch_.count();
  nodes_.clear();
  inputs_.clear();
  autocast_.clear();
  inlined_.clear();
  calling_ = nullptr;
  stacks_ = graph::StackTable();
  size_numbers_.clear();
  open_ = std::move(open);
  is_open_by_default_ = is_open_by_default;
  follows_sizes_ = !open_.empty() || is_open_by_default || has_marked_tensors();
  fixes_all_sizes_ = false;
  graph_ = std::make_shared<graph::Graph>("GraphModule");
  state_ = guards::GlobalState::current();
  grad_mode_ = initial_grad_mode_ = state_.grad_mode;
  add_slots(root);
  watch_.forget();
  watch_.start();
  checkpoint(root);
}

void Recorder::add_slots(Activation& root) {
  const auto count = static_cast<std::size_t>(root.top - root.locals);
  const auto variables = static_cast<std::size_t>(root.code->co_nlocalsplus);
  const std::vector<bool>& live = live_locals(root.code, root.instruction);
  initial_slots_.assign(root.locals, root.top);
  initial_origins_.assign(count, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    root.origins[i] = nullptr;
    PyObject* object = root.locals[i];
    const std::string name =
        i < variables
            ? to_string(PyTuple_GET_ITEM(root.code->co_localsplusnames, static_cast<Py_ssize_t>(i)))
            : "stack" + std::to_string(i - variables);
    Source* source = sources_.slot(static_cast<Py_ssize_t>(i), name);
    if (object == nullptr) {
      if (i >= variables || live[i]) source->checks.absent = true;
    } else if (PyObject* number = open_number(object, *source)) {
      Py_SETREF(root.locals[i], number);
      initial_slots_[i] = number;
    } else if (is_scalar(object)) {
      root.origins[i] = initial_origins_[i] = source;
    } else {
      arrived(object, source);
      // CPython has made it for this call, and nobody else has seen it.
      const PyCodeObject* code = root.code;
      const bool is_of_call = (code->co_flags & CO_VARARGS) != 0 && root.instruction == 0 &&
                              static_cast<int>(i) == code->co_argcount + code->co_kwonlyargcount;
      if (Tracked* tracked = is_of_call ? tracked_.find(object) : nullptr) tracked->is_fresh = true;
    }
  }
}

void Recorder::checkpoint(Activation& root) {
  if (after_pop_except_ && handling_ > 0) --handling_;
  after_pop_except_ = instruction_at(root.code, root.instruction).opcode == POP_EXCEPT;
  checkpoint_ = {tracked_.order(), sources_.size(),     lookups_.size(),  subclass_checks_.size(),
                 effects_.size(),  nodes_.size(),       distinct_.size(), grad_mode_,
                 autocast_,        size_numbers_.mark()};
  if (saved_.empty()) return;
  const SuspendScope not_followed(*this);
  saved_.clear();
}

void Recorder::roll_back() {
  const SuspendScope not_followed(*this);
  size_numbers_.truncate(checkpoint_.size_numbers);
  while (nodes_.size() > checkpoint_.nodes) {
    graph_->erase(*nodes_.back());
    nodes_.pop_back();
  }
  tracked_.truncate(checkpoint_.tracked);
  std::erase_if(keys_, [&](const Source* source) {
    return source->id >= static_cast<int>(checkpoint_.sources);
  });
  std::erase_if(inputs_, [&](const Input& input) {
    if (input.source->id < static_cast<int>(checkpoint_.sources)) return false;
    graph_->erase(*input.placeholder);
    return true;
  });
  sources_.truncate(checkpoint_.sources);
  lookups_.resize(checkpoint_.lookups);
  subclass_checks_.resize(checkpoint_.subclass_checks);
  effects_.resize(checkpoint_.effects);
  distinct_.resize(checkpoint_.distinct);
  grad_mode_ = checkpoint_.grad_mode;
  autocast_ = checkpoint_.autocast;
}

void Recorder::abandon() {
  const SuspendScope not_followed(*this);
  if (std::exchange(collects_garbage_, false)) PyGC_Enable();
  watch_.stop();
  root_ = nullptr;
  inlined_.clear();
  keys_.clear();
  tracked_.clear();
  effects_.clear();
  saved_.clear();
  inputs_.clear();
  nodes_.clear();
  size_numbers_.clear();
  lookups_.clear();
  subclass_checks_.clear();
  graph_ = nullptr;
  sources_ = SourceTree();
}

bool Recorder::finish_with_return(Activation& root) {
  return end_segment(root.instruction, true, {});
}

bool Recorder::stop(Activation& a, std::string reason, bool is_break) {
  if (!is_recording()) return true;
  BreakReason described = describe_break(a, std::move(reason));
  described.is_break = is_break;
  roll_back();
  return end_segment(root_->instruction, false, std::move(described));
}

BreakReason Recorder::describe_break(const Activation& a, std::string reason) const {
  const CodeLine place = line_of(a.code, a.instruction);
  return {std::move(reason), place.file, place.line, place.function, place.text, true};
}

bool Recorder::end_segment(int end, bool is_return, BreakReason reason) {
  watch_.stop();
  Activation& root = *root_;
  const int start = start_;
  auto segment = std::make_unique<Segment>();
  segment->end = end;
  segment->reason = std::move(reason);
  std::vector<c10::IValue> examples;
  {
    // Guards describe objects by repr(), which calls the handlers of signals.
    const SuspendScope not_followed(*this);
    RecipeBuilder builder(*this, *segment);
    if (builder.build(is_return)) {
      examples = builder.finish_graph();
    } else {
      if (segment->reason.reason.empty()) segment->reason = describe_break(root, builder.problem());
      segment->guards = nullptr;
    }
  }
  // C code may have set another grad mode for what it calls back, where the segment has ended.
  const at::AutoGradMode mode(initial_grad_mode_);
  // The backend runs with nothing recorded and nothing kept alive by the recorder, and with the
  // autocast state in which the segment starts.
  const OutsideAutocast outside({state_.autocast, state_.autocast_dtype, state_.autocast_cache},
                                !autocast_.empty());
  abandon();
  return sink_.finished(root, start, std::move(segment), std::move(examples));
}

void Recorder::enter(Activation& inlined) {
  const PyCodeObject* code = inlined.code;
  const bool is_generator = (code->co_flags & CO_GENERATOR) != 0;  // models know what they do
  inlined_.push_back({&inlined, tracked_.order(), is_generator || calling_ == code});
  calling_ = nullptr;
  if (inlined.frame->owner == FRAME_OWNED_BY_GENERATOR) save_generator(inlined);
  // CPython has made these two for the frame.
  int next = code->co_argcount + code->co_kwonlyargcount;
  for (const int flag : {CO_VARARGS, CO_VARKEYWORDS}) {
    if ((code->co_flags & flag) == 0) continue;
    PyObject* made_object = inlined.locals[next++];
    if (made_object != nullptr && !is_scalar(made_object) && !PyCell_Check(made_object) &&
        tracked_.find(made_object) == nullptr) {
      tracked_.add(made_object, Tracked::Kind::local).is_known = true;
    }
  }
  if (calls_as_one_ > 0 && !inlined_.back().returns_to_program) called_back(inlined);
  // `self` of an __init__ that type.__call__ calls has not been seen before.
  if (creating_.empty()) return;
  PyObject* self = inlined.code->co_argcount > 0 ? inlined.locals[0] : nullptr;
  if (self != nullptr && Py_TYPE(self) == creating_.back() && tracked_.find(self) == nullptr) {
    tracked_.add(self, Tracked::Kind::local).is_known = true;
  }
}

// A break in its frame forgets that it went on.
void Recorder::save_generator(const Activation& inlined) {
  auto* generator = reinterpret_cast<PyObject*>(_PyFrame_GetGenerator(inlined.frame));
  if (tracked_.find(generator) == nullptr) return;
  for (const Saved& saved : saved_) {
    if (saved.object == generator) return;
  }
  const auto count = static_cast<int>(inlined.top - inlined.locals);
  saved_.push_back({generator, state_of_entered(inlined.frame, count)});
}

void Recorder::leave(Activation& inlined) {
  if (inlined_.empty() || inlined_.back().activation != &inlined) return;  // the segment ended
  const Inlined left = inlined_.back();
  inlined_.pop_back();
  // A key for sorted(), a hash, a length: not the objects that are followed, but numbers.
  if (!left.returns_to_program && inlined.result != nullptr && !PyIter_Check(inlined.result)) {
    use_numbers(inlined.result);
  }
  const SuspendScope not_followed(*this);
  tracked_.sweep(left.entered_at);
}

graph::StackTrace Recorder::user_stack() const {
  std::vector<graph::StackFrame> frames;
  const auto add = [&](const Activation& a) {
    if (is_library_code(a.code) && &a != root_) return;  // the user's own lines
    const CodeLine place = line_of(a.code, a.instruction);
    frames.push_back({place.file, place.line, place.function, place.text});
  };
  add(*root_);
  for (const Inlined& inlined : inlined_) add(*inlined.activation);
  return frames;
}

bool Recorder::set_grad_mode(Activation&, bool enabled) {
  at::GradMode::set_enabled(enabled);
  if (enabled == grad_mode_) return true;
  grad_mode_ = enabled;
  graph::Node& node = graph_->call_function("torch._C._set_grad_enabled", {enabled});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  return true;
}

void Recorder::entered_autocast(PyObject* manager, const aten::AutocastState& before) {
  const auto inside = aten::AutocastState::current();
  graph::Node& node =
      graph_->call_function("torch.amp.autocast_mode._enter_autocast",
                            {"cpu", inside.dtype, inside.is_enabled, inside.is_cache_enabled});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  autocast_.push_back({manager, &node, before, inside});
}

void Recorder::left_autocast() {
  graph::Node& node =
      graph_->call_function("torch.amp.autocast_mode._exit_autocast", {autocast_.back().node});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  autocast_.pop_back();
}

}  // namespace assay::capture
