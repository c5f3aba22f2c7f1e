/// \file Trials on small graphs, carried out by a server that the test forks.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <string>

#include "sandbox/server.h"
#include "sandbox/signature.h"
#include "support/temporary_directory.h"

namespace assay::sandbox {

/// A graph file with these lines in `forward`.
inline std::string graph_text(const std::string& body,
                              const std::string& inputs = "x: \"f32[4, 4][4, 1]cpu\"") {
  std::string text =
      "import torch\n\nclass Repro(torch.nn.Module):\n    def forward(self, " + inputs + "):\n";
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = body.find('\n', begin)) != std::string::npos; begin = end + 1) {
    text += "        " + body.substr(begin, end - begin) + "\n";
  }
  return text + "        " + body.substr(begin) + "\n";
}

class SandboxTest : public ::testing::Test {
 protected:
  // Servers are forked from here: nothing may have started a thread before.
  static void SetUpTestSuite() { at::set_num_threads(1); }

  Trial trial(const std::string& body) const {
    Trial trial;
    trial.file = graph_text(body);
    trial.save_directory = directory_.path().string();
    trial.backend = "aot_eager";
    return trial;
  }

  testing::TemporaryDirectory directory_;
};

}  // namespace assay::sandbox
