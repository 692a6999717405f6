#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/format.h"

namespace cohort {
namespace {
namespace fs = std::filesystem;

struct Module {
  std::set<std::string> may_include;
  bool any = false;
  bool libtorch = false;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    const auto begin = part.find_first_not_of(' ');
    const auto end = part.find_last_not_of(' ');
    parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return parts;
}

/// The table of docs/design/architecture.md: | module | what | may include | LibTorch |.
std::map<std::string, Module> read_table() {
  std::map<std::string, Module> modules;
  std::stringstream text(read_file(fs::path(COHORT_SOURCE_DIR) / "docs" / "design" / "architecture.md"));
  for (std::string line; std::getline(text, line);) {
    const auto cells = split(line, '|');
    if (cells.size() < 5 || cells[1] == "module" || cells[1].starts_with("-")) continue;
    Module module;
    module.libtorch = cells[4] == "yes";
    for (const std::string& name : split(cells[3], ',')) {
      if (name == "*") module.any = true;
      module.may_include.insert(name);
    }
    modules[cells[1]] = module;
  }
  return modules;
}

bool is_libtorch(const std::string& header) {
  return header.starts_with("torch/") || header.starts_with("ATen/") || header.starts_with("c10/") ||
         header.starts_with("caffe2/");
}

struct Include {
  fs::path file;
  std::string header;
};

std::vector<Include> includes_under(const fs::path& folder) {
  static const std::regex kInclude(R"(^\s*#\s*(?:include|import)\s*[<"]([^">]+)[">])");
  std::vector<Include> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    static const std::set<std::string> kSources = {".h", ".cpp", ".cu", ".cuh", ".mm"};
    if (!kSources.contains(extension.string())) continue;
    std::stringstream text(read_file(entry.path()));
    std::smatch match;
    for (std::string line; std::getline(text, line);)
      if (std::regex_search(line, match, kInclude)) found.push_back({entry.path(), match[1]});
  }
  return found;
}

TEST(Architecture, EveryIncludeFollowsAnArrowOfTheTable) {
  const auto modules = read_table();
  ASSERT_GE(modules.size(), 18u) << "docs/design/architecture.md has lost its table";
  for (const auto& entry : fs::directory_iterator(fs::path(COHORT_SOURCE_DIR) / "src")) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename();
    ASSERT_TRUE(modules.contains(name)) << "src/" << name << " is no module of docs/design/architecture.md";
    const Module& module = modules.at(name);
    for (const Include& include : includes_under(entry.path())) {
      const std::string target = include.header.substr(0, include.header.find('/'));
      if (modules.contains(target) && target != name && include.header.find('/') != std::string::npos)
        EXPECT_TRUE(module.any || module.may_include.contains(target))
            << include.file << " includes " << include.header << ": " << name << " may not include " << target;
      if (is_libtorch(include.header))
        EXPECT_TRUE(module.libtorch) << include.file << " includes " << include.header << ": " << name
                                     << " is no LibTorch module";
      if (include.file.extension() == ".cu")
        EXPECT_FALSE(is_libtorch(include.header)) << include.file << ": LibTorch headers cost a minute in a .cu file";
    }
  }
}

TEST(Architecture, TheArrowsHaveNoCycle) {
  const auto modules = read_table();
  std::set<std::string> done, open;
  const std::function<void(const std::string&)> visit = [&](const std::string& name) {
    if (done.contains(name) || !modules.contains(name)) return;
    ASSERT_TRUE(open.insert(name).second) << "a cycle goes through " << name;
    for (const std::string& next : modules.at(name).may_include) visit(next);
    open.erase(name);
    done.insert(name);
  };
  for (const auto& [name, module] : modules) visit(name);
  EXPECT_EQ(done.size(), modules.size());
}

/// Files that say a policy's name for another reason than to treat it otherwise.
bool may_name_a_policy(const std::string& file) {
  for (const char* one :
       {"data/images/",  // an image transform is called as the reference whose colours it draws
        "train/ema.",    // a way to count updates is called as the reference that counts so
        "cli/accelerate_file.cpp", "cli/evaluate.cpp", "cli/serve.cpp"})  // examples in texts for users
    if (file.starts_with(one)) return true;
  return false;
}

// What the program asks of a policy it asks of policies::Algorithm; one more is a folder and a word in CMakeLists.txt.
TEST(Architecture, NoSourceOutsideItsFolderNamesAPolicy) {
  const fs::path source = fs::path(COHORT_SOURCE_DIR) / "src";
  // Every policy acts, and MuJoCo calls activations so: of that name only what is the policy's own is looked for.
  const std::string plain = "act";
  std::string names, types;
  std::vector<std::string> words;
  for (const auto& entry : fs::directory_iterator(source / "policies")) {
    if (!entry.is_directory()) continue;
    std::string name = entry.path().filename();
    if (name != plain) {
      names += (names.empty() ? "" : "|") + name;
      words.push_back(name);
    }
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    types += (types.empty() ? "" : "|") + name;
    words.push_back(name);
  }
  for (const char* before : {"policies/", "model.", "train "}) words.push_back(before + plain);
  words.push_back(plain + "_");
  ASSERT_NE(names.find('|'), std::string::npos) << "src/policies has lost its folders";
  // An include, a literal, a function, a setting, a command, a type.
  const std::regex named("policies/(?:" + names + ")/|\"(?:" + names + ")[\"_.]|\\b(?:" + names +
                         ")_\\w|model\\.(?:" + names + ")\\b|train (?:" + names + ")\\b|\\b(?:" + types +
                         ")[A-Z]|policies/" + plain + "/|\\b" + plain +
                         "_(?:algorithm|policy|settings|losses|chunk)|model\\." + plain + "\\b|train " + plain + "\\b");
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    static const std::set<std::string> kSources = {".h", ".cpp", ".cu", ".cuh"};
    if (!kSources.contains(entry.path().extension().string())) continue;
    const fs::path file = entry.path().lexically_relative(source);
    const bool in_folder = *file.begin() == "policies" && std::distance(file.begin(), file.end()) > 2;
    if (in_folder || may_name_a_policy(file.string())) continue;
    std::stringstream text(read_file(entry.path()));
    std::size_t number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      // Few lines need the slow question.
      const auto is_in = [&](const std::string& word) { return line.find(word) != std::string::npos; };
      if (std::none_of(words.begin(), words.end(), is_in)) continue;
      EXPECT_FALSE(std::regex_search(line, named)) << "src/" << file.string() << ":" << number << ": " << line;
    }
  }
}

/// "file:line" of the lines of src/ that list what there is (CMake's, programs.def) and name a word, but for those of a folder.
std::vector<std::string> lists_naming(const std::string& name, const std::string& home,
                                      const std::string& within = "") {
  const fs::path source = fs::path(COHORT_SOURCE_DIR) / "src";
  const std::regex word("(?:^|[^A-Za-z0-9_-])" + name + "(?:[^A-Za-z0-9_-]|$)");
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(source / within)) {
    const std::string file = entry.path().lexically_relative(source).string();
    if ((entry.path().filename() != "CMakeLists.txt" && entry.path().extension() != ".def") || file.starts_with(home))
      continue;
    std::stringstream text(read_file(entry.path()));
    std::size_t number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      if (!line.starts_with("#") && std::regex_search(line, word)) found.push_back(format("{}:{}", file, number));
    }
  }
  return found;
}

/// The words of `set(NAME a b c)` in a CMakeLists.txt.
std::vector<std::string> words_of(const std::string& file, const std::string& name) {
  const std::string text = read_file(fs::path(COHORT_SOURCE_DIR) / "src" / file);
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("set\\(" + name + " ([^)]*)\\)"))) return {};
  return split(found[1], ' ');
}

/// Of `files` as lists_naming() gives them.
std::set<std::string> without_lines(const std::vector<std::string>& lines) {
  std::set<std::string> files;
  for (const std::string& line : lines) files.insert(line.substr(0, line.find(':')));
  return files;
}

// What is counted here is what one more edits; tests/cli/one_more_test.cpp shows that no more is needed.
TEST(Architecture, APolicyAFormatAndASubcommandAreEachNamedInOneLineOfOneOldFile) {
  const std::vector<std::string> policies = words_of("policies/CMakeLists.txt", "policies_folders");
  const std::vector<std::string> formats = words_of("data/CMakeLists.txt", "data_formats");
  ASSERT_GE(policies.size(), 4u);
  ASSERT_GE(formats.size(), 3u);
  for (const std::string& name : policies) {
    const auto lines = lists_naming(name, "policies/" + name + "/", "policies");
    EXPECT_EQ(lines.size(), 1u) << ::testing::PrintToString(lines) << " name " << name;
    EXPECT_TRUE(lists_naming("policies/" + name, "policies/").empty()) << name;
  }
  for (const std::string& name : formats) {
    const auto lines = lists_naming("(?:data/)?" + name + "(?:/[a-z_]*\\.cpp)?", "data/" + name + "/");
    EXPECT_EQ(lines.size(), 1u) << ::testing::PrintToString(lines) << " name " << name;
  }
  // A subcommand of `cohort` itself: its file in CMake's list. One that is a program of its own: also a line of programs.def.
  const fs::path cli = fs::path(COHORT_SOURCE_DIR) / "src" / "cli";
  static const std::regex kRegister(R"(const Register \w+\(\{)");
  static const std::regex kProgram(R"re(PROGRAM\("([a-z-]+)", "([a-z-]+)")re");
  int commands = 0;
  for (const auto& entry : fs::directory_iterator(cli)) {
    if (entry.path().extension() != ".cpp" || !std::regex_search(read_file(entry.path()), kRegister)) continue;
    ++commands;
    const std::string name = entry.path().filename();
    const auto lines = lists_naming(std::regex_replace(name, std::regex("\\."), "\\."), "no folder", "cli");
    EXPECT_EQ(lines.size(), 1u) << ::testing::PrintToString(lines) << " name " << name;
  }
  EXPECT_GE(commands, 10);
  const std::string programs = read_file(cli / "programs.def");
  for (std::sregex_iterator found(programs.begin(), programs.end(), kProgram), end; found != end; ++found) {
    const auto files = without_lines(lists_naming((*found)[2], "no folder"));
    EXPECT_EQ(files, (std::set<std::string>{"cli/CMakeLists.txt", "cli/programs.def"})) << (*found)[2];
  }
}

TEST(Architecture, NoSourceOutsideTasksNamesATask) {
  const fs::path source = fs::path(COHORT_SOURCE_DIR) / "src";
  // How a task's name is written in C++ or in its file.
  static const std::regex kName(
      R"re(register_task\(\{\.name = "([a-z-]+)"|"([A-Z][A-Za-z0-9]+-v[0-9])"|register_library_task\("([a-z-]+)\.yaml"\))re");
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(source / "tasks")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator found(text.begin(), text.end(), kName), end; found != end; ++found)
      names.insert((*found)[1].str() + (*found)[2].str() + (*found)[3].str());
  }
  for (const char* known : {"push-t", "reach", "stack", "Ant-v5", "AlohaInsertion-v0", "quadruped-velocity"})
    EXPECT_TRUE(names.contains(known)) << known << ": the test no longer finds the tasks' names";
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const std::string file = entry.path().lexically_relative(source).string();
    if ((entry.path().extension() != ".h" && entry.path().extension() != ".cpp") || file.starts_with("tasks/"))
      continue;
    std::stringstream text(read_file(entry.path()));
    std::size_t number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      line = line.substr(0, line.find("//"));  // examples stand in comments
      for (std::size_t begin = line.find('"'); begin != std::string::npos; begin = line.find('"', begin + 1)) {
        const std::size_t end = line.find('"', begin + 1);
        if (end == std::string::npos) break;
        EXPECT_FALSE(names.contains(line.substr(begin + 1, end - begin - 1)))
            << "src/" << file << ":" << number << " names a task: " << line;
        begin = end;
      }
    }
  }
}

/// Functions of src/ with more than 80 lines between their braces, and files with more than 500, as "file name" and "file", where
/// the text stands as scripts/format sets it: a function begins in the first column, one of a class two further.
std::set<std::string> long_parts() {
  const fs::path source = fs::path(COHORT_SOURCE_DIR) / "src";
  static const std::set<std::string> kSources = {".h", ".cpp", ".cu", ".cuh"};
  static const std::regex kName(R"(([~\w]+)\()");
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    if (!kSources.contains(entry.path().extension().string())) continue;
    const std::string file = entry.path().lexically_relative(source).string();
    std::stringstream text(read_file(entry.path()));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    if (lines.size() > 500) found.insert(file);
    for (const std::string indent : {"", "  "}) {
      std::size_t opened = 0, begun = 0;  // lines behind the brace, and where the signature begins
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string& line = lines[i];
        const bool here = line.starts_with(indent) && line.size() > indent.size() && line[indent.size()] != ' ';
        const char first = here ? line[indent.size()] : ' ';
        if (here && first != '}' && first != ')' && first != '#') begun = i;
        if (line.starts_with(indent) && line.ends_with("{") && begun + 1 > opened) opened = i + 1;
        if (line != indent + "}" || opened == 0) {
          if (first == '}') opened = 0;  // a class, a namespace, a value
          continue;
        }
        if (i - opened > 80) {
          std::string signature;
          for (std::size_t l = begun; l < opened; ++l) signature += lines[l];
          std::smatch name;
          if (std::regex_search(signature, name, kName)) found.insert(file + " " + name[1].str());
        }
        opened = 0;
      }
    }
  }
  return found;
}

TEST(Architecture, WhatIsLongSaysWhy) {
  const std::string page = "docs/design/decisions/long-functions.md";
  std::set<std::string> listed;
  std::stringstream text(read_file(fs::path(COHORT_SOURCE_DIR) / page));
  for (std::string line; std::getline(text, line);) {
    const auto cells = split(line, '|');
    if (cells.size() < 4 || !cells[1].starts_with("`")) continue;
    EXPECT_GT(cells[3].size(), 10u) << page << " gives no reason: " << line;
    listed.insert(cells[1].substr(1, cells[1].size() - 2) + (cells[2].empty() ? "" : " " + cells[2]));
  }
  const std::set<std::string> found = long_parts();
  EXPECT_GT(found.size(), 10u) << "the test no longer finds what is long";
  for (const std::string& part : found)
    EXPECT_TRUE(listed.contains(part)) << "src/" << part
                                       << " is long (a function over 80 lines, a file over 500): part it, or say in "
                                       << page << " why it stays";
  for (const std::string& part : listed)
    EXPECT_TRUE(found.contains(part)) << part << " is not long any more: take it out of " << page;
}

TEST(Architecture, EverySourceIncludesByModulePath) {
  for (const Include& include : includes_under(fs::path(COHORT_SOURCE_DIR) / "src"))
    EXPECT_FALSE(include.header.starts_with("../") || include.header.starts_with("./"))
        << include.file << " includes " << include.header;
}

/// The table of the kernels' folders in docs/design/architecture.md, from the first to the last of a step.
std::vector<std::string> read_kernel_folders() {
  std::vector<std::string> folders;
  std::stringstream text(read_file(fs::path(COHORT_SOURCE_DIR) / "docs" / "design" / "architecture.md"));
  for (std::string line; std::getline(text, line);) {
    const auto cells = split(line, '|');
    if (cells.size() == 3 && cells[1].size() > 2 && cells[1].starts_with('`'))
      folders.push_back(cells[1].substr(1, cells[1].size() - 2));
  }
  return folders;
}

TEST(Architecture, AFolderOfKernelsIncludesNoLaterPartOfTheStep) {
  const std::vector<std::string> folders = read_kernel_folders();
  ASSERT_GE(folders.size(), 6u) << "docs/design/architecture.md has lost its table of the kernels' folders";
  const fs::path kernels = fs::path(COHORT_SOURCE_DIR) / "src" / "sim" / "kernels";
  const auto place = [&](const fs::path& folder) {
    return std::find(folders.begin(), folders.end(), folder.string()) - folders.begin();
  };
  const auto last = static_cast<std::ptrdiff_t>(folders.size());
  std::set<std::string> seen;
  for (const Include& include : includes_under(kernels)) {
    const fs::path folder = include.file.parent_path().lexically_relative(kernels);
    const std::ptrdiff_t own = folder == "." ? last : place(folder);
    EXPECT_TRUE(folder == "." || own < last) << include.file << ": docs/design/architecture.md has no such folder";
    seen.insert(folder.string());
    const fs::path header = include.header;
    if (header.begin()->string() != "sim") continue;
    const fs::path target = header.parent_path().lexically_relative("sim/kernels");
    EXPECT_TRUE(include.header.starts_with("sim/kernels/") && (target == "." ? folder == "." : place(target) <= own))
        << include.file << " includes " << include.header << ", which is no earlier part of the step";
  }
  for (const std::string& folder : folders) EXPECT_TRUE(seen.contains(folder)) << folder << " does not exist";
}

/// Files outside data/<format>/ that know a format of robot data, and why.
bool may_know_format(const std::string& file, const std::string& format) {
  if (file == "data/lerobot/lerobot_info.h") return format == "rlds";    // both choose splits by one expression
  if (file.starts_with("record/")) return format == "rlds";              // pieces of a recording are RLDS shards
  if (file == "train/jobs/robomimic_sets.cpp") return format == "rlds";  // a foreign configuration of RLDS sets
  return file == "train/predict.cpp" && format == "hdf5";                // predictions are an HDF5 file
}

TEST(Architecture, AFormatOfRobotDataIsKnownInItsFolderOnly) {
  const fs::path source = fs::path(COHORT_SOURCE_DIR) / "src";
  const std::map<std::string, std::string> classes = {{"rlds", "Rlds"}, {"hdf5", "Hdf5"}, {"lerobot", "LeRobot"}};
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    const std::string file = entry.path().lexically_relative(source).string();
    const std::string text = read_file(entry.path());
    ++files;
    for (const auto& [format, name] : classes) {
      if (file.starts_with("data/" + format + "/")) continue;
      if (text.find("dynamic_cast<") != std::string::npos)
        EXPECT_FALSE(std::regex_search(text, std::regex("dynamic_cast<[^>]*" + name))) << file << " asks for " << name;
      if (text.find('"' + format + '"') != std::string::npos)
        EXPECT_FALSE(std::regex_search(text, std::regex("(format|to) *[=!]= *\"" + format + "\"")))
            << file << " compares with \"" << format << "\": give data::DataFormat what it asks";
      if (!may_know_format(file, format))
        EXPECT_EQ(text.find("#include \"data/" + format + "/"), std::string::npos) << file << " includes " << format;
    }
  }
  EXPECT_GT(files, 500);
}

}  // namespace
}  // namespace cohort
