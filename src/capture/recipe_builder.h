/// \file Turns what the recorder knows at the end of a segment into recipes, effects, graph outputs
/// and guards. Used by Recorder::end_segment.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "capture/recorder.h"
#include "capture/segment.h"

namespace assay::capture {

/// Functions of torch by the record of their operator if there is one, else by their name.
bool writes_to_argument(const graph::Node& node);

class RecipeBuilder {
 public:
  RecipeBuilder(Recorder& recorder, Segment& segment) : recorder_(recorder), segment_(segment) {}

  /// Recipes for the frame's slots (or its result) and for the effects. False: something alive
  /// cannot be made again; `problem` says what.
  bool build(bool is_return);
  const std::string& problem() const { return problem_; }
  /// Completes graph, inputs and guards of the segment. Returns example inputs for the backend.
  std::vector<c10::IValue> finish_graph();

 private:
  static constexpr int kNone = -1;
  static constexpr int kFailed = -2;

  /// The recipe of an object; kFailed if there is none.
  int recipe(PyObject* object);
  int recipe_at(PyObject* object, Source* origin);
  int make_local(PyObject* object);
  /// An empty recipe for an object that contains itself.
  int allocate(PyObject* object);
  int complete(PyObject* object, Make make, std::vector<int> parts, int attributes);
  int attributes_of(PyObject* object);
  int factory_of(PyObject* defaultdict);
  /// Descriptors of __slots__ and what is in them.
  bool add_slots(PyObject* object, std::vector<int>& parts);
  int make_function(PyObject* object);
  /// What a function of that kind is copied from: itself, or what it was before an inlined call.
  PyObject* like_of(PyObject* function) const;
  int make_generator(PyObject* object);
  int make_exception(PyObject* object);
  int make_iterator(PyObject* object);
  int from_source(Source* source);
  int constant(PyObject* object);
  int number_recipe(graph::Node& node);
  int add(Make make, PyObject* object, std::vector<int> parts, int attributes = -1);
  bool add_items(PyObject* const* items, Py_ssize_t count, std::vector<int>& parts);
  /// What a local object held at the checkpoint, if an inlined function changed it since.
  PyObject* saved_contents(PyObject* object) const;
  bool build_slots();
  bool build_effects();
  // Numbers that follow from sizes (finish_sizes.cpp).
  /// Whether the segment fits other sizes than those of the recording.
  bool is_segment_sized(bool mutates_inputs) const;
  std::vector<graph::NodeId> nodes_seen_from_outside() const;
  /// Numbers that recipes or conditions need besides the graph's results.
  std::vector<graph::Node*> needed_numbers() const;
  /// The segment fits these sizes only: numbers become constants.
  void fix_sizes();
  /// Sets `segment.sizes` and the graph. False: the graph cannot be run for other sizes.
  bool finish_sizes(const std::vector<const Source*>& inputs,
                    const std::vector<c10::IValue>& examples);
  void keep_grad_mode(graph::Graph& graph);
  std::vector<std::vector<const Source*>> distinct_groups() const;
  int failed(std::string what);

  Recorder& recorder_;
  Segment& segment_;
  std::unordered_map<PyObject*, int> made_;
  std::unordered_map<PyObject*, int> in_progress_;
  std::unordered_map<const Source*, int> sources_;
  std::vector<graph::Node*> outputs_;
  std::vector<graph::Node*> numbers_;  // that recipes need
  std::vector<Ref> kept_;
  std::string problem_;
};

}  // namespace assay::capture
