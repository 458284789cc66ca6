#include "core/device/systemd_rules.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/base/text.h"

namespace hf::device {
namespace {

// systemd matches driver names as fnmatch(3) does; names hold no brackets, so * and ? are all that occurs.
bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::size_t n = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] != '*' && pattern[p] == name[n]))) {
      ++n;
      ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::optional<Span> point(std::uint32_t number) { return Span{number, number}; }

Rule for_device(const Device& device, Access access) {
  return {{device.kind, point(device.major), point(device.minor)}, access, Match::within};
}

RuleSet for_drivers(Kind kind, std::string_view pattern, Access access, const DriverNames& drivers) {
  if (pattern == "*") {
    return {Rule{{kind, std::nullopt, std::nullopt}, access, Match::within}};
  }
  if (const std::optional<std::uint32_t> major = parse_number<std::uint32_t>(pattern)) {
    return {Rule{{kind, point(*major), std::nullopt}, access, Match::within}};
  }
  RuleSet rules;
  for (const auto& [name, major] : kind == Kind::block ? drivers.block : drivers.character) {
    if (matches_pattern(name, pattern)) {
      rules.push_back({{kind, point(major), std::nullopt}, access, Match::within});
    }
  }
  return rules;
}

// "/dev/char/195:0" names a device by major:minor; systemd 240 and later parses it without following the symlink.
std::optional<Device> parse_numbered_path(std::string_view path) {
  const bool block = path.starts_with("/dev/block/");
  if (!block && !path.starts_with("/dev/char/")) {
    return std::nullopt;
  }
  const std::vector<std::string_view> numbers = split(path.substr(block ? 11 : 10), ':');
  if (numbers.size() != 2) {
    return std::nullopt;
  }
  const std::optional<std::uint32_t> major = parse_number<std::uint32_t>(numbers[0]);
  const std::optional<std::uint32_t> minor = parse_number<std::uint32_t>(numbers[1]);
  if (!major || !minor) {
    return std::nullopt;
  }
  return Device{block ? Kind::block : Kind::character, *major, *minor};
}

}  // namespace

DriverNames parse_driver_names(std::string_view proc_devices) {
  DriverNames names;
  std::multimap<std::string, std::uint32_t>* section = nullptr;
  for (const std::string_view line : split(proc_devices, '\n')) {
    if (line.starts_with("Character devices:")) {
      section = &names.character;
    } else if (line.starts_with("Block devices:")) {
      section = &names.block;
    }
    const std::vector<std::string_view> fields = split_fields(line);
    if (section == nullptr || fields.size() != 2) {
      continue;
    }
    if (const std::optional<std::uint32_t> major = parse_number<std::uint32_t>(fields[0])) {
      section->emplace(fields[1], *major);
    }
  }
  return names;
}

Result<RuleSet> parse_device_allow(std::string_view text, const DeviceAllowContext& context) {
  const auto malformed = [text](const std::string& why) {
    return fail(std::errc::invalid_argument, "parse DeviceAllow " + quote(text) + ": " + why);
  };
  const std::vector<std::string_view> parts = split_fields(text);
  if (parts.empty() || parts.size() > 2) {
    return malformed("want NODE or char-NAME or block-NAME, then an access such as rw");
  }
  const Result<Access> access = parts.size() == 2 ? parse_access(parts[1]) : Access::all;
  if (!access || *access == Access::none) {
    return malformed("the access is a combination of r, w and m, none twice");
  }
  if (parts[0].starts_with("char-")) {
    return for_drivers(Kind::character, parts[0].substr(5), *access, context.drivers);
  }
  if (parts[0].starts_with("block-")) {
    return for_drivers(Kind::block, parts[0].substr(6), *access, context.drivers);
  }
  if (!parts[0].starts_with("/dev/")) {
    return malformed("a node lies under /dev/");
  }
  if (const std::optional<Device> device = parse_numbered_path(parts[0])) {
    return RuleSet{for_device(*device, *access)};
  }
  const std::optional<Device> device = context.device_at(std::string(parts[0]));
  return device ? RuleSet{for_device(*device, *access)} : RuleSet{};
}

Result<std::string> to_device_allow(const Rule& rule) {
  const Selector& selector = rule.selector;
  const auto is_point = [](const std::optional<Span>& span) { return span && span->is_point(); };
  const bool pair = is_point(selector.major) && is_point(selector.minor);
  const bool whole_major = is_point(selector.major) && !selector.minor;
  const bool all = !selector.major && !selector.minor;
  if (!selector.kind || rule.match == Match::exactly || !(pair || whole_major || all)) {
    return fail(std::errc::operation_not_supported, "write DeviceAllow for " + quote(to_string(rule)) +
                                                        ": systemd names a device, a whole major or all of a kind");
  }
  const std::string kind = *selector.kind == Kind::block ? "block" : "char";
  const std::string access = " " + to_string(rule.access);
  if (pair) {
    return "/dev/" + kind + "/" + std::to_string(selector.major->first) + ":" + std::to_string(selector.minor->first) +
           access;
  }
  return kind + "-" + (all ? "*" : std::to_string(selector.major->first)) + access;
}

}  // namespace hf::device
