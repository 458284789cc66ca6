#include "adapters/journal/status.h"

#include <limits>
#include <tuple>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "adapters/document/json.h"
#include "adapters/journal/run_file.h"
#include "kernel/files/file.h"

namespace hf::journal {
namespace {

Result<std::uint64_t> number_at(const document::Json& json, std::string_view key, std::uint64_t limit) {
  return document::require_uint(json, key, limit, {kStatusFile});
}

}  // namespace

std::string render_status(const Status& status) {
  const document::OrderedJson json = {{"version", 1},
                                      {"pid", status.pid.value},
                                      {"started_ticks", status.started_ticks},
                                      {"program_version", status.version},
                                      {"v1", status.tiers.has_v1 ? to_string(status.tiers.v1) : ""},
                                      {"v2", status.tiers.has_v2 ? to_string(status.tiers.v2) : ""},
                                      {"why", status.tiers.why}};
  return document::write_json(json) + "\n";
}

Result<Status> parse_status(std::string_view text) {
  const document::Json json = TRY(document::parse_object(text, kStatusFile));
  Status status;
  status.pid.value = std::int32_t(TRY(number_at(json, "pid", std::numeric_limits<std::int32_t>::max())));
  status.started_ticks = std::int64_t(TRY(number_at(json, "started_ticks", std::numeric_limits<std::int64_t>::max())));
  status.version = TRY(document::require_string(json, "program_version", {kStatusFile}));
  status.tiers.why = TRY(document::require_strings(json, "why", {kStatusFile}));
  for (const auto& [key, has, tier] : {std::tuple("v1", &status.tiers.has_v1, &status.tiers.v1),
                                       std::tuple("v2", &status.tiers.has_v2, &status.tiers.v2)}) {
    const std::string name = TRY(document::require_string(json, key, {kStatusFile}));
    *has = !name.empty();
    if (*has) {
      *tier = TRY(container::parse_tier(name));
    }
  }
  return status;
}

Result<void> write_status(const kernel::Host& host, const Status& status) {
  return write_run_file(host, "status.json", render_status(status));
}

// Another daemon, with another journal, may have written it since.
void remove_status(const kernel::Host& host) {
  const std::optional<Status> status = read_status(host);
  if (status && status->pid.value != ::getpid()) {
    return;
  }
  (void)::unlinkat(host.root.get(), kernel::below_root(kStatusFile).c_str(), 0);
}

std::optional<Status> read_status(const kernel::Host& host) {
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(kStatusFile));
  const Result<Status> status = text ? parse_status(*text) : Result<Status>(std::unexpected(text.error()));
  if (!status) {
    return std::nullopt;
  }
  return is_running(host, status->pid, status->started_ticks) ? std::optional(*status) : std::nullopt;
}

}  // namespace hf::journal
