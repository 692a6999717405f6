#include "view/page.h"

#include "core/files.h"
#include "core/format.h"
#include "core/markup.h"
#include "view/binary_document.h"
#include "view/page_parts.h"

namespace cohort::view {

namespace {

/// connect: what the page may talk to; data: elements with what it shows.
std::string page(const std::string& title, const std::string& nonce, const std::string& connect,
                 const std::string& data) {
  return format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'nonce-{0}'; "
             "script-src 'nonce-{0}'; img-src data: blob:{1}; base-uri 'none'; form-action 'none'\">\n"
             "<link rel=\"icon\" href=\"data:,\">\n<title>{2}</title>\n<style nonce=\"{0}\">\n",
             nonce, connect, html_escape(title)) +
         kPageStyle + "</style>\n</head>\n<body>\n" + data + "<script nonce=\"" + nonce + "\">\n" + kPageScript +
         "</script>\n</body>\n</html>\n";
}

std::string data_element(const std::string& id, const std::string& title, const std::string& bytes) {
  return "<script type=\"text/plain\" class=\"" + id + "\" data-title=\"" + html_escape(title) + "\">" +
         base64(deflated(bytes)) + "</script>\n";
}

}  // namespace

std::string offline_page(const PageContent& content) {
  std::string data = data_element("scene", "", content.scene);
  for (const PageEpisode& e : content.episodes) data += data_element("poses", e.title, e.poses);
  return page(content.title, "cohort", "", data);
}

void write_page(const std::filesystem::path& path, const PageContent& content) {
  write_file_atomically(path, offline_page(content));
}

std::string offline_data_page(const std::string& title, const std::string& document) {
  return page(title, "cohort", "", data_element("data", "", document));
}

std::string served_page(const std::string& title, const std::string& socket, const std::string& nonce,
                        const std::string& shows) {
  const std::string origin = socket.substr(0, socket.find('/', socket.find("//") + 2));
  return page(
      title, nonce, "; connect-src " + html_escape(origin),
      "<div id=\"socket\" data-address=\"" + html_escape(socket) + "\" data-shows=\"" + shows + "\" hidden></div>\n");
}

}  // namespace cohort::view
