#include "data/hdf5/hdf5_episodes.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "data/episode_cache.h"
#include "data/episode_notes.h"
#include "data/hdf5/array_cache.h"
#include "data/hdf5/episode_cuts.h"
#include "data/hdf5/episode_layout.h"
#include "data/hdf5/hdf5_episode.h"
#include "data/hdf5/metadata.h"
#include "data/local_path.h"
#include "data/stored_pictures.h"
#include "formats/crc32c.h"

namespace cohort::data {
namespace fs = std::filesystem;

void describe(config::Fields& fields, Hdf5Settings& settings) {
  fields.add("filter_key", settings.filter_key, "of robomimic files: only the demos that mask/<filter_key> names");
  fields.add("filter_key_optional", settings.filter_key_optional, "a file without that mask gives all its demos");
  fields.add_choice("on_corrupt", settings.on_corrupt, {"error", "skip"},
                    "what a damaged episode does: end the work, or be left out, counted and named");
  fields.add("cache_bytes", settings.cache_bytes, "bytes of opened episodes that are kept for reuse");
  fields.add("threads", settings.threads, "for on_corrupt=skip; 0: one per core");
  fields.add("index_cache", settings.index_cache, "where it is kept what is damaged: auto, never, or a folder");
}

namespace {

constexpr const char* kOtherTypes =
    "texts are not read from HDF5, nor compressed pictures of varying length: store uint8 (height, width, 3), or fill "
    "the "
    "JPEGs up with zeros to one length";

/// demo_2 stands before demo_10.
bool by_number(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& name) {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    std::int64_t value = -1;
    std::from_chars(name.data() + digits, name.data() + name.size(), value);
    return std::pair(name.substr(0, digits), value);
  };
  return number(a) < number(b);
}

/// Throws Error for a link of such a name that leads nowhere: what it stands for would be missing.
bool is_hdf5_file(const fs::directory_entry& entry) {
  const std::string extension = entry.path().extension().string();
  if (extension != ".hdf5" && extension != ".h5") return false;
  std::error_code error;
  const fs::file_status status = entry.status(error);
  if (!fs::exists(status) && entry.path().filename().native().starts_with('.')) return false;  // an editor's lock
  COHORT_THROW_UNLESS(fs::exists(status),
                      "{}: is a link that leads nowhere ({}): remove it, or let it point to the file",
                      entry.path().string(), error.message());
  return fs::is_regular_file(status);
}

/// Groups directly below `parent` ("", "/train") whose names are of one kind, a text that all have and a number, and of
/// which one holds actions: the most of a kind. Names with the parent's.
std::vector<std::string> acting_groups(const Hdf5Metadata& file, const std::string& parent) {
  std::map<std::string, std::vector<std::string>> kinds;
  for (const std::string& group : file.groups(parent.empty() ? "/" : parent))
    if (const std::size_t digits = group.find_last_not_of("0123456789") + 1; digits < group.size())
      kinds[group.substr(0, digits)].push_back((parent + "/" + group).substr(1));
  std::vector<std::string> found;
  for (auto& [kind, groups] : kinds) {
    const bool acts = std::any_of(groups.begin(), groups.end(), [&](const std::string& group) {
      const Hdf5Shapes shapes = file.shapes("/" + group);
      return std::any_of(shapes.begin(), shapes.end(), [](const auto& array) { return is_action(array.first); });
    });
    if (acts && groups.size() > found.size()) found = std::move(groups);
  }
  return found;
}

/// Groups at the root of a file that has no group data: traj_0, traj_1, ... as simulators write them (ManiSkill), or
/// demo_0, episode_0, 0; or one group further down (train/ep0, valid/ep0). They are episodes where one of them holds
/// actions and none lie at the root itself; a camera's cam_0 and cam_1 are parts of one episode.
std::vector<std::string> root_episodes(const Hdf5Metadata& file) {
  for (const std::string& array : file.data_sets("/"))
    if (is_action(array)) return {};
  std::vector<std::string> found = acting_groups(file, "");
  if (!found.empty()) return found;
  for (const std::string& parent : file.groups("/")) {
    if (!file.has("/" + parent)) continue;  // a link that leads nowhere
    const std::vector<std::string> below = acting_groups(file, "/" + parent);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (is_hdf5_file(entry)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  COHORT_THROW_UNLESS(!files.empty(), "{} holds no .hdf5 or .h5 file", folder.string());
  return files;
}

}  // namespace

bool holds_hdf5_files(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (is_hdf5_file(entry)) return true;
  return false;
}

struct Hdf5Episodes::Impl final : Hdf5EpisodeDetails {
  struct File {
    fs::path path;
    Hdf5Attributes metadata;  // from the manifest
    std::weak_ptr<const MappedFile> mapping;
  };
  struct Place {
    std::size_t file;
    std::string group;
    std::int64_t steps;
    std::size_t layout = 0;   // of `layouts`
    std::int64_t arrays = 0;  // a number for file and group
    std::int64_t first = 0;   // step of the group
    std::int64_t of = 0;      // steps of the group

    bool is_part() const { return steps < of; }
    std::string part() const { return is_part() ? format("[{}:{}]", first, first + steps) : ""; }
  };
  /// How many demos a mask chose.
  struct Mask {
    std::size_t files = 0, chosen = 0, demos = 0, files_without = 0;
    // Where all are taken: how many there are, how many the split auto would take, and whether a file has mask/train.
    std::size_t all = 0, by_auto = 0;
    bool has_train = false;
  };
  /// Files whose arrays hold the steps of several episodes, or may do so, and what said where these end.
  struct Cut {
    std::size_t files = 0, episodes = 0, of_one_step = 0;
  };

  Impl(const fs::path& path, const Hdf5Settings& wanted)
      : settings(wanted),
        root(fs::is_directory(path) ? path : path.parent_path()),
        name(path.string()),
        places(wanted.cache_bytes / 4),
        cache(wanted.cache_bytes - wanted.cache_bytes / 4) {
    find_files(path);
    for (std::size_t f = 0; f < files.size(); ++f) skipping(files[f].path.string(), [&] { list_episodes(f); });
    check_that_some_are_left();
    if (settings.on_corrupt == "skip")
      find_usual_fields();
    else
      find_fields(episodes.front(), episodes.back());
    layouts.clear();
    used = std::vector<std::atomic<bool>>(fields.size());
  }

  void check_that_some_are_left() const {
    COHORT_THROW_UNLESS(!episodes.empty(), "{} holds no sound episode{}", name,
                        skipped.empty() ? "" : "; the first fault: " + skipped.front());
  }

  template <class Body>
  void skipping(const std::string& where, const Body& body) {
    if (settings.on_corrupt != "skip") return body();
    try {
      body();
    } catch (const Error& e) {
      const std::string what = e.what();
      skipped.push_back(what.starts_with(where) ? what : where + ": " + what);
    }
  }

  /// What a wrong mask's name may have been meant as.
  std::string about_slices() const {
    return settings.filter_key.find_first_of("[+") == std::string::npos
               ? ""
               : "; slices such as train[:50%] are for RLDS only, an HDF5 set takes a mask's name, or all";
  }

  void find_files(const fs::path& path) {
    need_local_path(path);
    if (fs::is_directory(path)) {
      for (const fs::path& file : files_below(path)) files.push_back({file, {}, {}});
    } else if (path.extension() == ".json") {
      read_manifest(path);
    } else {
      files.push_back({path, {}, {}});
    }
  }

  void read_manifest(const fs::path& path) {
    const nlohmann::json list = try_json<nlohmann::json>(read_file(path));
    COHORT_THROW_UNLESS(list.is_array() && !list.empty(), "{} is no JSON list of trajectories", path.string());
    for (const nlohmann::json& item : list) {
      File file;
      const nlohmann::json* where = item.is_object() && item.contains("path") ? &item["path"] : &item;
      COHORT_THROW_UNLESS(where->is_string(), "{}: entry {} names no path", path.string(), files.size());
      file.path = path.parent_path() / where->get<std::string>();
      if (item.is_object())
        for (const auto& [key, value] : item.items())
          if (key != "path" && value.is_string()) file.metadata.emplace_back(key, value.get<std::string>());
      files.push_back(std::move(file));
    }
  }

  void list_episodes(std::size_t f) {
    const Hdf5Metadata file(files[f].path);
    const std::string where = files[f].path.string();
    const bool grouped = file.has("/data");
    if (grouped) {
      const std::vector<std::string> arrays = file.data_sets("/data");
      if (std::any_of(arrays.begin(), arrays.end(), is_action)) return add_flat(f, file, "/data");
    }
    std::vector<std::string> demos = grouped ? file.groups("/data") : root_episodes(file);
    const std::string above = grouped ? "/data/" : "/";
    if (!grouped && demos.empty()) return add_flat(f, file, "/");
    const std::string mask = "/mask/" + settings.filter_key;
    if (!settings.filter_key.empty() && settings.filter_key_optional && !file.has(mask)) {
      ++masked.files_without;
    } else if (!settings.filter_key.empty()) {
      std::string masks;
      if (file.has("/mask"))
        for (const std::string& key : file.data_sets("/mask")) masks += (masks.empty() ? "" : ", ") + key;
      COHORT_THROW_UNLESS(file.has(mask), "{} has no {}{}; {}{}", where, mask,
                          masks.empty() ? ", and no other masks" : ": its masks are " + masks,
                          "name one that it has, or all for all demos (data.splits, validation.splits, of cohort data "
                          "--split, in robomimic's configuration hdf5_filter_key)",
                          about_slices());
      std::vector<std::string> chosen = file.texts(mask);
      for (const std::string& demo : chosen)
        COHORT_THROW_UNLESS(std::find(demos.begin(), demos.end(), demo) != demos.end(),
                            "{}: {} names {}, which is not in the file", where, mask, demo);
      std::sort(chosen.begin(), chosen.end());
      const auto twice = std::adjacent_find(chosen.begin(), chosen.end());
      COHORT_THROW_UNLESS(twice == chosen.end(),
                          "{}: {} names {} more than once: write a mask that names every demo once", where, mask,
                          *twice);
      COHORT_THROW_UNLESS(
          !chosen.empty(),
          "{}: {} names no demo; the file has {}: choose all with data.splits=all (cohort "
          "data --split all, in robomimic's configuration hdf5_filter_key=null), or write the mask again",
          where, mask, demos.size());
      ++masked.files;
      masked.chosen += chosen.size();
      masked.demos += demos.size();
      demos = chosen;
    } else {
      const bool has_train = file.has("/mask/train");
      masked.has_train |= has_train;
      masked.all += demos.size();
      masked.by_auto += has_train ? file.texts("/mask/train").size() : demos.size();
    }
    std::sort(demos.begin(), demos.end(), by_number);
    COHORT_THROW_UNLESS(!demos.empty(), "{}: the group data holds no demos", where);
    for (const std::string& demo : demos)
      skipping(where + ": " + above + demo, [&] { add_episode(f, file, above + demo); });
  }

  /// A group whose arrays hold the steps of one episode, or of several one behind the other.
  void add_flat(std::size_t f, const Hdf5Metadata& file, const std::string& group) {
    const std::string where = files[f].path.string();
    COHORT_THROW_UNLESS(settings.filter_key.empty() || settings.filter_key_optional,
                        "{} has no group data with demos, so the mask {} selects nothing{}", where, settings.filter_key,
                        about_slices());
    const Hdf5Shapes all = file.shapes("/"), shapes = group == "/" ? all : file.shapes(group);
    const std::int64_t steps = steps_of_demo(shapes, file.attributes(group));
    const Hdf5Cuts cuts = steps > 0 ? find_cuts(file, *map(f), all, group, steps) : Hdf5Cuts{};
    add_episode(f, file, group, cuts.lists);
    const Place whole = episodes.back();
    episodes.pop_back();
    Cut& cut = cut_by[cuts.how];
    ++cut.files;
    cut.episodes += cuts.ends.size();
    std::int64_t begin = 0;
    for (const std::int64_t end : cuts.ends) {
      episodes.push_back(whole);
      episodes.back().first = begin;
      episodes.back().steps = end - begin;
      cut.of_one_step += end - begin == 1 && cuts.ends.size() > 1;
      begin = end;
    }
  }

  /// What is said of files that are cut, and of one that may have to be.
  std::string how_cut() const {
    std::string text;
    for (const auto& [how, cut] : cut_by) {
      if (cut.episodes == cut.files && files.size() > 1) continue;
      text += format("{}{} {}: {}", text.empty() ? "" : "; ", cut.episodes, cut.episodes == 1 ? "episode" : "episodes",
                     how);
      if (cut.of_one_step > 0) text += format(" ({} of one step)", cut.of_one_step);
    }
    return text;
  }

  /// `lists`: arrays, by their path in the file, that say something of the group and are none of its steps'.
  void add_episode(std::size_t f, const Hdf5Metadata& file, const std::string& group,
                   const std::vector<std::string>& lists = {}) {
    Hdf5Shapes shapes = file.shapes(group);
    std::erase_if(shapes, [&](const auto& array) {
      const std::string path = (group == "/" ? "/" : group + "/") + array.first;
      return std::find(lists.begin(), lists.end(), path) != lists.end();
    });
    const std::int64_t steps = steps_of_demo(shapes, file.attributes(group));
    COHORT_THROW_UNLESS(steps > 0, "{}: {} is an empty episode; remove it, or {} to go on without it",
                        files[f].path.string(), group, kSkipDamaged);
    const std::size_t layout = settings.on_corrupt == "skip"
                                   ? layouts.try_emplace(text_of_layout(shapes, steps), layouts.size()).first->second
                                   : 0;
    episodes.push_back({f, group, steps, layout, groups++, 0, steps});
    rows.add(shapes, steps, location(episodes.back()));
  }

  /// The fields are those of the first of the episodes that most are like. One that cannot be described is left out.
  void find_usual_fields() {
    for (;; check_that_some_are_left()) {
      std::vector<std::int64_t> alike(layouts.size(), 0);
      for (const Place& place : episodes) ++alike[place.layout];
      // Of two that are as frequent, the one with fewer fields leaves fewer episodes out.
      const std::pair<const std::string, std::size_t>* usual = nullptr;
      for (const auto& layout : layouts) {
        const auto more = [&] { return alike[layout.second] - alike[usual->second]; };
        if (!usual || more() > 0 || (more() == 0 && layout.first.size() < usual->first.size())) usual = &layout;
      }
      const auto first = std::find_if(episodes.begin(), episodes.end(),
                                      [&](const Place& place) { return place.layout == usual->second; });
      const std::size_t faults = skipped.size();
      skipping(location(*first), [&] { find_fields(*first, *first); });
      if (skipped.size() == faults) return;
      episodes.erase(first);
    }
  }

  /// A field has a row per step in both episodes: in one of them an array may have as many rows by chance. Where one of
  /// them has one more, it must have a row per step or one more in all others, too.
  void find_fields(const Place& first, const Place& last) {
    fields.clear();
    std::map<std::string, int> exact, close;
    for (const Place* place : {&first, &last})
      for (const auto& [key, shape] : Hdf5Metadata(files[place->file].path).shapes(place->group)) {
        exact[key] += shape[0] == place->of;
        close[key] += has_row_per_step(shape[0], place->of);
      }
    for (const auto& [key, array] : Hdf5Metadata(files[first.file].path).arrays(first.group))
      if (exact[key] == 2 || (close[key] == 2 && rows.fits_everywhere(key)))
        fields.push_back(make_step_field(key, array));
    const std::vector<std::string> others = left_out();
    COHORT_THROW_UNLESS(!fields.empty(), "{} has no array of numbers with a row per step{}", location(first),
                        others.empty() ? "" : ": " + others.front());
    for (const auto& [key, text] : all_metadata(Hdf5Metadata(files[first.file].path), first))
      metadata_names.push_back(key);
  }

  /// Reads everything once: which episodes are damaged is kept in `notes`.
  void leave_damaged_out(const EpisodeNotes& notes) {
    const std::vector<std::string> faults = notes.faults(
        static_cast<std::int64_t>(episodes.size()), settings.threads > 0 ? settings.threads : available_cores(),
        [&](std::int64_t e) -> std::string {
          const Place& place = episodes[static_cast<std::size_t>(e)];
          try {
            check_episode(place);
            check_pictures(e);
          } catch (const Error& error) {
            const std::string what = error.what();
            return what.starts_with(files[place.file].path.string()) ? what : location(place) + ": " + what;
          }
          return "";
        });
    std::vector<Place> kept;
    for (std::size_t e = 0; e < episodes.size(); ++e) {
      if (faults[e].empty())
        kept.push_back(std::move(episodes[e]));
      else
        skipped.push_back(faults[e]);
    }
    episodes = std::move(kept);
    check_that_some_are_left();
  }

  void check_episode(const Place& place) const {
    const Hdf5Metadata file(files[place.file].path);
    const auto mapping = map(place.file);
    std::string scratch;
    for (const StepField& field : fields) {
      const Hdf5Array array = find_field_array(file, place.group, location(place), place.of, field);
      check_rows(*mapping, array, place.first, place.steps, scratch);
      release_pages(*mapping, array, place.first, place.steps);
    }
  }

  /// Those that are stored compressed.
  void check_pictures(std::int64_t e) const {
    std::shared_ptr<const Hdf5Episode> episode;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].kind != StepKind::kImage || fields[f].shape[0] >= 0) continue;
      if (!episode) episode = make(e);
      for (std::int64_t step = 0; step < episode->steps(); ++step) check_stored_picture(*episode, fields[f], f, step);
    }
  }

  std::vector<std::string> left_out() const {
    std::vector<std::string> lines;
    for (const std::string& array : rows.names())
      if (std::none_of(fields.begin(), fields.end(), [&](const StepField& field) { return field.name == array; }))
        lines.push_back(format("{}: {}", array, rows.why_not(array)));
    if (!episodes.empty()) list_other_types(episodes.front(), "", lines);
    return lines;
  }

  /// What holds no numbers below a group of the episode: compressed pictures of varying length, texts.
  void list_other_types(const Place& place, const std::string& prefix, std::vector<std::string>& lines) const {
    const Hdf5Metadata file(files[place.file].path);
    const std::string front = (place.group == "/" ? "/" : place.group + "/") + prefix;
    const std::string group = front.size() > 1 && front.ends_with('/') ? front.substr(0, front.size() - 1) : front;
    const Hdf5Shapes shapes = file.shapes(place.group);
    for (const std::string& array : file.data_sets(group)) {
      const std::string path = prefix + array;
      const auto is_it = [&](const auto& shape) { return shape.first == path; };
      if (std::none_of(shapes.begin(), shapes.end(), is_it))
        lines.push_back(format("{}: no array of numbers; {}", path, kOtherTypes));
    }
    constexpr std::ptrdiff_t kDeepest = 8;
    if (std::count(prefix.begin(), prefix.end(), '/') >= kDeepest) return;
    for (const std::string& below : file.groups(group))
      if (file.has(front + below) && front + below != "/mask") list_other_types(place, prefix + below + "/", lines);
  }

  std::string why_no_field(const std::string& wanted) const {
    if (const std::string why = rows.why_not(wanted); !why.empty()) return why;
    if (std::any_of(fields.begin(), fields.end(),
                    [&](const StepField& field) { return field.name.starts_with(wanted + "/"); }))
      return "it is a group: name an array in it";
    const Place& first = episodes.front();
    const std::string path = (first.group == "/" ? "/" : first.group + "/") + wanted;
    if (wanted.empty() || !Hdf5Metadata(files[first.file].path).has(path)) return "";
    return format("{} is no array of numbers with a row per step; {}",
                  files[first.file].path.string() + (first.group == "/" ? "" : ": " + first.group) + "/" + wanted,
                  kOtherTypes);
  }

  Hdf5Attributes all_metadata(const Hdf5Metadata& file, const Place& place) const {
    Hdf5Attributes all = files[place.file].metadata;
    const auto add = [&](const Hdf5Attributes& attributes, const std::string& prefix) {
      for (const auto& [key, text] : attributes) {
        all.emplace_back(prefix + key, text);
        const char* told_under = key == "problem_info" ? "language_instruction" : key == "ep_meta" ? "lang" : nullptr;
        if (told_under == nullptr) continue;
        if (std::string told = told_in(text, told_under); !told.empty())
          all.emplace_back("language_instruction", std::move(told));
      }
    };
    add(file.attributes(place.group), "");
    if (place.group.starts_with("/data/"))
      add(file.attributes("/data"), "data/");
    else if (place.group != "/")
      add(file.attributes("/"), "file/");
    if (place.group == "/") add_told(all, files[place.file].path);
    if (std::none_of(all.begin(), all.end(), [](const auto& attribute) { return attribute.first == "file_path"; }))
      all.emplace_back("file_path", files[place.file].path.string());
    return all;
  }

  /// What LIBERO's `problem_info` (language_instruction) and RoboCasa's `ep_meta` (lang) say: a text, or its words or
  /// letters one by one. Empty where they say nothing.
  static std::string told_in(const std::string& text, const char* key) {
    const nlohmann::json info = try_json<nlohmann::json>(text);
    if (!info.is_object() || !info.contains(key)) return "";
    const nlohmann::json& said = info[key];
    if (said.is_string()) return said.get<std::string>();
    const auto is_text = [](const nlohmann::json& part) { return part.is_string(); };
    if (!said.is_array() || !std::all_of(said.begin(), said.end(), is_text)) return "";
    const auto parts = said.get<std::vector<std::string>>();
    const bool letters = std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.size() == 1; });
    return join(parts, letters ? "" : " ");
  }

  /// What the list beside an episode of RDT's data says: its instruction, as it was given.
  static void add_told(Hdf5Attributes& all, const fs::path& file) {
    std::error_code error;
    const fs::path list = file.parent_path() / "expanded_instruction_gpt-4-turbo.json";
    const auto known = [](const auto& attribute) { return attribute.first == "language_instruction"; };
    if (!fs::is_regular_file(list, error) || std::any_of(all.begin(), all.end(), known)) return;
    const nlohmann::json json = try_json<nlohmann::json>(read_file(list));
    const nlohmann::json* told = json.is_object() && json.contains("instruction") ? &json["instruction"] : nullptr;
    if (told != nullptr && told->is_array() && !told->empty()) told = &told->front();
    COHORT_THROW_UNLESS(told != nullptr && told->is_string(), "{}: has no text instruction", list.string());
    all.emplace_back("language_instruction", told->get<std::string>());
  }

  std::string location(const Place& place) const {
    const std::string file = files[place.file].path.string() + (place.group == "/" ? "" : ": " + place.group);
    return place.is_part() ? format("{}: steps {} to {}", file, place.first, place.first + place.steps - 1) : file;
  }

  std::shared_ptr<const MappedFile> map(std::size_t f) const {
    std::lock_guard lock(mutex);
    if (auto mapping = files[f].mapping.lock()) return mapping;
    auto mapping = std::make_shared<const MappedFile>(files[f].path);
    files[f].mapping = mapping;
    return mapping;
  }

  std::shared_ptr<const Hdf5Episode> make(std::int64_t episode) const {
    const Place& place = episodes[static_cast<std::size_t>(episode)];
    return std::make_shared<const Hdf5Episode>(*this, episode, map(place.file), location(place),
                                               Hdf5Rows{place.first, place.steps}, fields);
  }

  std::shared_ptr<const Hdf5Array> array(std::int64_t episode, std::size_t field) const override {
    const Place& place = episodes[static_cast<std::size_t>(episode)];
    const auto key = [&](std::size_t f) {
      return place.arrays * static_cast<std::int64_t>(fields.size()) + static_cast<std::int64_t>(f);
    };
    if (auto known = places.find(key(field))) return known;
    const Hdf5Metadata file(files[place.file].path);
    const auto look_up = [&](std::size_t f) {
      auto found =
          std::make_shared<const Hdf5Array>(find_field_array(file, place.group, location(place), place.of, fields[f]));
      places.keep(key(f), found);
      return found;
    };
    auto found = look_up(field);
    // While the file is open: what was read of other episodes will be read of this one too.
    used[field].store(true, std::memory_order_relaxed);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (f == field || !used[f].load(std::memory_order_relaxed) || places.find(key(f))) continue;
      try {
        look_up(f);
      } catch (const Error&) {  // said when that field is read
      }
    }
    return found;
  }

  Hdf5Attributes metadata(std::int64_t episode) const override {
    const Place& place = episodes[static_cast<std::size_t>(episode)];
    return all_metadata(Hdf5Metadata(files[place.file].path), place);
  }

  void count_bytes(std::int64_t episode, std::int64_t bytes) const override { cache.grow(episode, bytes); }

  Hdf5Settings settings;
  fs::path root;  // of the files' names
  std::string name;
  mutable std::mutex mutex;  // of the mappings
  mutable std::vector<File> files;
  std::vector<Place> episodes;
  std::int64_t groups = 0;  // that hold them
  std::map<std::string, Cut> cut_by;
  std::map<std::string, std::size_t> layouts;  // while the fields are looked for, with on_corrupt=skip
  Hdf5RowCounts rows;
  Mask masked;
  std::vector<StepField> fields;
  std::vector<std::string> metadata_names, skipped;
  mutable std::vector<std::atomic<bool>> used;  // fields that were read
  mutable Hdf5ArrayCache places;
  mutable EpisodeCache cache;
};

Hdf5Episodes::Hdf5Episodes(const fs::path& path, const Hdf5Settings& settings)
    : impl_(std::make_unique<Impl>(path, settings)) {
  if (settings.on_corrupt == "skip") impl_->leave_damaged_out(EpisodeNotes(*this, path, settings.index_cache));
}
Hdf5Episodes::~Hdf5Episodes() = default;

std::string Hdf5Episodes::episode_name(std::int64_t episode) const {
  const Impl::Place& place = impl_->episodes[static_cast<std::size_t>(episode)];
  return (place.group == "/" ? impl_->files[place.file].path.string() : place.group.substr(1)) + place.part();
}
namespace {

/// Data sets below a group that are none of the source's fields, with the reason.
void list_unread(const Hdf5Metadata& file, const std::string& group, const std::string& prefix,
                 const EpisodeSource& source,
                 const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes,
                 std::vector<std::string>& left_out) {
  const auto below = [&](const std::string& name) { return (group == "/" ? "" : group) + "/" + name; };
  for (const std::string& name : file.data_sets(group)) {
    const std::string path = prefix + name;
    if (std::any_of(source.fields().begin(), source.fields().end(), [&](const StepField& f) { return f.name == path; }))
      continue;
    const auto found = std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == path; });
    left_out.push_back(found == shapes.end()
                           ? path + ": no array of numbers"
                           : format("{}: its {} rows are not one per step of every episode", path, found->second[0]));
  }
  constexpr std::ptrdiff_t kDeepest = 8;
  if (std::count(prefix.begin(), prefix.end(), '/') >= kDeepest) return;
  for (const std::string& name : file.groups(group))
    list_unread(file, below(name), prefix + name + "/", source, shapes, left_out);
}

}  // namespace

std::vector<MetadataType> Hdf5Episodes::metadata_types(std::int64_t episode, std::vector<std::string>& left_out) const {
  std::vector<MetadataType> metadata = EpisodeSource::metadata_types(episode, left_out);
  const Impl::Place& at = impl_->episodes[static_cast<std::size_t>(episode)];
  const std::string& group = at.group;
  const Hdf5Metadata file(impl_->files[at.file].path);
  const auto add = [&](const std::string& object, const std::string& prefix) {
    for (const auto& [name, type] : file.attribute_types(object))
      if (type.empty())
        left_out.push_back(format("the attribute {}{}: neither a text nor one number", prefix, name));
      else if (!set_metadata_type(metadata, prefix + name, type))
        left_out.push_back(format("the attribute {}{}: the first episode of the set lacks it", prefix, name));
  };
  add(group, "");
  if (group.starts_with("/data/"))
    add("/data", "data/");
  else if (group != "/")
    add("/", "file/");
  list_unread(file, group, "", *this, file.shapes(group), left_out);
  if (file.has("/mask"))
    for (const std::string& mask : file.data_sets("/mask"))
      left_out.push_back(format("mask/{}: convert its demos by themselves, with --split {}", mask, mask));
  return metadata;
}

std::pair<fs::path, std::string> Hdf5Episodes::place(std::int64_t episode) const {
  const Impl::Place& place = impl_->episodes[static_cast<std::size_t>(episode)];
  return {impl_->files[place.file].path, place.group + place.part()};
}
const std::string& Hdf5Episodes::name() const {
  return impl_->name;
}
std::int64_t Hdf5Episodes::size() const {
  return static_cast<std::int64_t>(impl_->episodes.size());
}
const std::vector<StepField>& Hdf5Episodes::fields() const {
  return impl_->fields;
}
const std::vector<std::string>& Hdf5Episodes::metadata_names() const {
  return impl_->metadata_names;
}
std::int64_t Hdf5Episodes::steps(std::int64_t episode) const {
  return impl_->episodes[static_cast<std::size_t>(episode)].steps;
}
const std::vector<std::string>& Hdf5Episodes::skipped() const {
  return impl_->skipped;
}

std::shared_ptr<const Episode> Hdf5Episodes::open(std::int64_t episode) const {
  COHORT_CHECK(episode >= 0 && episode < size(), "episode {} of {}", episode, size());
  return impl_->cache.get(episode, 0, [this, episode]() -> EpisodeCache::Made {
    auto opened = impl_->make(episode);
    const std::int64_t bytes = opened->bytes();
    return {std::move(opened), bytes};
  });
}

std::int64_t Hdf5Episodes::bytes_when_open(std::int64_t episode, std::span<const std::size_t> fields) const {
  std::int64_t bytes = 0;
  for (const std::size_t f : fields) {
    const StepField& field = impl_->fields[f];
    const auto one = static_cast<std::int64_t>(field.kind == StepKind::kImage ? 1 : element_size(field.type));
    bytes += steps(episode) * one * std::max<std::int64_t>(field.elements(), 0);
  }
  return bytes;
}

std::uint64_t Hdf5Episodes::content_hash() const {
  ContentHash hash;
  for (const Impl::File& file : impl_->files) {
    std::error_code error;
    if (!fs::is_regular_file(file.path, error)) continue;  // left out, as on_corrupt=skip said
    const MappedFile bytes(file.path);
    const fs::path below = file.path.lexically_relative(impl_->root);
    hash.add((below.empty() ? file.path : below).string());
    for (const auto& [key, text] : file.metadata) {
      hash.add(key);
      hash.add(text);
    }
    hash.add(file.metadata.size());
    hash.add(bytes.size());
    hash.add(crc32c(bytes.bytes().substr(0, std::size_t{1} << 20)));
    hash.add(static_cast<std::uint64_t>(fs::last_write_time(file.path).time_since_epoch().count()));
  }
  for (const Impl::Place& place : impl_->episodes) {
    hash.add(place.file);
    hash.add(place.group + place.part());
  }
  return hash.value();
}

std::int64_t Hdf5Episodes::bytes_held() const {
  std::size_t tables = 0;
  for (const Impl::File& file : impl_->files) tables += sizeof(file) + file.path.native().capacity();
  for (const Impl::Place& place : impl_->episodes) tables += sizeof(place) + place.group.capacity();
  return static_cast<std::int64_t>(tables) + impl_->places.bytes() + impl_->cache.bytes();
}

std::int64_t Hdf5Episodes::stored_bytes() const {
  std::int64_t bytes = 0;
  std::error_code error;
  for (const Impl::File& file : impl_->files)
    if (const std::uintmax_t size = fs::file_size(file.path, error); !error) bytes += static_cast<std::int64_t>(size);
  return bytes;
}

std::string Hdf5Episodes::selection() const {
  const Impl::Mask& mask = impl_->masked;
  std::string text;
  if (mask.files > 0) text = format("mask/{}: {} of {} demos", impl_->settings.filter_key, mask.chosen, mask.demos);
  if (mask.has_train)
    text =
        format("all {} demos, whatever masks there are: the split auto, training's, takes {}", mask.all, mask.by_auto);
  if (mask.files > 0 && mask.files_without > 0)
    text += format(", and all of {} files that have no such mask", mask.files_without);
  if (mask.files > 0 && impl_->settings.filter_key_optional) text += " (split auto; the split all takes every demo)";
  std::vector<std::string> names;
  for (const StepField& field : impl_->fields) names.push_back(field.name);
  for (const std::string& more : {impl_->how_cut(), impl_->rows.rows_not_used(names)})
    text += (text.empty() || more.empty() ? "" : "; ") + more;
  return text;
}

std::vector<std::string> Hdf5Episodes::left_out() const {
  return impl_->left_out();
}

std::string Hdf5Episodes::why_no_field(const std::string& field_name) const {
  return impl_->why_no_field(field_name);
}

}  // namespace cohort::data
