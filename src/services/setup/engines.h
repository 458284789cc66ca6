// Engines: the container engines that our runtime can be registered with, and how.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/engine/registration.h"
#include "core/base/result.h"
#include "services/setup/engine_setup.h"

namespace hf::setup {

struct Engine {
  std::string name;
  std::string file;                 // its config, or the drop-in that we add
  std::vector<std::string> others;  // files and directories that it reads before `file`
  std::string unit;                 // of systemd; "" where it needs no restart
  std::string command;              // reloads its config; "" if it does so by itself
  std::string restart_command;      // for what a reload does not do: it forgets no runtime and finds no hook
  std::string manifest;             // lets pods choose the runtime; "" for engines without pods
  std::string note;                 // what its users may expect and do not get; "" where there is nothing
  std::function<Result<engine::Edited>(std::string_view, const engine::Registration&, const std::vector<std::string>&)>
      add;
  std::function<Result<std::string>(std::string_view, engine::Before)> remove;
  std::function<Result<std::optional<engine::Registered>>(std::string_view)> find;
  std::function<bool(std::string_view)> is_empty;  // has no settings beyond those of a file we would create
};

// As its unit of systemd and its file are, where they are others than the usual ones.
Result<Engine> find_engine(const EngineSetupOptions& options);

}  // namespace hf::setup
