// EngineSetup: our runtime in the config of a container engine, and out of it again.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/engine/registration.h"
#include "core/base/result.h"
#include "core/report/setup_report.h"
#include "kernel/host.h"

namespace hf::setup {

enum class Doing : std::uint8_t { dry_run, carry_out };

struct EngineOrder {
  std::string engine;
  std::string file;  // "": the engine's usual one
  engine::Registration registration;
  Doing doing = Doing::carry_out;
};

// As the file was before it had anything of ours is kept beside it.
inline constexpr const char* kBackup = ".holdfast-backup";

Result<report::SetupReport> register_runtime(const kernel::Host& host, const EngineOrder& order);
// A file that nobody touched since becomes what it was, byte for byte; otherwise only our pieces are taken out. The
// registration of the order does not matter.
Result<report::SetupReport> undo_registration(const kernel::Host& host, const EngineOrder& order);

}  // namespace hf::setup
