// Request: the head of a client's HTTP request. Bodies are never read: GET and HEAD have none.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::web {

struct Request {
  std::string method;
  std::string path;
  std::string query;                           // after the "?"; "" if there is none
  std::map<std::string, std::string> headers;  // names in lower case
  bool keeps_alive = true;

  [[nodiscard]] std::string header(const std::string& name) const;  // "" if there is none
  [[nodiscard]] bool is_get_or_head() const { return method == "GET" || method == "HEAD"; }
};

// Takes the head without the empty line at its end.
Result<Request> parse_request(std::string_view head);

}  // namespace hf::web
