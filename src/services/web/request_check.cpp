#include "services/web/request_check.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <boost/beast/core/string.hpp>

#include "core/base/text.h"

namespace hf::web {
namespace {

bool is_address(int family, const std::string& text) {
  std::array<unsigned char, sizeof(::in6_addr)> address{};
  return ::inet_pton(family, text.c_str(), address.data()) == 1;
}

// "host", "host:80" and "[::1]:80" without the port; "" if the port is invalid.
std::string without_port(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) {
    return "";
  }
  const std::size_t colon = host.find(':', bracket);
  if (colon != std::string_view::npos && !parse_number<std::uint16_t>(host.substr(colon + 1))) {
    return "";
  }
  return std::string(host.substr(0, colon));
}

bool is_ours(const std::string& host, const std::string& own_name) {
  if (host.starts_with('[')) {
    return host.ends_with(']') && is_address(AF_INET6, host.substr(1, host.size() - 2));
  }
  return is_address(AF_INET, host) || boost::beast::iequals(host, "localhost") ||
         (!own_name.empty() && boost::beast::iequals(host, own_name));
}

bool is_same_origin(std::string_view origin, std::string_view host) {
  // Both schemes are accepted, because a proxy in front of us may terminate TLS.
  return std::ranges::any_of(std::array<std::string_view, 2>{"http://", "https://"}, [&](std::string_view scheme) {
    return origin.starts_with(scheme) && boost::beast::iequals(origin.substr(scheme.size()), host);
  });
}

}  // namespace

std::string why_refused(const Request& request, const std::string& own_name) {
  const std::string host = request.header("host");
  if (!is_ours(without_port(host), own_name)) {
    return "the Host header must be an address, localhost or this machine's own name";
  }
  if (request.headers.contains("origin") && !is_same_origin(request.header("origin"), host)) {
    return "requests from pages of another origin are refused";
  }
  return "";
}

}  // namespace hf::web
