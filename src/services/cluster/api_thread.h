// ApiThread: waits for the API server, so that the loop does not. It tells it what the guard reports about pods and
// this cluster node, and sends what other parts of holdfast-kube write. Claims are read on a thread of their own
// (plugin::ClaimReader).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "adapters/apiserver/client.h"
#include "adapters/config/config.h"
#include "core/base/result.h"
#include "core/report/blame.h"
#include "kernel/files/host.h"

namespace hf::cluster {

struct ApiSettings {
  config::ApiSettings options;
  std::string node;                                        // the cluster node's name
  std::string guard_socket;                                // holdfastd's; "": there is none
  std::function<Result<apiserver::Access>()> read_access;  // called again when the server refuses us
  std::function<void(const std::string& line, bool is_warning)> log;
};

class ApiThread {
 public:
  // Called once: with the server's last answer after all retries, whatever its status, or with an error where the
  // request was dropped: the queue was full, or the thread ends. On the API thread; a full queue drops on the thread
  // that adds.
  using Done = std::function<void(Result<apiserver::Response>)>;

  ApiThread(const kernel::Host& host, ApiSettings settings);
  ApiThread(const ApiThread&) = delete;
  ApiThread& operator=(const ApiThread&) = delete;
  ~ApiThread();  // does not wait for the server

  // These are called from any thread and never wait.
  void request(apiserver::Request request, Done done);
  void report(const report::BlameRecord& record);

  [[nodiscard]] const std::string& node() const;  // as the API server knows this host

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace hf::cluster
