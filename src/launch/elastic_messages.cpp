#include "launch/elastic_messages.h"

#include <cstdint>

#include "core/error.h"

namespace cohort::launch {
namespace {

constexpr std::size_t kMostWhy = 2 * kMostWords;  // a server puts a node's words into a sentence of its own

}  // namespace

nlohmann::json parse_message(std::string_view text) {
  nlohmann::json message = try_json<nlohmann::json>(text);
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
  const nlohmann::json message = parse_message(text);
  const std::string is = text_in(message, "is", 16);
  nlohmann::json told{{"is", is}};
  const auto number = [&](const char* name, int least, int most) {
    return (told[name] = number_in(message, name, least, most)).get<int>();
  };
  const auto words = [&](const char* name, std::size_t most) { told[name] = text_in(message, name, most); };
  if (is == "round") {
    number("round", 0, kMostCount);
    number("node_rank", 0, number("nodes", 1, kMostRanks) - 1);
    number("first_rank", 0, number("world_size", 1, kMostCount) - 1);
    number("store_port", 1, 65535);
    words("store_address", 256);
    for (const char* count : {"restarts", "recovery"}) number(count, 0, kMostCount);
  } else if (is == "recover") {
    for (const char* count : {"number", "restarts"}) number(count, 0, kMostCount);
    words("why", kMostWhy);
  } else if (is == "go") {
    number("number", 0, kMostCount);
  } else if (is == "end") {
    number("code", 0, 255);
    words("why", kMostWhy);
  } else if (is == "gather" || is == "refused") {
    words("why", kMostWhy);
  } else if (is == "state") {
    COHORT_THROW_UNLESS(message.contains("state") && message["state"].is_object(), "a state that is none");
    told["state"] = message["state"];
  } else {
    COHORT_THROW_UNLESS(is == "beat" || is == "joined" || is == "standby" || is == "later",
                        "'{}' is nothing that is said", is);
  }
  return told;
}

}  // namespace cohort::launch
