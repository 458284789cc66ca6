// DraDriver: the devices of this host for Dynamic Resource Allocation: published as ResourceSlices, given to containers
// by their claims, with their health for kubelet.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/resource/cluster_device.h"
#include "core/resource/slice.h"
#include "kernel/files/host.h"
#include "kernel/net/event_loop.h"
#include "kernel/net/socket.h"
#include "services/plugin/dra/api_calls.h"
#include "services/plugin/dra/claims.h"
#include "services/plugin/dra/dra_rpc.h"
#include "services/plugin/dra/slice_writer.h"

namespace hf::plugin {

struct DraDriverSettings {
  resource::Pool pool;
  std::string directory;  // of the driver's socket and file, below kubelet's plugins
  std::string registry;   // where kubelet looks for drivers
  Api api;                // for the slices
  Api read_claim;         // once, without other requests before it
  std::function<std::vector<resource::ClusterDevice>()> read_devices;  // as they are now
  std::function<void(const std::string& line, bool is_warning)> log;
};

// A socket that is made again where it was removed.
class KeptSocket {
 public:
  using Accept = std::function<void(kernel::Fd client)>;

  KeptSocket(kernel::EventLoop& loop, std::string path, Accept accept)
      : loop_(loop), path_(std::move(path)), accept_(std::move(accept)) {}
  KeptSocket(const KeptSocket&) = delete;
  KeptSocket& operator=(const KeptSocket&) = delete;
  ~KeptSocket() { close(); }

  Result<void> keep();
  void close();
  [[nodiscard]] bool is_open() const { return listener_.has_value(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  kernel::EventLoop& loop_;
  std::string path_;
  Accept accept_;
  std::optional<kernel::UnixListener> listener_;
  std::uint64_t inode_ = 0;
};

class DraDriver {
 public:
  DraDriver(const kernel::Host& host, kernel::EventLoop& loop, DraDriverSettings settings);

  void publish(const std::vector<resource::ClusterDevice>& devices);
  // Times are nanoseconds of CLOCK_MONOTONIC.
  void work(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;
  // The devices of prepared claims, and whose they are.
  [[nodiscard]] resource::Taken taken();
  [[nodiscard]] std::set<std::string> claims() const;  // their names: NAMESPACE/NAME
  [[nodiscard]] resource::OfferStatus status() const;
  // Removes the sockets and ends all calls; `stopped` is called in the loop when this object may be destroyed. The
  // slices stay: kubelet removes them if no driver comes back.
  void stop(std::function<void()> stopped);

 private:
  void keep_sockets();
  void take_registration(bool is_registered, const std::string& error);
  void note(const std::string& problem);

  const kernel::Host& host_;
  DraDriverSettings settings_;
  ApiCalls calls_;
  ApiCalls claim_calls_;
  SliceWriter slices_;
  Claims claims_;
  DraRpc rpc_;
  KeptSocket service_;
  KeptSocket registration_;
  std::optional<std::vector<resource::ClusterDevice>> devices_;  // as they were published last
  std::uint64_t next_health_ = 0;
  std::uint64_t next_sockets_ = 0;
  bool is_registered_ = false;  // as kubelet said last
  bool is_stopping_ = false;
  std::string last_problem_;  // said once
};

}  // namespace hf::plugin
