// Quantity: an amount of bytes as Kubernetes writes it: "80Gi".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hf::kube {

std::string render_quantity(std::uint64_t bytes);
std::optional<std::uint64_t> parse_quantity(std::string_view text);  // as any program may have written it

}  // namespace hf::kube
