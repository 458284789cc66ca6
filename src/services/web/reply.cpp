#include "services/web/reply.h"

#include <string_view>

namespace hf::web {
namespace {

// Our pages cannot be framed, contact no other server and run only scripts from this binary.
constexpr std::string_view kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Error";
  }
}

}  // namespace

Reply text_reply(int status, const std::string& text) {
  Reply reply;
  reply.status = status;
  reply.body = std::make_shared<const std::string>(text + "\n");
  return reply;
}

std::string render_head(const Reply& reply, After after) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  head.append(reason_of(reply.status)).append("\r\n");
  if (reply.status != 304) {
    head += "Content-Type: " + reply.type + "\r\n";
  }
  head += reply.body ? "Content-Length: " + std::to_string(reply.body->size()) + "\r\n" : "";
  head += reply.tag.empty() ? "" : "ETag: " + reply.tag + "\r\n";
  head += reply.status == 405 ? "Allow: GET, HEAD\r\n" : "";
  head += after == After::closes ? "Connection: close\r\n" : "";
  return head.append(kSecurityHeaders).append("\r\n");
}

}  // namespace hf::web
