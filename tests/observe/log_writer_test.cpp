// Log lines as a user sees them: prefix, levels, format, file, threads.
#include <algorithm>
#include <array>
#include <cctype>
#include <thread>

#include "observe/log_format.h"
#include "observe/log_names.h"
#include "observe_fixture.h"

namespace assay::observe {
namespace {

using LogLines = ObserveTest;

TEST_F(LogLines, HaveThePrefixOfStockOnEveryLine) {
  set_logs("+dynamo,graph_code");
  const auto lines = lines_of(stderr_of([] {
    log(Component::dynamo, Level::debug, "one\n\nthree");
    artifact(Artifact::graph_code, [] { return "def forward(self):"; });
  }));
  ASSERT_EQ(lines.size(), 4u);
  const std::string process = " " + std::to_string(::getpid()) + " ";
  const std::vector<std::string> endings = {"[dynamo] one", "[dynamo] ", "[dynamo] three",
                                            "[__graph_code] def forward(self):"};
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string& line = lines[index];
    std::string time = line.substr(0, line.find(process));
    std::replace_if(
        time.begin(), time.end(), [](unsigned char c) { return std::isdigit(c); }, '0');
    EXPECT_EQ(time, "V0000 00:00:00.000000");
    EXPECT_NE(line.find(process + "tests/observe/log_writer_test.cpp:"), std::string::npos) << line;
    EXPECT_TRUE(line.ends_with("] " + endings[index])) << line;
  }
}

TEST_F(LogLines, BeginWithTheLetterOfTheirLevel) {
  set_logs("+all");
  const auto lines = lines_of(stderr_of([] {
    for (const Level level : {Level::debug, Level::info, Level::warning, Level::error}) {
      log(Component::aten, level, "text");
    }
  }));
  std::string letters;
  for (const std::string& line : lines) letters += line.front();
  EXPECT_EQ(letters, "VIWE");
}

TEST_F(LogLines, AreFilteredByTheLevelOfTheirComponent) {
  set_logs("dynamo,-aot");
  const auto lines = lines_of(stderr_of([] {
    log(Component::dynamo, Level::debug, "no");
    log(Component::dynamo, Level::info, "yes 1");
    log(Component::aot, Level::warning, "no");
    log(Component::aot, Level::error, "yes 2");
    log(Component::sandbox, Level::info, "no");
    log(Component::sandbox, Level::warning, "yes 3");
    artifact(Artifact::graph, [] { return "no"; });
  }));
  ASSERT_EQ(lines.size(), 3u);
  for (std::size_t index = 0; index < 3; ++index) {
    EXPECT_TRUE(lines[index].ends_with("] yes " + std::to_string(index + 1))) << lines[index];
  }
}

TEST_F(LogLines, ShowTheFieldsOfAnEventOnTheirFirstLine) {
  set_logs("graph_breaks");
  const auto lines = lines_of(stderr_of([] {
    event(Kind::graph_break, Artifact::graph_breaks, Level::debug, [](Event& broken) {
      broken.name = "f";
      broken.message = "call of print()\nas the user wrote it";
      broken.field("line", 12).field("seconds", 0.25).field("inlined", false).field("in", "a b");
    });
  }));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(
      lines[0].ends_with("] f: call of print() (line=12, seconds=0.25, inlined=false, in=\"a b\")"))
      << lines[0];
  EXPECT_TRUE(lines[1].ends_with("] as the user wrote it")) << lines[1];
}

TEST_F(LogLines, FollowAFormatOfTheUser) {
  Settings settings;
  settings.format =
      LogFormat("%(levelname)-8s|%(name)s|%(filename)s|%(levelno)5d|100%%|%(message)s");
  configure(settings);
  const auto text = stderr_of([] { log(Component::aot, Level::error, "two\nlines"); });
  EXPECT_EQ(text, "ERROR   |aot|log_writer_test.cpp|   40|100%|two\nlines\n");
  settings.format = LogFormat("short");
  configure(settings);
  EXPECT_EQ(stderr_of([] { log(Component::aot, Level::error, "text"); }), "ERROR:aot:text\n");
}

TEST_F(LogLines, RefuseAFormatThatMakesNoSense) {
  for (const char* format : {"%", "%s", "%(message", "%(message)", "%(message)x", "%(colour)s"}) {
    const auto message = settings_error_of([&] { LogFormat{format}; });
    EXPECT_TRUE(message.starts_with("TORCH_LOGS_FORMAT: ")) << format << ": " << message;
  }
}

TEST_F(LogLines, GoToAFileAsWell) {
  Settings settings;
  settings.logs = parse_logs("dynamo");
  settings.logs_out = scratch_path("log.txt");
  configure(settings);
  const auto text = stderr_of([] { log(Component::dynamo, Level::info, "text"); });
  EXPECT_TRUE(text.ends_with("] text\n"));
  EXPECT_EQ(read(settings.logs_out), text);
}

TEST_F(LogLines, AFileThatCannotBeWrittenIsAnErrorAndChangesNothing) {
  set_logs("+aot");
  Settings settings;
  settings.logs_out = "/no/such/folder/log.txt";
  const auto message = settings_error_of([&] { configure(settings); });
  EXPECT_EQ(message,
            "cannot write the log file \"/no/such/folder/log.txt\": No such file or directory");
  EXPECT_TRUE(wants(Component::aot, Level::debug));
}

TEST_F(LogLines, OfSeveralThreadsDoNotMix) {
  set_logs("aten");
  const std::string body(3000, 'x');
  const auto lines = lines_of(stderr_of([&] {
    std::array<std::thread, 4> threads;
    for (std::thread& thread : threads) {
      thread = std::thread([&] {
        for (int count = 0; count < 25; ++count) log(Component::aten, Level::info, body);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }));
  ASSERT_EQ(lines.size(), 100u);
  for (const std::string& line : lines) {
    ASSERT_TRUE(line.starts_with('I') && line.ends_with("[aten] " + body));
  }
}

TEST_F(LogLines, WarnAboutNamesThatDoNothing) {
  const auto text = stderr_of([] { set_logs("cudagraphs"); });
  EXPECT_NE(text.find("\"cudagraphs\" is one of stock PyTorch; it does nothing"),
            std::string::npos);
}

TEST(SourcePath, IsShownFromTheRepositoryOn) {
  EXPECT_EQ(short_source_path("/usr/src/assay/tests/graph/a.cpp"), "tests/graph/a.cpp");
  EXPECT_EQ(short_source_path("/home/me/assay/src/graph/a.cpp"), "src/graph/a.cpp");
  EXPECT_EQ(short_source_path("src/graph/a.cpp"), "src/graph/a.cpp");
  EXPECT_EQ(short_source_path("a.cpp"), "a.cpp");
}

}  // namespace
}  // namespace assay::observe
