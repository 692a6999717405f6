// What a Python server of openpi's protocol is shown of LIBERO: names, types, shapes and sizes of openpi's example.
#include <filesystem>
#include <map>

#include "cli/task_program.h"
#include "support/python.h"

namespace cohort::testing {
namespace {

class ServeLibero : public TaskProgram {};

TEST_F(ServeLibero, APythonServerIsShownWhatOpenpisExampleSends) {
  COHORT_NEEDS_PYTHON();
  const char* shared = std::getenv("COHORT_SHARED");
  const std::string scenes = std::string(shared ? shared : COHORT_SOURCE_DIR "/../shared") + "/data/libero";
  if (!std::filesystem::exists(scenes)) GTEST_SKIP() << "COHORT_SHARED names no folder with data/libero";
  const std::string port = std::to_string(free_port()), url = "ws://127.0.0.1:" + port;
  Process server({python_path(), COHORT_SOURCE_DIR "/tests/cli/serve_server.py", port,
                  R"({"width": 7, "observation/image": ["uint8", [224, 224, 3]], )"
                  R"("observation/wrist_image": ["uint8", [224, 224, 3]], "observation/state": ["float64", [8]]})"});
  const Outcome outcome = cohort({"evaluate",
                                  "--benchmark",
                                  "libero_90",
                                  "--num_tasks",
                                  "1",
                                  "--libero",
                                  scenes,
                                  "--policy",
                                  url,
                                  "--episodes",
                                  "1",
                                  "--max_steps",
                                  "6",
                                  "--exec-horizon",
                                  "5",
                                  "--observations",
                                  "openpi-libero",
                                  "--threads",
                                  "1",
                                  "--renderer",
                                  "raycast",
                                  "--json",
                                  path("a.json")});
  ASSERT_EQ(outcome.code, 0) << outcome.err << server.err();
  EXPECT_TRUE(contains(outcome.err, "protocol=lerobot has them")) << "LIBERO's own five steps were waited";
  std::map<std::string, int> said;
  for (const std::string& line : lines_of(server.out())) ++said[line];
  EXPECT_EQ(said["asked: close the top drawer of the cabinet"], 2) << "six steps, five at a time";
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(path("a.json"))).at("policies").at(0).at("policy"), url);
}

}  // namespace
}  // namespace cohort::testing
