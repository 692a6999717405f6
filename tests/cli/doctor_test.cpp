// `cohort doctor` on this machine: what a machine without a GPU can be made to suffer from.
#include <fstream>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/json_text.h"
#include "monitor/snapshot.h"
#include "rank/status.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

nlohmann::json findings_of(const Outcome& outcome, const std::string& check) {
  auto found = nlohmann::json::array();
  const auto all = parse_json<nlohmann::json>(outcome.out);
  for (const auto& finding : all["findings"])
    if (finding["check"] == check) found.push_back(finding);
  return found;
}

/// A socket of this process that listens.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(socket_); }
  int port() const { return port_; }

 private:
  int socket_, port_ = 0;
};

TEST(CliDoctor, APortInUseIsAnErrorWithTheProcessThatHasIt) {
  const Listener listener;
  const std::string port = std::to_string(listener.port());
  const Outcome outcome = run({cohort_path(), "doctor", "--json", "--port", port});
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  const auto found = findings_of(outcome, "net-port");
  ASSERT_FALSE(found.empty()) << outcome.out;
  EXPECT_EQ(found[0]["title"], "port " + port + " is in use");
  EXPECT_TRUE(contains(found[0]["evidence"], std::to_string(::getpid()))) << found[0]["evidence"];
  const Outcome text = run({cohort_path(), "doctor"}, {{"MASTER_PORT", port}});
  EXPECT_EQ(text.code, 1);
  EXPECT_TRUE(contains(text.out, "error    port " + port + " is in use  (net-port)")) << text.out;
  EXPECT_TRUE(contains(text.out, "do:       leave --master_port out")) << text.out;
}

TEST(CliDoctor, VariablesThatLeadNowhereAreErrors) {
  if (fs::exists("/sys/class/net")) {  // some containers have no /sys: the check is left out there
    const auto found =
        findings_of(run({cohort_path(), "doctor", "--json"}, {{"GLOO_SOCKET_IFNAME", "no_such0"}}), "net-interface");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["severity"], "error");
    EXPECT_TRUE(contains(found[0]["evidence"], "GLOO_SOCKET_IFNAME=no_such0"));
  }
  // .invalid never resolves (RFC 2606).
  const auto name =
      findings_of(run({cohort_path(), "doctor", "--json"}, {{"MASTER_ADDR", "node.invalid"}}), "net-name");
  ASSERT_EQ(name.size(), 1u);
  EXPECT_TRUE(contains(name[0]["title"], "does not resolve"));
  const auto loop =
      findings_of(run({cohort_path(), "doctor", "--json", "--nodes=2"}, {{"MASTER_ADDR", "127.0.0.1"}}), "net-name");
  ASSERT_EQ(loop.size(), 1u);
  EXPECT_TRUE(contains(loop[0]["title"], "this machine alone"));
}

TEST(CliDoctor, WhereNothingCanBeWrittenTheFindingsAreSaidAllTheSame) {
  const Outcome outcome = run({"/bin/sh", "-c", "cd /proc && exec " + cohort_path() + " doctor --measure --json"},
                              {{"OMP_NUM_THREADS", "100000"}});
  const auto all = parse_json<nlohmann::json>(outcome.out);
  EXPECT_FALSE(findings_of(outcome, "host-cores").empty()) << outcome.err;
  EXPECT_TRUE(contains(all["left_out"]["measured-machine"], "cannot be written")) << outcome.out;
}

TEST(CliDoctor, OversubscribedCoresAreAWarning) {
  const auto found =
      findings_of(run({cohort_path(), "doctor", "--json"}, {{"OMP_NUM_THREADS", "100000"}}), "host-cores");
  bool told = false;
  for (const auto& finding : found)
    told = told || (finding["title"] == "OMP_NUM_THREADS is more than the cores" && finding["severity"] == "warning");
  EXPECT_TRUE(told) << json_text(found, 2);
}

TEST(CliDoctor, ARankThatWasStoppedOrKilledIsFoundInItsRun) {
  const TemporaryFolder folder;
  const fs::path ranks = folder.path() / "ranks";
  fs::create_directory(ranks);
  Process sleeper({"/bin/sleep", "100"});
  rank::Status status;
  monitor::identify_process(status);
  status.pid = sleeper.pid();
  status.phase = rank::Phase::kTraining;
  status.step = 7;
  status.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto stat = [&] { return text_of("/proc/" + std::to_string(sleeper.pid()) + "/stat"); };
  std::stringstream words(stat().substr(stat().rfind(')') + 2));
  std::string word;
  for (int field = 3; field <= 22; ++field) words >> word;
  status.started = std::stoull(word);
  rank::StatusFile(ranks, 0).write(status);
  const auto doctor = [&] { return run({cohort_path(), "doctor", "--json", folder.path().string()}); };
  EXPECT_TRUE(findings_of(doctor(), "run-alive").empty());
  sleeper.send(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return contains(stat(), ") T "); }));
  Outcome outcome = doctor();
  EXPECT_EQ(outcome.code, 1);
  ASSERT_EQ(findings_of(outcome, "run-alive").size(), 1u) << outcome.out;
  EXPECT_EQ(findings_of(outcome, "run-alive")[0]["title"], "rank 0 is stopped");
  sleeper.send(SIGKILL);
  sleeper.wait();
  outcome = doctor();
  ASSERT_EQ(findings_of(outcome, "run-alive").size(), 1u) << outcome.out;
  EXPECT_EQ(findings_of(outcome, "run-alive")[0]["title"], "rank 0 has gone without an end");
}

TEST(CliDoctor, ARecordedMachineIsExaminedInPlaceOfThisOne) {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& path, const std::string& text) {
    fs::create_directories((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path) << text;
  };
  put("proc/mounts", "shm /dev/shm tmpfs rw,size=65536k 0 0\n");
  put("sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:1b:00.0/class", "0x030200\n");
  const Outcome outcome = run({cohort_path(), "doctor", "--root", folder.path().string()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.out, "error    1 NVIDIA GPU(s) and no driver  (gpu-driver)")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "warning  /dev/shm is small")) << outcome.out;
}

TEST(CliDoctor, WrongArgumentsAreRefused) {
  EXPECT_EQ(run({cohort_path(), "doctor", "--nodes=0"}).code, 2);
  EXPECT_EQ(run({cohort_path(), "doctor", "--jsn"}).code, 2);
  const TemporaryFolder empty;
  const Outcome none = run({cohort_path(), "doctor", empty.path().string()});
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.err, "there is neither a run")) << none.err;
  const Outcome root = run({cohort_path(), "doctor", "--root=/no/such"});
  EXPECT_EQ(root.code, 1);
  EXPECT_TRUE(contains(root.err, "--root=/no/such")) << root.err;
}

TEST(CliDoctor, HelpNamesEveryCheck) {
  const Outcome help = run({cohort_path(), "doctor", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* check : {"gpu-driver", "net-shm", "host-cores", "run-loader", "run-messages"})
    EXPECT_TRUE(contains(help.out, check)) << check;
}

}  // namespace
}  // namespace cohort::testing
