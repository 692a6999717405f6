#include "launch/signed_message.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/files.h"

namespace cohort::launch {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::size_t kShortestSecret = 16;

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr char kDigit[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigit[bytes[i] >> 4];
    text += kDigit[bytes[i] & 15];
  }
  return text;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

std::string read_job_secret(const std::string& file) {
  constexpr const char* kRemedy =
      "make one with `openssl rand -hex 32 > job-secret && chmod 600 job-secret`, and give the same to all nodes by "
      "--job-secret-file or COHORT_JOB_SECRET";
  std::string secret;
  if (!file.empty()) {
    struct stat status {};
    COHORT_THROW_UNLESS(::stat(file.c_str(), &status) == 0, "the job's secret {}: {}; {}", file, std::strerror(errno),
                        kRemedy);
    COHORT_THROW_UNLESS((status.st_mode & 077) == 0, "the job's secret {} can be read by others: chmod 600 {}", file,
                        file);
    secret = trimmed(read_file(file));
  } else if (const char* variable = std::getenv("COHORT_JOB_SECRET")) {
    secret = trimmed(variable);
  }
  COHORT_THROW_UNLESS(secret.size() >= kShortestSecret,
                      "nodes that meet need a secret of at least {} characters that they share: {}", kShortestSecret,
                      kRemedy);
  return secret;
}

std::string random_digits(int bytes) {
  std::array<unsigned char, 64> random{};
  COHORT_CHECK(bytes > 0 && bytes <= static_cast<int>(random.size()), "{} random bytes", bytes);
  COHORT_THROW_UNLESS(RAND_bytes(random.data(), bytes) == 1, "the system gives no random bytes");
  return hexadecimal(random.data(), static_cast<std::size_t>(bytes));
}

std::string hmac_sha256(const std::string& secret, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const auto* done = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  COHORT_CHECK(done != nullptr, "HMAC failed");
  return hexadecimal(digest.data(), size);
}

std::optional<std::string> FrameReader::next() {
  if (buffer_.size() < 4) return std::nullopt;
  std::size_t length = 0;
  for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(buffer_[static_cast<std::size_t>(i)]);
  COHORT_THROW_UNLESS(length <= kMostBytes, "a message of {} bytes is longer than any of ours", length);
  if (buffer_.size() < 4 + length) return std::nullopt;
  std::string payload = buffer_.substr(4, length);
  buffer_.erase(0, 4 + length);
  return payload;
}

std::string frame(const std::string& payload) {
  COHORT_CHECK(payload.size() <= kMostBytes, "a message of {} bytes", payload.size());
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(payload.size() >> shift & 255);
  return text + payload;
}

Signer::Signer(std::string secret, std::string session, bool server)
    : secret_(std::move(secret)), session_(std::move(session)), server_(server) {}

std::string Signer::mac(bool of_server, std::uint64_t number, const std::string& json) const {
  return hmac_sha256(secret_, format("{}/{}/{}/{}", session_, of_server ? "server" : "client", number, json));
}

std::string Signer::sign(const std::string& json) {
  return frame(mac(server_, sent_++, json) + json);
}

std::string Signer::verify(const std::string& payload) {
  COHORT_THROW_UNLESS(payload.size() >= kDigits, "a message without a signature");
  const std::string json = payload.substr(kDigits);
  const std::string expected = mac(!server_, received_, json);
  COHORT_THROW_UNLESS(CRYPTO_memcmp(expected.data(), payload.data(), kDigits) == 0,
                      "a message whose signature does not fit the job's secret");
  ++received_;
  return json;
}

}  // namespace cohort::launch
