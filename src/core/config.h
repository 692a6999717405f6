/// Configuration: plain settings structs, bound field by field to names, filled from JSON and from key.path=value
/// overrides.
///
///   struct LoaderSettings { int workers = 2; };
///   void describe(config::Fields& fields, LoaderSettings& s) {
///     fields.add("workers", s.workers, "threads that prepare batches");
///   }
///   ...
///   config::Fields fields;
///   fields.section("loader", [&] { describe(fields, settings.loader); });
///   fields.apply_json(json, "c.json");
///   fields.apply_override("loader.workers=4");
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::config {

using Json = nlohmann::ordered_json;

/// The fields of a tree of settings structs. Holds references: the structs must outlive it.
class Fields {
 public:
  Fields();
  ~Fields();
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  /// Binds a field under the current section. `doc` says unit and consequence; it appears in --help.
  void add(const std::string& name, bool& value, const std::string& doc);
  void add(const std::string& name, int& value, const std::string& doc);
  void add(const std::string& name, std::int64_t& value, const std::string& doc);
  void add(const std::string& name, std::uint64_t& value, const std::string& doc);
  void add(const std::string& name, double& value, const std::string& doc);
  void add(const std::string& name, std::string& value, const std::string& doc);
  void add(const std::string& name, std::vector<int>& value, const std::string& doc);
  void add(const std::string& name, std::vector<double>& value, const std::string& doc);
  void add(const std::string& name, std::vector<std::string>& value, const std::string& doc);
  void add(const std::string& name, std::optional<std::int64_t>& value, const std::string& doc);
  void add(const std::string& name, std::optional<double>& value, const std::string& doc);
  /// A text field that takes one of `choices` only.
  void add_choice(const std::string& name, std::string& value, std::vector<std::string> choices,
                  const std::string& doc);

  /// Fields added inside `body` get the path "<name>.".
  void section(const std::string& name, const std::function<void()>& body);

  /// Another path for an existing one, e.g. alias("train.lr", "optimizer.lr").
  void alias(const std::string& from, const std::string& to);

  /// Sets fields from a JSON object (nested as the sections are). `source` names the file in messages. Throws Error for
  /// an unknown key (with the nearest known one) or a value of the wrong type; then nothing has been changed.
  void apply_json(const Json& json, const std::string& source);
  /// Reads and applies a JSON file (comments allowed).
  void apply_file(const std::string& path);

  /// Sets one field from "path=value". Lists are written [1,2] or 1,2, of texts [a,b] or a,b. Throws Error as
  /// apply_json does.
  void apply_override(std::string_view assignment);

  /// All fields with their present values, nested.
  Json to_json() const;
  /// Those whose value is another than at the time of binding, nested.
  Json changed() const;

  /// One line per field: path, default at the time of binding, doc. For --help.
  std::string help() const;

  /// Whether there is a field, or an alias, of this path.
  bool has(const std::string& path) const;

  /// True when apply_json or apply_override has set this path.
  bool was_set(const std::string& path) const;
  /// True when apply_override has set this path: somebody wants this value now, unlike one from a saved configuration.
  bool was_overridden(const std::string& path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The candidate with the smallest edit distance to `word`, or "" when none is near: distance above 2 and above a third
/// of its length, or nothing of the word kept (distance of its length or more).
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// True for "a.b=c", the form of an override on a command line.
bool is_override(std::string_view argument);

}  // namespace cohort::config
