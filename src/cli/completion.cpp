// `cohort completion`: what a shell needs to complete subcommands, jobs, flags and settings. The words behind a
// subcommand are those that its own --help names, so that there is no second list of them.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <set>

#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

constexpr const char* kBash = R"SHELL(# bash: put `source <(cohort completion bash)` into ~/.bashrc
_cohort() {
  local current=${COMP_WORDS[COMP_CWORD]}
  local words
  words=$("${COMP_WORDS[0]}" completion words "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o filenames -F _cohort cohort
)SHELL";

constexpr const char* kZsh = R"SHELL(# zsh: put `source <(cohort completion zsh)` into ~/.zshrc, behind compinit
_cohort() {
  local -a candidates
  candidates=(${(f)"$("${words[1]}" completion words "${(@)words[2,CURRENT-1]}" 2>/dev/null)"})
  compadd -S '' -- ${(M)candidates:#*=}
  compadd -- ${candidates:#*=}
  _files
}
compdef _cohort cohort
)SHELL";

/// What `cohort WORDS --help` prints; empty where that is no command.
std::string help_of(const std::vector<std::string>& words) {
  std::string command = "'" + own_path() + "'";
  for (const std::string& word : words) {
    if (word.find('\'') != std::string::npos) return "";
    command += " '" + word + "'";
  }
  // Of a training the plain help names the basic settings only.
  const char* all = words.size() > 1 && words.front() == "train" ? " all" : "";
  std::FILE* pipe = ::popen((command + " --help" + all + " 2>/dev/null </dev/null").c_str(), "r");
  if (!pipe) return "";
  std::string text;
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
  return ::pclose(pipe) == 0 ? text : "";
}

/// Flags ("--steps"), settings ("  train.lr = ...": "train.lr=") and the first words of indented lists.
std::set<std::string> words_in(const std::string& help) {
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_'; };
  std::set<std::string> found;
  for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
    if (at > 0 && (is_name(help[at - 1]) || help[at - 1] == '`')) continue;
    std::size_t end = at + 2;
    while (end < help.size() && is_name(help[end])) ++end;
    if (end > at + 3) found.insert(help.substr(at, end - at));
  }
  for (std::size_t begin = 0; begin < help.size();) {
    const std::size_t end = std::min(help.find('\n', begin), help.size());
    const std::string line = help.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with("  ") || line.size() < 4 || !std::islower(static_cast<unsigned char>(line[2]))) continue;
    const std::size_t stop = line.find(' ', 2);
    if (stop == std::string::npos) continue;
    const std::string word = line.substr(2, stop - 2);
    if (!std::all_of(word.begin(), word.end(), [&](char c) { return is_name(c) || c == '.'; })) continue;
    if (line.compare(stop, 3, " = ") == 0)
      found.insert(word + "=");
    else if (line.compare(stop, 2, "  ") == 0)
      found.insert(word);
  }
  return found;
}

/// What may follow these words.
void print_words(std::vector<std::string> words) {
  std::erase_if(words,
                [](const std::string& word) { return word.starts_with("-") || word.find('=') != std::string::npos; });
  if (words.empty()) {
    for (const Subcommand& subcommand : subcommands()) std::puts(subcommand.name.c_str());
    std::puts("help\nversion");
    return;
  }
  // The longest beginning that is a command of its own: behind it come files and values.
  std::string help;
  for (; !words.empty() && help.empty(); words.pop_back()) help = help_of(words);
  for (const std::string& word : words_in(help)) std::puts(word.c_str());
}

int run_completion(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments.front();
  if (what == "bash")
    std::fputs(kBash, stdout);
  else if (what == "zsh")
    std::fputs(kZsh, stdout);
  else if (what == "words")
    print_words({arguments.begin() + 1, arguments.end()});
  else if (what == "--help" || what == "-h")
    std::puts(
        "usage: cohort completion bash|zsh\n\nPrints a script; `source <(cohort completion bash)` takes it into this "
        "shell.");
  else
    throw UsageError(format("completion: for which shell? bash or zsh, not '{}'", what));
  return 0;
}

const Register kCompletion({"completion", "completion of subcommands, flags and settings in bash and zsh",
                            run_completion, ""});

}  // namespace
}  // namespace cohort::cli
