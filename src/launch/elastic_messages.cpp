#include "launch/elastic_messages.h"

#include <cstdint>

#include "core/error.h"

namespace cohort::launch {
namespace {

constexpr std::size_t kMostWhy = 2 * kMostWords;  // a server puts a node's words into a sentence of its own

}  // namespace

nlohmann::json parse_message(std::string_view text) {
  nlohmann::json message = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  COHORT_THROW_UNLESS(message.is_object(), "a message that is no JSON object");
  return message;
}

std::string text_in(const nlohmann::json& message, const char* name, std::size_t most) {
  const auto found = message.find(name);
  COHORT_THROW_UNLESS(found != message.end() && found->is_string(), "a message without the text '{}'", name);
  auto text = found->get<std::string>();
  COHORT_THROW_UNLESS(text.size() <= most, "'{}' of {} bytes", name, text.size());
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t') || c == 127) c = '?';
  return text;
}

int number_in(const nlohmann::json& message, const char* name, int least, int most) {
  const auto found = message.find(name);
  COHORT_THROW_UNLESS(found != message.end() && found->is_number_integer(), "a message without the integer '{}'", name);
  // Above what 64 signed bits hold it would come out negative.
  const bool huge = found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  const auto value = huge ? INT64_MAX : found->get<std::int64_t>();
  COHORT_THROW_UNLESS(value >= least && value <= most, "'{}' is {}, not {} to {}", name, value, least, most);
  return static_cast<int>(value);
}

bool flag_in(const nlohmann::json& message, const char* name, bool otherwise) {
  const auto found = message.find(name);
  if (found == message.end()) return otherwise;
  COHORT_THROW_UNLESS(found->is_boolean(), "'{}' is neither true nor false", name);
  return found->get<bool>();
}

nlohmann::json parse_told(std::string_view text) {
  nlohmann::json message = parse_message(text);
  const std::string is = text_in(message, "is", 16);
  const auto has_words = [&](const char* name) { message[name] = text_in(message, name, kMostWhy); };
  if (is == "round") {
    number_in(message, "round", 0, kMostCount);
    const int nodes = number_in(message, "nodes", 1, kMostRanks);
    number_in(message, "node_rank", 0, nodes - 1);
    const int world_size = number_in(message, "world_size", 1, kMostCount);
    number_in(message, "first_rank", 0, world_size - 1);
    number_in(message, "store_port", 1, 65535);
    message["store_address"] = text_in(message, "store_address", 256);
    for (const char* count : {"restarts", "recovery"}) number_in(message, count, 0, kMostCount);
  } else if (is == "recover") {
    for (const char* count : {"number", "restarts"}) number_in(message, count, 0, kMostCount);
    has_words("why");
  } else if (is == "go") {
    number_in(message, "number", 0, kMostCount);
  } else if (is == "end") {
    number_in(message, "code", 0, 255);
    has_words("why");
  } else if (is == "gather" || is == "refused") {
    has_words("why");
  } else if (is == "state") {
    COHORT_THROW_UNLESS(message.contains("state") && message["state"].is_object(), "a state that is none");
  } else {
    COHORT_THROW_UNLESS(is == "beat" || is == "joined" || is == "standby", "'{}' is nothing that is said", is);
  }
  return message;
}

}  // namespace cohort::launch
