// Edits as the JSON of a config.json.
#pragma once

#include <string>

#include "adapters/document/json.h"
#include "core/container/entitlement/edits.h"
#include "core/device/device.h"

namespace hf::oci {

std::string type_of(const device::Device& device);
document::OrderedJson json_of_rule(const device::Device& device, device::Access access);
document::OrderedJson json_of_node(const container::NodeEdit& node);                       // one with device numbers
std::string text_of_mount(const container::MountEdit& mount, const std::string& options);  // `options` as JSON
document::OrderedJson json_of_hook(const container::HookEdit& hook);
document::OrderedJson json_of_rdt(const container::IntelRdtEdit& rdt);

}  // namespace hf::oci
