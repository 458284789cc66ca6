// Base64: bytes as text, as Kubernetes writes certificates and kubelet its answers (RFC 4648, with padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hf {

std::optional<std::string> decode_base64(std::string_view text);

}  // namespace hf
