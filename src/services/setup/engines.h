// Engines: the container engines that can be told of our runtime, and how.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/engine/registration.h"
#include "core/base/result.h"

namespace hf::setup {

struct Engine {
  std::string name;
  std::string file;                 // where it has its config, or where we put ours beside it
  std::vector<std::string> others;  // files and folders that it reads before that one
  std::string command;              // makes it read its config again; "" where it does so by itself
  std::string undo_command;         // the same when something was taken out of it
  std::function<Result<engine::Edited>(std::string_view, const engine::Registration&, const std::vector<std::string>&)>
      add;
  std::function<Result<std::string>(std::string_view, engine::Before)> remove;
  std::function<Result<std::optional<engine::Registered>>(std::string_view)> find;
  std::function<bool(std::string_view)> is_bare;  // says no more than a file that we would begin
};

Result<Engine> find_engine(std::string_view name);

}  // namespace hf::setup
