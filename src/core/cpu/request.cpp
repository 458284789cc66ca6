#include "core/cpu/request.h"

#include "core/base/text.h"

namespace hf::cpu {
namespace {

constexpr std::uint64_t kSharesOfOne = 1024;
constexpr const char* kCount = "holdfast.cpus";
constexpr const char* kNear = "holdfast.cpus.near";
constexpr const char* kOptions = "holdfast.cpus.options";

const std::string* find(const std::map<std::string, std::string>& labels, const char* key) {
  const auto found = labels.find(key);
  return found == labels.end() ? nullptr : &found->second;
}

// "full-pcpus-only,align-by-socket=false"
Result<Options> options_in(const std::string& text) {
  std::map<std::string, std::string> values;
  for (const std::string_view entry : split(text, ',')) {
    const std::size_t equals = entry.find('=');
    const bool is_named_only = equals == std::string_view::npos;
    values[std::string(trim(entry.substr(0, equals)))] =
        is_named_only ? "true" : std::string(trim(entry.substr(equals + 1)));
  }
  return parse_options(values);
}

}  // namespace

// Kubelet: shares are milliCPUs * 1024 / 1000, rounded down, so that only whole CPUs give a multiple of 1024.
std::optional<CpuRequest> request_of_pod(const CpuTime& time) {
  const std::uint64_t shares = time.shares.value_or(0);
  const std::uint64_t count = shares / kSharesOfOne;
  if (count == 0 || shares % kSharesOfOne != 0 || count > kMostCpus) {
    return std::nullopt;
  }
  const std::int64_t quota = time.quota.value_or(-1);
  const std::uint64_t period = time.period.value_or(100'000);
  if (quota > 0 && std::uint64_t(quota) != count * period) {
    return std::nullopt;  // its limit is another
  }
  CpuRequest request;
  request.count = std::uint32_t(count);
  return request;
}

Result<std::optional<CpuRequest>> request_in(const std::map<std::string, std::string>& labels) {
  const std::string* const count = find(labels, kCount);
  if (count == nullptr) {
    return std::nullopt;
  }
  CpuRequest request;
  request.count = parse_number<std::uint32_t>(*count).value_or(0);
  if (request.count == 0 || request.count > kMostCpus) {
    return fail(std::errc::invalid_argument,
                std::string(kCount) + "=" + quote(*count) + ": want a number of CPUs, at least 1");
  }
  if (const std::string* const options = find(labels, kOptions)) {
    const Result<Options> parsed = options_in(*options);
    if (!parsed) {
      return fail(parsed.error().code, std::string(kOptions) + "=" + quote(*options) + ": " + parsed.error().message);
    }
    request.options = *parsed;
  }
  if (const std::string* const near = find(labels, kNear)) {
    request.is_near_devices = *near != "none";
    for (const std::string_view device : split(*near, ',')) {
      const std::string name(trim(device));
      if (name != "none" && name != "gpu" && !name.starts_with("/dev/")) {
        return fail(std::errc::invalid_argument,
                    std::string(kNear) + "=" + quote(*near) + ": want gpu, none, or device nodes such as /dev/nvidia0");
      }
      if (name.starts_with("/dev/")) {
        request.near.push_back(name);
      }
    }
  }
  return request;
}

}  // namespace hf::cpu
