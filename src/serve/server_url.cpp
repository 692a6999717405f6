#include "serve/server_url.h"

#include "core/error.h"

namespace cohort::serve {

bool is_server_url(const std::string& text) {
  return text.starts_with("ws://") || text.starts_with("wss://");
}

ServerUrl parse_url(const std::string& text) {
  COHORT_THROW_UNLESS(!text.starts_with("wss://"),
                      "{}: encrypted connections are not made; lead the port here, e.g. by ssh -L 8000:localhost:8000 "
                      "HOST, and name ws://localhost:8000",
                      text);
  COHORT_THROW_UNLESS(text.starts_with("ws://"), "{}: a policy server is named ws://HOST:PORT", text);
  ServerUrl url;
  url.text = text;
  std::string rest = text.substr(5);
  const std::size_t slash = rest.find('/');
  url.path = slash == std::string::npos ? "/" : rest.substr(slash);
  rest = rest.substr(0, slash);
  const std::size_t bracket = rest.starts_with("[") ? rest.find(']') : std::string::npos;  // [::1]:8000
  const std::size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  url.host = bracket == std::string::npos ? rest.substr(0, colon) : rest.substr(1, bracket - 1);
  url.port = colon == std::string::npos ? "8000" : rest.substr(colon + 1);
  const bool number = !url.port.empty() && url.port.size() <= 5 &&
                      url.port.find_first_not_of("0123456789") == std::string::npos && std::stoi(url.port) <= 65535;
  COHORT_THROW_UNLESS(!url.host.empty() && number, "{}: a policy server is named ws://HOST:PORT", text);
  return url;
}

}  // namespace cohort::serve
