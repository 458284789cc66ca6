// Plugin: one resource, from kubelet's view: a socket in kubelet's directory, registered with kubelet, and a list of
// devices that kubelet reads for as long as it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/resource/offer.h"
#include "kernel/net/event_loop.h"
#include "kernel/net/socket.h"
#include "services/plugin/rpc.h"

namespace hf::plugin {

struct PluginSettings {
  std::string resource;
  std::string directory;   // of the socket
  bool is_found = false;   // by kubelet's plugin watcher: the plugin does not register itself
  Rpc::Handlers handlers;  // allocate and prefer
  std::function<void(const std::string& line, bool is_warning)> log;
};

class Plugin {
 public:
  Plugin(kernel::EventLoop& loop, PluginSettings settings);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin();

  void publish(const resource::Offer& offer) { rpc_->publish(offer); }
  // Opens the socket and registers where one of both is due. `now` is in nanoseconds of CLOCK_MONOTONIC.
  void work(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const { return due_; }
  // Call it when something in the directory has changed: kubelet removes all sockets when it starts.
  void check_directory(std::uint64_t now);

  [[nodiscard]] bool is_connected() const { return rpc_->streams() > 0; }
  // Removes the socket and ends all calls; `stopped` is called in the loop when this object may be destroyed.
  void stop(std::function<void()> stopped);

 private:
  [[nodiscard]] std::string path() const { return settings_.directory + "/" + socket_name_; }
  [[nodiscard]] std::string kubelet() const { return settings_.directory + "/kubelet.sock"; }
  void show_socket(std::uint64_t now);
  void open_socket(std::uint64_t now);
  void close_socket();
  void start_registration(std::uint64_t now);
  void finish_registration(const Result<void>& done);
  [[nodiscard]] bool has_newer_sibling() const;
  void remove_dead_siblings() const;
  void note(const std::string& problem);

  kernel::EventLoop& loop_;
  PluginSettings settings_;
  std::string prefix_;       // of the sockets of all instances of this plugin
  std::string socket_name_;  // its own
  std::unique_ptr<Rpc> rpc_;
  std::optional<kernel::UnixListener> listener_;
  std::uint64_t socket_inode_ = 0;
  std::uint64_t kubelet_inode_ = 0;  // of the socket it was registered at
  std::uint64_t due_ = 0;
  std::uint64_t pause_ = 0;
  bool is_registering_ = false;
  std::string last_problem_;                                       // said once
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);  // for tasks that end after this object
};

}  // namespace hf::plugin
