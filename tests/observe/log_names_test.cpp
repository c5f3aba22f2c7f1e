// The table of names: complete, unambiguous, and the same in the documentation.
#include "observe/log_names.h"

#include <set>

#include "observe_fixture.h"

namespace assay::observe {
namespace {

using LogNames = ObserveTest;

TEST_F(LogNames, EveryNameIsUniqueAndFound) {
  std::set<std::string_view> seen(stock_only_names.begin(), stock_only_names.end());
  for (const LogName& row : log_names) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name << " appears twice";
    EXPECT_EQ(find_log_name(row.name), &row);
    EXPECT_FALSE(row.description.empty()) << row.name;
  }
  EXPECT_EQ(find_log_name("all"), find_log_name("torch"));
  EXPECT_EQ(find_log_name("nothing"), nullptr);
}

TEST_F(LogNames, TheListingIsAligned) {
  const auto lines = lines_of(render_log_names());
  ASSERT_EQ(lines.size(), channel_count + 1);
  const std::size_t column = lines.front().find("what it shows");
  for (const LogName& row : log_names) {
    const std::string& line = lines[row.channel.index() + 1];
    EXPECT_TRUE(line.starts_with(row.name)) << line;
    EXPECT_EQ(line.find(row.description), column) << line;
  }
}

TEST_F(LogNames, TheDocumentationHoldsTheTable) {
  const std::string page = read(ASSAY_SOURCE_DIR "/docs/observe.md");
  EXPECT_NE(page.find("\n" + render_log_names_markdown() + "\n"), std::string::npos)
      << "docs/observe.md must hold exactly this table:\n"
      << render_log_names_markdown();
}

}  // namespace
}  // namespace assay::observe
