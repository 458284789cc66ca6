#include "services/web/request.h"

#include <string_view>

#include <boost/beast/http/rfc7230.hpp>

namespace hf::web {
namespace {

namespace http = boost::beast::http;

}  // namespace

std::string Request::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

Result<Request> request_of(const http::request_header<>& head) {
  for (const http::field field : {http::field::host, http::field::origin}) {
    if (head.count(field) > 1) {
      return fail(std::errc::bad_message, "two headers " + std::string(to_string(field)));
    }
  }
  const std::string_view target = head.target();
  if (!target.starts_with('/')) {
    return fail(std::errc::bad_message, "no path");
  }
  Request request;
  request.method = head.method_string();
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  request.query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  for (const auto& field : head) {
    request.headers.try_emplace(field.name_string(), field.value());
  }
  // A body is not read: what follows the head would otherwise be parsed as the next request.
  const bool has_body = head.count(http::field::transfer_encoding) > 0 ||
                        (head.count(http::field::content_length) > 0 && head[http::field::content_length] != "0");
  http::token_list connection(head[http::field::connection]);
  request.keeps_alive = head.version() == 11 && !connection.exists("close") && !has_body;
  return request;
}

}  // namespace hf::web
