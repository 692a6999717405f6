#include "train/train_state.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include <torch/types.h>

#include "core/byte_stream.h"
#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "parallel/parameter_hash.h"

namespace cohort::train {
namespace {

using config::Json;

template <class T>
constexpr bool is_tensor = std::is_same_v<std::remove_cvref_t<T>, at::Tensor>;

}  // namespace

std::string to_bytes(const RankState& state) {
  ByteWriter out;
  RankState::visit(state, [&](const auto& value) {
    if constexpr (is_tensor<decltype(value)>) {
      const at::Tensor whole = value.detach().contiguous();
      out.bytes(whole.const_data_ptr(), whole.nbytes());
    } else {
      out.bytes(&value, sizeof value);
    }
  });
  return out.data();
}

RankState rank_state_from(const std::string& bytes, const RankState& like) {
  RankState state = like;
  ByteReader in(bytes);
  RankState::visit(state, [&](auto& value) {
    if constexpr (is_tensor<decltype(value)>) {
      value = at::empty(value.sizes(), at::TensorOptions(value.scalar_type()));
      in.bytes(value.mutable_data_ptr(), value.nbytes());
    } else {
      in.bytes(&value, sizeof value);
    }
  });
  COHORT_THROW_UNLESS(in.at_end(), "what a rank left for the one that takes its place is too long");
  return state;
}

weights::LossSums mean_of(const std::vector<weights::LossSums>& sums) {
  weights::LossSums mean;
  const double share = 1.0 / static_cast<double>(sums.size());
  for (const weights::LossSums& s : sums) {
    mean.interval_sum += s.interval_sum * share;
    mean.interval_count += s.interval_count * share;
    mean.epoch_sum += s.epoch_sum * share;
    mean.epoch_count += s.epoch_count * share;
  }
  return mean;
}

std::string to_text(const TrainState& state) {
  Json json{{"trainer", weights::to_json(state)}};
  TrainState::visit(state, [&](const char* name, const auto& value) { json[name] = value; });
  return json_text(json);
}

TrainState train_state_from(const std::string& text, const std::string& source) {
  const Json json = parse_json<Json>(text);
  TrainState state{weights::trainer_state_from_json(json.at("trainer"), source)};
  TrainState::visit(state, [&](const char* name, auto& value) { json.at(name).get_to(value); });
  return state;
}

std::uint64_t StateImage::hash() const {
  std::uint64_t hash = parallel::xxh64(text.data(), text.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor whole = tensor.contiguous();
    hash = parallel::xxh64(whole.const_data_ptr(), whole.nbytes(), hash);
  }
  return hash;
}

std::string StateImage::layout() const {
  Json layout = Json::array();
  for (const auto& [name, tensor] : tensors)
    layout.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  return json_text(layout);
}

StateImage StateImage::with_layout(std::string text, const std::string& layout) {
  StateImage image{.text = std::move(text), .tensors = {}};
  for (const Json& entry : parse_json<Json>(layout))
    image.tensors.emplace_back(
        entry.at(0).get<std::string>(),
        at::empty(entry.at(2).get<std::vector<std::int64_t>>(), static_cast<at::ScalarType>(entry.at(1).get<int>())));
  return image;
}

std::string to_text(const Progress& p) {
  return json_text(Json{{"has_state", p.has_state}, {"step", p.step}, {"after_step", p.after_step}, {"hash", p.hash}});
}

Progress progress_from(const std::string& text) {
  const Json json = parse_json<Json>(text);
  return {json.at("has_state"), json.at("step"), json.at("after_step"), json.at("hash")};
}

int source_rank(const std::vector<Progress>& ranks) {
  int source = -1;
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    const Progress& own = ranks[static_cast<std::size_t>(r)];
    if (!own.has_state) continue;
    if (source < 0) {
      source = r;
      continue;
    }
    const Progress& best = ranks[static_cast<std::size_t>(source)];
    if (own.step > best.step || (own.step == best.step && source != 0 && own.after_step < best.after_step)) source = r;
  }
  return source;
}

}  // namespace cohort::train
