/// A real browser that a test talks to: Chromium without a screen, by its DevTools protocol
/// (https://chromedevtools.github.io/devtools-protocol/).
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/files.h"
#include "core/json_text.h"
#include "serve/websocket_client.h"
#include "support/command.h"

namespace cohort::test {

/// "" where there is no Chromium.
inline std::string chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (run_command(std::string("command -v ") + name).code == 0) return name;
  return "";
}

/// Ends the process whose number a file holds, when its own life ends.
struct EndedProcess {
  std::string pid_file;
  ~EndedProcess() {
    run_command("kill $(cat '" + pid_file + "'); for i in $(seq 200); do kill -0 $(cat '" + pid_file +
                "') || break; sleep 0.05; done");
  }
};

class Browser {
 public:
  /// folder: for its profile.
  explicit Browser(const std::string& name, const std::filesystem::path& folder)
      : process_{(folder / "browser.pid").string()} {
    const std::string said = (folder / "browser.txt").string();
    run_command(
        format("{} --headless=new --no-sandbox --use-angle=swiftshader --enable-unsafe-swiftshader "
               "--remote-debugging-port=0 --window-size=1000,700 --user-data-dir='{}' about:blank > '{}' 2>&1 & "
               "echo $! > '{}'; for i in $(seq 1200); do grep -q 'DevTools listening' '{}' && break; sleep 0.05; done",
               name, (folder / "profile").string(), said, process_.pid_file, said));
    const std::string text = read_file(said);
    const std::size_t begin = text.find("ws://");
    COHORT_THROW_UNLESS(begin != std::string::npos, "{} does not start: {}", name, text);
    // The client's address has a host and a port; the path is that of the browser as a whole.
    const std::string address = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
    socket_.emplace(serve::make_client_thread(), serve::parse_url(address), 60);
    const nlohmann::json target = ask("Target.createTarget", {{"url", "about:blank"}});
    session_ = ask("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}}).at("sessionId");
    for (const char* domain : {"Runtime", "Log", "Network", "Page"})
      ask(std::string(domain) + ".enable", nlohmann::json::object());
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& address) { ask("Page.navigate", {{"url", address}}); }

  /// The value of a script, or of what it promises.
  nlohmann::json run(const std::string& script) {
    const nlohmann::json r =
        ask("Runtime.evaluate", {{"expression", script}, {"awaitPromise", true}, {"returnByValue", true}});
    COHORT_THROW_UNLESS(!r.contains("exceptionDetails"), "the page: {}", json_text(r));
    return r.at("result").value("value", nlohmann::json());
  }

  /// The left button's: "mousePressed", "mouseMoved", "mouseReleased" at px of the page.
  void mouse(const std::string& what, double x, double y) {
    const int held = what == "mouseReleased" ? 0 : 1;
    ask("Input.dispatchMouseEvent",
        {{"type", what}, {"x", x}, {"y", y}, {"button", "left"}, {"buttons", held}, {"clickCount", 1}});
  }

  /// What its console has shown, errors that nobody caught among them.
  const std::vector<std::string>& console() const { return console_; }
  /// Addresses that pages have asked for.
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  nlohmann::json ask(const std::string& method, const nlohmann::json& parameters) {
    nlohmann::json message{{"id", ++id_}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) message["sessionId"] = session_;
    socket_->send_text(json_text(message));
    for (;;) {
      const nlohmann::json m = parse_json<nlohmann::json>(socket_->receive(300).bytes);
      if (m.value("id", 0) == id_) {
        COHORT_THROW_UNLESS(m.contains("result"), "{}: {}", method, json_text(m));
        return m.at("result");
      }
      const std::string event = m.value("method", "");
      if (event == "Runtime.consoleAPICalled" || event == "Runtime.exceptionThrown" || event == "Log.entryAdded")
        console_.push_back(json_text(m.at("params")));
      if (event == "Network.requestWillBeSent") requests_.push_back(m.at("params").at("request").at("url"));
      if (event == "Network.webSocketCreated") requests_.push_back(m.at("params").at("url"));
    }
  }

  EndedProcess process_;
  std::optional<serve::WebSocketClient> socket_;
  std::string session_;
  int id_ = 0;
  std::vector<std::string> console_, requests_;
};

}  // namespace cohort::test
