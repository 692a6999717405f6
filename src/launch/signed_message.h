/// Messages between agents: JSON with a signature, so that nobody without the job's secret can join, read the state of,
/// or stop a job.
///
/// On the wire: four bytes with the length, most significant first (at most kMostBytes), 64 hexadecimal digits, the
/// JSON text. The digits are HMAC-SHA256 (RFC 2104, FIPS 180-4) under the secret over the session, the sender's role,
/// the message's number and the text, so that a message of another connection, direction or place is refused.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace cohort::launch {

inline constexpr std::size_t kMostBytes = 64 * 1024;

/// The secret of a job: the contents of the file without spaces at its ends, else the variable COHORT_JOB_SECRET.
/// Throws Error for none, one of fewer than 16 characters, or a file that others may read.
std::string read_job_secret(const std::string& file);

/// Random hexadecimal digits from the system.
std::string random_digits(int bytes);

std::string hmac_sha256(const std::string& secret, const std::string& text);

/// Takes complete frames out of a stream of bytes; what they hold is not checked yet.
class FrameReader {
 public:
  void add(const char* bytes, std::size_t count) { buffer_.append(bytes, count); }
  /// The next frame, or nothing yet. Throws Error for one that is too long.
  std::optional<std::string> next();

 private:
  std::string buffer_;
};

std::string frame(const std::string& payload);

/// One side's view of a connection's signatures.
class Signer {
 public:
  /// `session`: the server's random digits followed by the client's. `server`: which side this is.
  Signer(std::string secret, std::string session, bool server);
  /// The frame of the next message to send.
  std::string sign(const std::string& json);
  /// The text of the next message received. Throws Error where the signature is not the one.
  std::string verify(const std::string& payload);

 private:
  std::string mac(bool of_server, std::uint64_t number, const std::string& json) const;
  std::string secret_, session_;
  bool server_;
  std::uint64_t sent_ = 0, received_ = 0;
};

}  // namespace cohort::launch
