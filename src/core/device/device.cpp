#include "core/device/device.h"

#include <optional>
#include <vector>

#include "core/base/text.h"

namespace hf::device {

char kind_character(Kind kind) { return kind == Kind::block ? 'b' : 'c'; }

Result<Request> parse_request(std::string_view text) {
  const auto malformed = [text](const std::string& why) {
    return fail(std::errc::invalid_argument, "parse question " + quote(text) + ": " + why);
  };
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() != 4 || (parts[0] != "b" && parts[0] != "c")) {
    return malformed("want KIND:MAJOR:MINOR:ACCESS such as c:195:0:rw");
  }
  const std::optional<std::uint32_t> major = parse_number<std::uint32_t>(parts[1]);
  const std::optional<std::uint32_t> minor = parse_number<std::uint32_t>(parts[2]);
  if (!major || !minor) {
    return malformed("major and minor are numbers");
  }
  const Result<Access> access = parse_access(parts[3]);
  if (!access || *access == Access::none) {
    return malformed("access is a combination of r, w and m, none twice");
  }
  return Request{{parts[0] == "b" ? Kind::block : Kind::character, *major, *minor}, *access};
}

std::string to_string(const Device& device) {
  return std::string(1, kind_character(device.kind)) + " " + std::to_string(device.major) + ":" +
         std::to_string(device.minor);
}

std::string to_string(const Request& request) {
  return std::string(1, kind_character(request.device.kind)) + ":" + std::to_string(request.device.major) + ":" +
         std::to_string(request.device.minor) + ":" + to_string(request.access);
}

}  // namespace hf::device
