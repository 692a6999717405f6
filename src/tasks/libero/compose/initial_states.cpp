#include "tasks/libero/compose/initial_states.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "formats/pickle.h"
#include "formats/stored_zip.h"

namespace cohort::tasks::libero::compose {

namespace {

constexpr std::int64_t kMost = 1 << 20;  // states, and numbers of one

NpyArray first_states(NpyArray array, int most, const std::string& source) {
  // LIBERO-Plus saves a single state as one row of numbers.
  if (array.shape.size() == 1) array.shape.insert(array.shape.begin(), 1);
  COHORT_THROW_UNLESS(array.shape.size() == 2 && array.shape[0] > 0 && array.shape[1] > 0,
                      "{}: initial states are an array of states and numbers, and this has {} dimensions", source,
                      array.shape.size());
  if (most > 0) array.shape[0] = std::min<std::int64_t>(most, array.shape[0]);
  array.values.resize(static_cast<std::size_t>(array.shape[0] * array.shape[1]));
  return array;
}

NpyArray read_pickled(const std::filesystem::path& file) {
  const std::string source = file.string();
  StoredZip zip(file);
  const auto pickled = std::find_if(zip.records().begin(), zip.records().end(),
                                    [](const auto& record) { return record.first.ends_with("data.pkl"); });
  COHORT_THROW_UNLESS(pickled != zip.records().end(), "{}: is a zip archive, but not one of torch.save(): no data.pkl",
                      source);
  const Pickle pickle(zip.read(pickled->second.begin, pickled->second.size), source, PickleOf::kNumpyArray);
  const PickleValue& array = pickle.root();
  COHORT_THROW_UNLESS(array.kind == PickleValue::Kind::kArray && array.type == "<f8" &&
                          (array.sizes.size() == 2 || array.sizes.size() == 1),
                      "{}: holds no array of float64 with two dimensions, which initial states are", source);
  NpyArray out{{array.sizes.begin(), array.sizes.end()}, {}};
  std::int64_t count = 1;
  for (const std::int64_t size : out.shape) {
    COHORT_THROW_UNLESS(size > 0 && size <= kMost, "{}: its array has a dimension of {}", source, size);
    count *= size;
  }
  COHORT_THROW_UNLESS(array.text.size() == static_cast<std::size_t>(count) * sizeof(double),
                      "{}: its array of {} numbers has {} bytes", source, count, array.text.size());
  out.values.resize(static_cast<std::size_t>(count));
  std::memcpy(out.values.data(), array.text.data(), out.values.size() * sizeof(double));
  return out;
}

}  // namespace

NpyArray read_initial_states(const std::filesystem::path& file, int most) {
  const std::filesystem::path npz = file.string() + ".npz";
  if (!std::filesystem::is_regular_file(file) && std::filesystem::is_regular_file(npz))
    return first_states(read_npz(npz, "states"), most, npz.string());
  COHORT_THROW_UNLESS(std::filesystem::is_regular_file(file), "{} is missing: is the checkout of LIBERO whole?",
                      file.string());
  return first_states(read_pickled(file), most, file.string());
}

}  // namespace cohort::tasks::libero::compose
