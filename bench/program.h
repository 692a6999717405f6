/// What every benchmark's main() does: options from the command line, and errors as a line and a code.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

namespace cohort::bench {

/// Options of a command line; the variables keep their values where an option is not given.
class Options {
 public:
  explicit Options(const std::string& title);
  ~Options();
  /// `name` as "--pairs". T: std::string, int, std::int64_t, double, float, std::vector<int>, std::vector<std::string>.
  template <class T>
  Options& add(const std::string& name, T& value, const std::string& help = "");
  Options& add_flag(const std::string& name, bool& value, const std::string& help);
  /// The option added last must be given; must not be below `least`; must be one of `values`.
  Options& required();
  Options& at_least(int least);
  Options& one_of(std::initializer_list<std::string> values);

  /// False when the program ends here, after --help or a wrong option, which has been printed.
  bool parse(int argc, char** argv);
  int exit_code() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// `name`'s variable in the environment, or `otherwise`.
std::string environment_or(const char* name, const std::string& otherwise);

/// The result of `body`; an exception is printed after the program's name and gives 1.
int run_program(const char* name, const std::function<int()>& body);

}  // namespace cohort::bench
