#include "services/web/request.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::web {
namespace {

std::unexpected<Error> refuse(const std::string& why) { return fail(std::errc::bad_message, why); }

bool is_token(std::string_view text) {
  constexpr std::string_view kSymbols = "!#$%&'*+-.^_`|~";  // RFC 9110, 5.6.2
  return !text.empty() && std::ranges::all_of(text, [kSymbols](char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || kSymbols.contains(character);
  });
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(
      text, [](unsigned char character) { return (character >= 0x20 || character == '\t') && character != 0x7f; });
}

std::string to_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char character) {
    return character >= 'A' && character <= 'Z' ? char(character + ('a' - 'A')) : character;
  });
  return lower;
}

Result<void> read_first_line(std::string_view line, Request& request) {
  const std::vector<std::string_view> fields = split(line, ' ');
  if (fields.size() != 3 || !is_token(fields[0]) || !is_printable(line)) {
    return refuse("no request line");
  }
  if (fields[2] != "HTTP/1.1" && fields[2] != "HTTP/1.0") {
    return refuse("no HTTP/1.1");
  }
  if (!fields[1].starts_with('/')) {
    return refuse("no path");
  }
  request.method = fields[0];
  request.keeps_alive = fields[2] == "HTTP/1.1";
  const std::size_t mark = fields[1].find('?');
  request.path = fields[1].substr(0, mark);
  request.query = mark == std::string_view::npos ? "" : fields[1].substr(mark + 1);
  return {};
}

Result<void> read_header(std::string_view line, Request& request) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || !is_printable(line)) {
    return refuse("no header line");
  }
  const auto [header, is_new] =
      request.headers.try_emplace(to_lower_case(line.substr(0, colon)), trim(line.substr(colon + 1)));
  if (!is_new && (header->first == "host" || header->first == "origin" || header->first == "content-length")) {
    return refuse("two headers " + header->first);
  }
  return {};
}

}  // namespace

std::string Request::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

Result<Request> parse_request(std::string_view head) {
  Request request;
  const std::size_t end = head.find("\r\n");
  TRY(read_first_line(head.substr(0, end), request));
  while (!head.empty() && head.find("\r\n") != std::string_view::npos) {
    head.remove_prefix(head.find("\r\n") + 2);
    TRY(read_header(head.substr(0, head.find("\r\n")), request));
  }
  if (request.headers.contains("transfer-encoding") ||
      (request.headers.contains("content-length") && request.header("content-length") != "0")) {
    // The body, which is not read, would otherwise be parsed as the next request.
    request.keeps_alive = false;
  }
  request.keeps_alive = request.keeps_alive && to_lower_case(request.header("connection")) != "close";
  return request;
}

}  // namespace hf::web
