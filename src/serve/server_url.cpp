#include "serve/server_url.h"

#include "core/error.h"

namespace cohort::serve {
namespace {

constexpr const char* kNamed = "a policy server is named ws://HOST:PORT or vla-eval://HOST:PORT";

}  // namespace

bool is_server_url(const std::string& text) {
  return text.starts_with("ws://") || text.starts_with("wss://") || text.starts_with("vla-eval://");
}

ServerUrl parse_url(const std::string& text) {
  COHORT_THROW_UNLESS(!text.starts_with("wss://"),
                      "{}: encrypted connections are not made; lead the port here, e.g. by ssh -L 8000:localhost:8000 "
                      "HOST, and name ws://localhost:8000",
                      text);
  COHORT_THROW_UNLESS(is_server_url(text), "{}: {}", text, kNamed);
  ServerUrl url;
  url.text = text;
  url.scheme = text.substr(0, text.find(':'));
  std::string rest = text.substr(url.scheme.size() + 3);
  const std::size_t slash = rest.find('/');
  url.path = slash == std::string::npos ? "/" : rest.substr(slash);
  rest = rest.substr(0, slash);
  const std::size_t bracket = rest.starts_with("[") ? rest.find(']') : std::string::npos;  // [::1]:8000
  const std::size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  url.host = bracket == std::string::npos ? rest.substr(0, colon) : rest.substr(1, bracket - 1);
  url.port = colon == std::string::npos ? "8000" : rest.substr(colon + 1);
  const bool number = !url.port.empty() && url.port.size() <= 5 &&
                      url.port.find_first_not_of("0123456789") == std::string::npos && std::stoi(url.port) <= 65535;
  COHORT_THROW_UNLESS(!url.host.empty() && number, "{}: {}", text, kNamed);
  return url;
}

}  // namespace cohort::serve
