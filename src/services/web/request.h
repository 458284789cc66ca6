// Request: the head of a client's HTTP request. Bodies are never read: GET and HEAD have none.
#pragma once

#include <map>
#include <string>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/message.hpp>

#include "core/base/result.h"

namespace hf::web {

struct Request {
  std::string method;
  std::string path;
  std::string query;                                                // after the "?"; "" if there is none
  std::map<std::string, std::string, boost::beast::iless> headers;  // upper and lower case are the same
  bool keeps_alive = true;

  [[nodiscard]] std::string header(const std::string& name) const;  // "" if there is none
  [[nodiscard]] bool is_get_or_head() const { return method == "GET" || method == "HEAD"; }
};

// Fails where the target is no path, or where a header that decides about trust is there twice.
Result<Request> request_of(const boost::beast::http::request_header<>& head);

}  // namespace hf::web
