// Request: what a visitor asks for. Only heads are read: a question has no body.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace hf::web {

struct Request {
  std::string method;
  std::string path;
  std::string query;                           // behind the "?", "" where there is none
  std::map<std::string, std::string> headers;  // names in small letters
  bool keeps_alive = true;

  [[nodiscard]] std::string header(const std::string& name) const;  // "" where there is none
  [[nodiscard]] bool is_question() const { return method == "GET" || method == "HEAD"; }
};

// The head without the empty line at its end.
Result<Request> parse_request(std::string_view head);

}  // namespace hf::web
