// ClaimReader: asks the API server for claims on a thread and a connection of its own. It asks once: kubelet repeats
// what fails, and waits for the answer, so that it must not stand behind other requests.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "adapters/apiserver/client.h"
#include "kernel/net/event_loop.h"
#include "services/plugin/dra/api_calls.h"

namespace hf::plugin {

class ClaimReader {
 public:
  using ReadAccess = std::function<Result<apiserver::Access>()>;

  explicit ClaimReader(ReadAccess read_access);
  ClaimReader(const ClaimReader&) = delete;
  ClaimReader& operator=(const ClaimReader&) = delete;
  ~ClaimReader();  // does not wait for the server

  static constexpr std::size_t kMostWaiting = 256;  // more claims than a host has pods

  // `done` is called on this thread, or at once where too many wait. What is late when its turn comes is not sent.
  void request(apiserver::Request request, ApiDone done);

 private:
  Result<apiserver::Response> send(const apiserver::Request& request);
  Result<std::shared_ptr<apiserver::Client>> open_client();

  ReadAccess read_access_;
  std::mutex mutex_;
  std::shared_ptr<apiserver::Client> client_;  // of this object and of its thread, which may be waiting for it
  kernel::EventLoop loop_;
  std::atomic<std::size_t> waiting_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;  // the last: it uses all others
};

}  // namespace hf::plugin
