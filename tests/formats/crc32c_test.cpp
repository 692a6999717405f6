#include "formats/crc32c.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/philox.h"

namespace cohort {
namespace {

std::vector<unsigned char> random_bytes(std::size_t size, std::uint64_t id) {
  const RandomStream stream(7, RandomPurpose::kTest, id, 0);
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(stream.bits(i));
  return bytes;
}

/// The definition: one bit at a time.
std::uint32_t by_definition(const std::vector<unsigned char>& bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, KnownAnswersOfRfc3720HoldForInstructionAndTable) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  for (int i = 31; i >= 0; --i) descending.push_back(static_cast<char>(i));
  const std::vector<std::pair<std::string, std::uint32_t>> answers = {{std::string(32, '\0'), 0x8A9136AAu},
                                                                      {std::string(32, '\xFF'), 0x62A8AB43u},
                                                                      {ascending, 0x46DD794Eu},
                                                                      {descending, 0x113FDB5Cu},
                                                                      {"123456789", 0xE3069283u},
                                                                      {"", 0u}};
  for (const auto& [text, answer] : answers) {
    EXPECT_EQ(crc32c(text), answer);
    EXPECT_EQ(crc32c_by_table(text.data(), text.size()), answer);
  }
}

TEST(Crc32c, EveryLengthAndAlignmentAgreesWithTheDefinition) {
  const std::vector<unsigned char> bytes = random_bytes(80, 1);
  for (std::size_t begin = 0; begin < 9; ++begin)
    for (std::size_t size = 0; begin + size <= bytes.size(); ++size) {
      const std::vector<unsigned char> part(bytes.begin() + static_cast<long>(begin),
                                            bytes.begin() + static_cast<long>(begin + size));
      const std::uint32_t expected = by_definition(part);
      ASSERT_EQ(crc32c(bytes.data() + begin, size), expected) << begin << "+" << size;
      ASSERT_EQ(crc32c_by_table(bytes.data() + begin, size), expected) << begin << "+" << size;
    }
}

TEST(Crc32c, SizesAroundTheBlocksThatAreTakenThreeAtATimeAgreeWithTheDefinition) {
  const std::vector<unsigned char> bytes = random_bytes(2 * 3 * 4096 + 3 * 256 + 100, 4);
  for (const std::size_t whole : {3u * 256, 2u * 3 * 256, 3u * 4096, 3u * 4096 + 3u * 256, 2u * 3 * 4096 + 3u * 256})
    for (const std::size_t more : {0u, 1u, 8u, 77u}) {
      const std::size_t begin = more % 3, size = whole - 4 + more;
      const std::vector<unsigned char> part(bytes.begin() + static_cast<long>(begin),
                                            bytes.begin() + static_cast<long>(begin + size));
      EXPECT_EQ(crc32c(part.data(), size), by_definition(part)) << size;
      EXPECT_EQ(crc32c(bytes.data() + begin + 5, size - 5, crc32c(bytes.data() + begin, 5)), by_definition(part));
    }
}

TEST(Crc32c, ContinuesFromTheChecksumOfWhatCameBefore) {
  const std::vector<unsigned char> bytes = random_bytes(1000, 2);
  for (const std::size_t cut : {0u, 1u, 7u, 8u, 500u, 999u, 1000u})
    EXPECT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, crc32c(bytes.data(), cut)), by_definition(bytes));
}

TEST(Crc32c, MaskingIsUndoneByUnmasking) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint32_t crc = RandomStream(7, RandomPurpose::kTest, 3, 0).bits(i);
    EXPECT_EQ(unmask_crc32c(mask_crc32c(crc)), crc);
    EXPECT_NE(mask_crc32c(crc), crc);
  }
}

}  // namespace
}  // namespace cohort
