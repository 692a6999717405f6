/// One demo or trajectory of HDF5 files, opened.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/episodes.h"
#include "data/hdf5/array.h"
#include "data/hdf5/metadata.h"
#include "data/mapped_file.h"

namespace cohort::data {

/// What most others have as this field, in a group of so many steps. Throws Error where it is not the same there.
Hdf5Array find_field_array(const Hdf5Metadata& file, const std::string& group, const std::string& location,
                           std::int64_t steps, const StepField& field);

/// The rows of an episode in the arrays of its group.
struct Hdf5Rows {
  std::int64_t first = 0, count = 0;
};

/// What opened episodes ask of their source when something is wanted for the first time.
class Hdf5EpisodeDetails {
 public:
  virtual ~Hdf5EpisodeDetails() = default;
  virtual std::shared_ptr<const Hdf5Array> array(std::int64_t episode, std::size_t field) const = 0;
  virtual Hdf5Attributes metadata(std::int64_t episode) const = 0;
  /// Counts memory that an opened episode came to hold.
  virtual void count_bytes(std::int64_t episode, std::int64_t bytes) const = 0;
};

/// Arrays and metadata are looked up when they are used, so that windows of a few numbers neither cost the look-up of a
/// thousand frames nor count their bytes.
class Hdf5Episode final : public Episode {
 public:
  Hdf5Episode(const Hdf5EpisodeDetails& details, std::int64_t number, std::shared_ptr<const MappedFile> file,
              std::string location, Hdf5Rows rows, const std::vector<StepField>& fields);
  ~Hdf5Episode() override;

  std::int64_t steps() const override { return rows_.count; }
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const override;
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const override;
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<std::int64_t> out) const override;
  std::string_view text(std::size_t field, std::int64_t step) const override;
  StoredImage image(std::size_t field, std::int64_t step, std::string& scratch) const override;
  std::string_view metadata(std::string_view name) const override;
  std::string location() const override { return location_; }
  /// Without what is looked up later.
  std::int64_t bytes() const;

 private:
  void check_steps(std::size_t field, std::int64_t begin, std::int64_t count) const;
  const Hdf5Array& array_of(std::size_t field) const;
  /// The rows of a part of a compressed array, unpacked once for all its windows: the chunks hold other episodes' rows, too.
  /// Null for other arrays, and for more than 16 MiB.
  const std::string* unpacked(std::size_t field, const Hdf5Array& array) const;
  const Hdf5Attributes& all_metadata() const;
  template <class T>
  void read_numbers(std::size_t field, std::int64_t begin, std::int64_t count, std::span<T> out) const;

  const Hdf5EpisodeDetails& details_;
  const std::int64_t number_;  // in the source
  const std::shared_ptr<const MappedFile> file_;
  const std::string location_;
  const Hdf5Rows rows_;
  const std::vector<StepField>& fields_;
  mutable std::mutex mutex_;  // of what is looked up late; set once, then only read
  mutable std::vector<std::shared_ptr<const Hdf5Array>> arrays_;
  mutable std::vector<std::atomic<const Hdf5Array*>> known_;  // the same, to be found without the lock
  mutable std::optional<Hdf5Attributes> metadata_;
  mutable std::vector<std::unique_ptr<const std::string>> unpacked_;
  mutable std::vector<std::atomic<const std::string*>> known_unpacked_;  // likewise
};

}  // namespace cohort::data
