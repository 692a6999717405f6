#include "program.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <vector>

namespace cohort::bench {

struct Options::Parser {
  explicit Parser(const std::string& title) : app(title) {}
  CLI::App app;
  CLI::Option* last = nullptr;
  int code = 0;
};

Options::Options(const std::string& title) : parser_(std::make_unique<Parser>(title)) {}
Options::~Options() = default;

template <class T>
Options& Options::add(const std::string& name, T& value, const std::string& help) {
  parser_->last = parser_->app.add_option(name, value, help)->capture_default_str();
  return *this;
}
template Options& Options::add(const std::string&, std::string&, const std::string&);
template Options& Options::add(const std::string&, int&, const std::string&);
template Options& Options::add(const std::string&, std::int64_t&, const std::string&);
template Options& Options::add(const std::string&, double&, const std::string&);
template Options& Options::add(const std::string&, float&, const std::string&);
template Options& Options::add(const std::string&, std::vector<int>&, const std::string&);
template Options& Options::add(const std::string&, std::vector<std::string>&, const std::string&);

Options& Options::add_flag(const std::string& name, bool& value, const std::string& help) {
  parser_->last = parser_->app.add_flag(name, value, help);
  return *this;
}
Options& Options::required() {
  parser_->last->required();
  return *this;
}
Options& Options::at_least(int least) {
  parser_->last->check(CLI::Range(least, std::numeric_limits<int>::max()));
  return *this;
}
Options& Options::one_of(std::initializer_list<std::string> values) {
  parser_->last->check(CLI::IsMember(std::vector<std::string>(values)));
  return *this;
}

bool Options::parse(int argc, char** argv) {
  try {
    parser_->app.parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& error) {
    parser_->code = parser_->app.exit(error);
    return false;
  }
}
int Options::exit_code() const {
  return parser_->code;
}

std::string environment_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

int run_program(const char* name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: error: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace cohort::bench
