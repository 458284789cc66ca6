#include "services/web/reply.h"

#include <array>
#include <sstream>
#include <utility>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/write.hpp>

namespace hf::web {
namespace {

namespace http = boost::beast::http;

// Our pages cannot be framed, contact no other server and run only scripts from this binary.
constexpr std::array<std::pair<const char*, const char*>, 6> kSecurityHeaders = {{
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
}};

}  // namespace

Reply text_reply(int status, const std::string& text) {
  Reply reply;
  reply.status = status;
  reply.body = std::make_shared<const std::string>(text + "\n");
  return reply;
}

std::string render_head(const Reply& reply, After after) {
  http::response_header<> head;
  head.version(11);
  head.result(unsigned(reply.status));
  if (reply.status != 304) {
    head.set(http::field::content_type, reply.type);
  }
  if (reply.body) {
    head.set(http::field::content_length, std::to_string(reply.body->size()));
  }
  if (!reply.tag.empty()) {
    head.set(http::field::etag, reply.tag);
  }
  if (reply.status == 405) {
    head.set(http::field::allow, "GET, HEAD");
  }
  if (after == After::closes) {
    head.set(http::field::connection, "close");
  }
  for (const auto& [name, value] : kSecurityHeaders) {
    head.set(name, value);
  }
  std::ostringstream text;
  text << head;
  return text.str();
}

}  // namespace hf::web
