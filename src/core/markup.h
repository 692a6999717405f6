/// Text that goes into files of other formats.
#pragma once
#include <string>
#include <string_view>

namespace cohort {

/// Valid UTF-8 without control characters: these become blanks, bytes that do not decode become '?'. Line ends stay if
/// `keep_lines`.
std::string clean_utf8(std::string_view text, bool keep_lines = false);

/// Clean, and with &, <, > and quotes as entities: safe as content and as attribute value of HTML and XML.
std::string html_escape(std::string_view text);

/// A relative path as a URL: everything but letters, digits and -._~/ as %XX (RFC 3986).
std::string percent_encode(std::string_view path);

}  // namespace cohort
