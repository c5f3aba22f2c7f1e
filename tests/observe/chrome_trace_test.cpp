// The Chrome trace file: valid, nested, with threads; whose process owns it; what if it fails.
#include <sys/wait.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "observe_fixture.h"

namespace assay::observe {
namespace {

using Json = nlohmann::json;

class ChromeTraceTest : public ObserveTest {
 protected:
  std::string path_ = scratch_path("trace.json");

  Json events() { return Json::parse(read(path_))["traceEvents"]; }

  static Json named(const Json& events, const std::string& name) {
    for (const Json& event : events) {
      if (event["name"] == name) return event;
    }
    ADD_FAILURE() << "no event called " << name << " in " << events.dump(1);
    return {};
  }

  static double end_of(const Json& event) {
    return event["ts"].get<double>() + event["dur"].get<double>();
  }
};

TEST_F(ChromeTraceTest, HoldsNestedPhasesAndInstants) {
  start_trace(path_);
  {
    Phase outer("outer", Component::pass_manager);
    outer.field("nodes", 12);
    const Phase inner("inner");
    event(Kind::graph_break, Artifact::graph_breaks, Level::debug, [](Event& broken) {
      broken.name = "break";
      broken.message = "why";
      broken.field("line", 3).field("ratio", std::nan("")).field("text", "\xff");
    });
  }
  ASSERT_TRUE(stop_trace());
  const Json trace = events();
  const Json outer = named(trace, "outer");
  const Json inner = named(trace, "inner");
  const Json broken = named(trace, "break");
  EXPECT_EQ(outer["ph"], "X");
  EXPECT_EQ(outer["cat"], "pass_manager,phase");
  EXPECT_EQ(outer["args"]["nodes"], 12);
  EXPECT_LE(outer["ts"].get<double>(), inner["ts"].get<double>());
  EXPECT_GE(end_of(outer), end_of(inner));
  EXPECT_EQ(broken["ph"], "i");
  EXPECT_GE(broken["ts"].get<double>(), inner["ts"].get<double>());
  EXPECT_LE(broken["ts"].get<double>(), end_of(inner));
  EXPECT_EQ(broken["args"]["message"], "why");
  EXPECT_EQ(broken["args"]["line"], 3);
  EXPECT_EQ(broken["args"]["ratio"], "nan");
  const std::string source = broken["args"]["source"];
  EXPECT_TRUE(source.starts_with("tests/observe/chrome_trace_test.cpp:")) << source;
}

TEST_F(ChromeTraceTest, NamesTheProcessAndEveryThread) {
  start_trace(path_);
  { const Phase phase("here"); }
  std::thread([] {
    ::pthread_setname_np(::pthread_self(), "worker");
    const Phase phase("there");
  }).join();
  ASSERT_TRUE(stop_trace());
  const Json trace = events();
  EXPECT_NE(named(trace, "here")["tid"], named(trace, "there")["tid"]);
  EXPECT_EQ(named(trace, "here")["pid"], ::getpid());
  EXPECT_EQ(named(trace, "process_name")["ph"], "M");
  std::vector<std::string> names;
  for (const Json& event : trace) {
    if (event["name"] == "thread_name") names.push_back(event["args"]["name"]);
  }
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0], "main");
  EXPECT_TRUE(names[1].starts_with("worker ")) << names[1];
}

TEST_F(ChromeTraceTest, FlushWritesWhatThereIsAndGoesOn) {
  start_trace(path_);
  const Phase open("still open");
  { const Phase phase("first"); }
  ASSERT_TRUE(flush());
  EXPECT_EQ(named(events(), "still open")["ph"], "B");
  { const Phase phase("second"); }
  ASSERT_TRUE(flush());
  named(events(), "first");
  named(events(), "second");
}

TEST_F(ChromeTraceTest, DoesNotMakeAnybodyFormatMessages) {
  start_trace(path_);
  EXPECT_TRUE(wants_event(Artifact::run, Level::debug));
  EXPECT_FALSE(wants(Component::dynamo, Level::debug));
  stop_trace();
  EXPECT_FALSE(wants_event(Artifact::run, Level::debug));
}

TEST_F(ChromeTraceTest, APathThatCannotBeWrittenIsAnError) {
  const auto message = settings_error_of([] { start_trace("/no/such/folder/trace.json"); });
  EXPECT_EQ(
      message,
      "cannot write the trace file \"/no/such/folder/trace.json\": No such file or directory");
  { const Phase phase("goes on"); }
  EXPECT_TRUE(flush()) << "there is no trace to write";
}

TEST_F(ChromeTraceTest, AFailureToWriteItLaterIsAWarning) {
  start_trace("/dev/full");
  { const Phase phase("lost"); }
  bool written = true;
  const auto text = stderr_of([&] { written = stop_trace(); });
  EXPECT_FALSE(written);
  EXPECT_NE(text.find("[observe] cannot write the trace file \"/dev/full\": No space left"),
            std::string::npos)
      << text;
}

TEST_F(ChromeTraceTest, TheProcessIdCanBePartOfThePath) {
  start_trace(path_ + ".%p");
  stop_trace();
  const std::string path = path_ + "." + std::to_string(::getpid());
  EXPECT_FALSE(read(path).empty());
  std::filesystem::remove(path);
}

TEST_F(ChromeTraceTest, AForkedChildLeavesTheFileOfItsParentAlone) {
  start_trace(path_);
  { const Phase phase("before"); }
  ASSERT_TRUE(flush());
  const std::string before = read(path_);
  const pid_t child = ::fork();
  if (child == 0) {
    { const Phase phase("in the child"); }
    const bool quiet = flush() && stop_trace() && !wants_event(Artifact::run, Level::debug);
    std::exit(quiet ? 0 : 1);  // runs the exit handlers
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(read(path_), before);
  { const Phase phase("after"); }
  ASSERT_TRUE(stop_trace());
  const std::string after = read(path_);
  EXPECT_NE(after.find("\"after\""), std::string::npos);
  EXPECT_EQ(after.find("in the child"), std::string::npos);
}

TEST_F(ChromeTraceTest, AForkedChildCanWriteItsOwnAndDoesSoAtExit) {
  start_trace(scratch_path("parent.json"));
  const pid_t child = ::fork();
  if (child == 0) {
    start_trace(path_);
    { const Phase phase("in the child"); }
    std::exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  named(events(), "in the child");
}

}  // namespace
}  // namespace assay::observe
