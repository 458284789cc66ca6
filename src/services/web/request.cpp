#include "services/web/request.h"

#include <algorithm>

#include "core/base/text.h"

namespace hf::web {
namespace {

std::unexpected<Error> refuse(const std::string& why) { return fail(std::errc::bad_message, why); }

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";  // RFC 9110, 5.6.2
  return !text.empty() && std::ranges::all_of(text, [kOthers](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           kOthers.contains(letter);
  });
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text,
                             [](unsigned char letter) { return (letter >= 0x20 || letter == '\t') && letter != 0x7f; });
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? char(letter + ('a' - 'A')) : letter;
  });
  return small;
}

Result<void> read_first_line(std::string_view line, Request& request) {
  const std::vector<std::string_view> words = split(line, ' ');
  if (words.size() != 3 || !is_token(words[0]) || !is_printable(line)) {
    return refuse("no request line");
  }
  if (words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0") {
    return refuse("no HTTP/1.1");
  }
  if (!words[1].starts_with('/')) {
    return refuse("no path");
  }
  request.method = words[0];
  request.keeps_alive = words[2] == "HTTP/1.1";
  const std::size_t mark = words[1].find('?');
  request.path = words[1].substr(0, mark);
  request.query = mark == std::string_view::npos ? "" : words[1].substr(mark + 1);
  return {};
}

Result<void> read_header(std::string_view line, Request& request) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || !is_printable(line)) {
    return refuse("no header line");
  }
  const auto [place, is_new] =
      request.headers.try_emplace(in_small_letters(line.substr(0, colon)), trim(line.substr(colon + 1)));
  if (!is_new && (place->first == "host" || place->first == "origin" || place->first == "content-length")) {
    return refuse("two headers " + place->first);
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
    // What comes next would be read as another request.
    request.keeps_alive = false;
  }
  request.keeps_alive = request.keeps_alive && in_small_letters(request.header("connection")) != "close";
  return request;
}

}  // namespace hf::web
