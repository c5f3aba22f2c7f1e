// How many trials of a file a pool of servers carries out per second: trial_rate FILE BACKEND
// WORKERS TRIALS. Prints JSON.
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sandbox/server.h"
#include "sandbox/signature.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: trial_rate FILE BACKEND WORKERS TRIALS\n");
    return 2;
  }
  using assay::sandbox::Outcome;
  at::set_num_threads(1);
  std::ifstream stream(argv[1]);
  std::ostringstream text;
  text << stream.rdbuf();
  assay::sandbox::Trial trial;
  trial.file = text.str();
  const std::string directory = argv[1];
  trial.save_directory = directory.substr(0, directory.rfind('/') + 1) + "checkpoints";
  trial.backend = argv[2];
  assay::sandbox::ServerPool pool(assay::sandbox::fork_server(), std::atoi(argv[3]));
  pool.run(trial);  // waits until the first server is ready
  const int trials = std::atoi(argv[4]);
  int failures = 0;
  double cpu = 0;
  int started = 0;
  int done = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (done < trials) {
    while (started < trials && pool.idle_worker() >= 0) {
      pool.start(pool.idle_worker(), trial);
      ++started;
    }
    const Outcome outcome = pool.wait().second;
    ++done;
    cpu += outcome.cpu_seconds;
    failures += assay::sandbox::classify(outcome).verdict != assay::sandbox::Verdict::passed;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%s\n", nlohmann::json{{"trials", trials},
                                     {"seconds", seconds},
                                     {"per_second", trials / seconds},
                                     {"cpu_seconds_per_trial", cpu / trials},
                                     {"not_passed", failures}}
                          .dump()
                          .c_str());
  return failures == 0 ? 0 : 1;
}
