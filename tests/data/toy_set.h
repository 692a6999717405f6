/// A small RLDS set on disk for a test: float32 fields per step, and a text per episode.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/files.h"
#include "data/rlds/dataset_info.h"
#include "data/rlds/example.h"
#include "data/rlds/schema.h"
#include "data/rlds/tfrecord.h"

namespace cohort::data {

/// Field -> values of all steps, one behind the other.
struct ToyEpisode {
  std::map<std::string, std::vector<float>> fields;
  std::string file_path = "lab/success/0/trajectory.h5";
};

/// Writes folder/toy/1.0.0 with `shards` shards and returns it. `widths`: elements per step of each field.
inline std::filesystem::path write_toy_set(const std::filesystem::path& folder, const std::vector<ToyEpisode>& episodes,
                                           const std::map<std::string, std::int64_t>& widths, std::size_t shards = 1) {
  const std::filesystem::path home = folder / "toy/1.0.0";
  std::filesystem::create_directories(home);
  DatasetInfo info{.name = "toy", .version = "1.0.0"};
  info.splits.push_back({.name = "train"});
  std::vector<std::string> bytes(shards);
  for (std::size_t s = 0; s < shards; ++s) {
    const std::size_t begin = episodes.size() * s / shards, end = episodes.size() * (s + 1) / shards;
    info.splits[0].shard_lengths.push_back(static_cast<std::int64_t>(end - begin));
    for (std::size_t e = begin; e < end; ++e) {
      ExampleWriter writer;
      for (const auto& [name, values] : episodes[e].fields) writer.add("steps/" + name, std::span(values));
      writer.add("episode_metadata/file_path", std::vector<std::string>{episodes[e].file_path});
      append_tfrecord(bytes[s], writer.finish());
    }
  }
  for (std::size_t s = 0; s < shards; ++s)
    std::ofstream(home / shard_name(info, info.splits[0], static_cast<std::int64_t>(s)), std::ios::binary) << bytes[s];
  Feature step = make_dict({});
  for (const auto& [name, width] : widths) step.children.emplace_back(name, make_tensor("float32", {width}));
  write_file_atomically(home / "features.json",
                        write_features(make_dict({{"steps", make_steps(std::move(step))},
                                                  {"episode_metadata", make_dict({{"file_path", make_text()}})}})));
  write_file_atomically(home / "dataset_info.json", write_dataset_info(info));
  return home;
}

}  // namespace cohort::data
