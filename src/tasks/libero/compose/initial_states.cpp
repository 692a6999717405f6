#include "tasks/libero/compose/initial_states.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "formats/pickle.h"
#include "formats/stored_zip.h"

namespace cohort::tasks::libero::compose {

NpyArray read_initial_states(const std::filesystem::path& file, int most) {
  const std::string source = file.string();
  COHORT_THROW_UNLESS(std::filesystem::is_regular_file(file), "{} is missing: is the checkout of LIBERO whole?",
                      source);
  StoredZip zip(file);
  const auto pickled = std::find_if(zip.records().begin(), zip.records().end(),
                                    [](const auto& record) { return record.first.ends_with("data.pkl"); });
  COHORT_THROW_UNLESS(pickled != zip.records().end(), "{}: is a zip archive, but not one of torch.save(): no data.pkl",
                      source);
  const Pickle pickle(zip.read(pickled->second.begin, pickled->second.size), source, PickleOf::kNumpyArray);
  const PickleValue& array = pickle.root();
  COHORT_THROW_UNLESS(array.kind == PickleValue::Kind::kArray && array.type == "<f8" && array.sizes.size() == 2,
                      "{}: holds no array of float64 with two dimensions, which initial states are", source);
  constexpr std::int64_t kMost = 1 << 20;
  const std::int64_t states = array.sizes[0], width = array.sizes[1];
  COHORT_THROW_UNLESS(states > 0 && states <= kMost && width > 0 && width <= kMost &&
                          array.text.size() == static_cast<std::size_t>(states * width) * sizeof(double),
                      "{}: its array of {} x {} numbers has {} bytes", source, states, width, array.text.size());
  const std::int64_t kept = most > 0 ? std::min<std::int64_t>(most, states) : states;
  NpyArray out{{kept, width}, std::vector<double>(static_cast<std::size_t>(kept * width))};
  std::memcpy(out.values.data(), array.text.data(), out.values.size() * sizeof(double));
  return out;
}

}  // namespace cohort::tasks::libero::compose
