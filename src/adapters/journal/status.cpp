#include "adapters/journal/status.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kernel/files/fd.h"
#include "kernel/files/file.h"
#include "kernel/process/process.h"

namespace hf::journal {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDirectory = "run/holdfast";
constexpr const char* kName = "status.json";

std::unexpected<Error> malformed() {
  return fail(std::errc::invalid_argument, std::string(kStatusFile) + ": malformed");
}

}  // namespace

std::string render_status(const Status& status) {
  const Json json = {{"version", 1},
                     {"pid", status.pid.value},
                     {"started_ticks", status.started_ticks},
                     {"program_version", status.version},
                     {"v1", status.tiers.has_v1 ? to_string(status.tiers.v1) : ""},
                     {"v2", status.tiers.has_v2 ? to_string(status.tiers.v2) : ""},
                     {"why", status.tiers.why}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Status> parse_status(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Status status;
    status.pid.value = json.at("pid").get<std::int32_t>();
    status.started_ticks = json.at("started_ticks").get<std::int64_t>();
    status.version = json.at("program_version").get<std::string>();
    status.tiers.why = json.at("why").get<std::vector<std::string>>();
    for (const auto& [key, has, tier] : {std::tuple("v1", &status.tiers.has_v1, &status.tiers.v1),
                                         std::tuple("v2", &status.tiers.has_v2, &status.tiers.v2)}) {
      const auto name = json.at(key).get<std::string>();
      *has = !name.empty();
      if (*has) {
        *tier = TRY(container::parse_tier(name));
      }
    }
    return status;
  } catch (const Json::exception&) {
    return malformed();
  }
}

Result<void> write_status(const kernel::Host& host, const Status& status) {
  if (::mkdirat(host.root.get(), kDirectory, 0755) < 0 && errno != EEXIST) {
    return fail_errno(errno, std::string("make /") + kDirectory);
  }
  const kernel::Fd directory = TRY(kernel::open_plain_directory(host.root.get(), kDirectory));
  return kernel::replace_file(directory.get(), kName, {render_status(status)});
}

void remove_status(const kernel::Host& host) {
  (void)::unlinkat(host.root.get(), kernel::below_root(kStatusFile).c_str(), 0);
}

std::optional<Status> read_status(const kernel::Host& host) {
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(kStatusFile));
  const Result<Status> status = text ? parse_status(*text) : Result<Status>(std::unexpected(text.error()));
  if (!status) {
    return std::nullopt;
  }
  const Result<kernel::Process> process = kernel::read_process(host, status->pid);
  const bool is_same_process = process && process->started_at == status->started_ticks;
  return is_same_process ? std::optional(*status) : std::nullopt;
}

}  // namespace hf::journal
