// Claims: prepares resource claims for kubelet, and remembers which are prepared in a file that outlives the process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "adapters/kube/dra_messages.h"
#include "core/resource/resource_claim.h"
#include "kernel/files/host.h"
#include "services/plugin/dra/api_calls.h"

namespace hf::plugin {

struct ClaimSettings {
  resource::Pool pool;
  std::string file;
  std::function<std::vector<resource::ClusterDevice>()> look;  // reads the devices as they are now
  std::function<void(const std::string& line, bool is_warning)> log;
};

class Claims {
 public:
  using Done = std::function<void(const kube::PrepareAnswers&)>;

  Claims(const kernel::Host& host, ApiCalls& calls, ClaimSettings settings);

  // Every claim is in the answer, which comes before kubelet gives up.
  void prepare(const std::vector<resource::ClaimName>& names, Done done);
  kube::UnprepareAnswers unprepare(const std::vector<resource::ClaimName>& names);
  // The devices have changed: what waited for them is tried again.
  void try_again();
  void work(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;
  // Answers what is under way.
  void stop();

  [[nodiscard]] const std::map<std::string, resource::PreparedClaim>& prepared() const { return prepared_; }

 private:
  struct Batch {
    kube::PrepareAnswers answers;
    std::size_t size = 0;
    std::uint64_t deadline = 0;
    Done done;
  };
  using BatchPtr = std::shared_ptr<Batch>;  // of the claims of one call
  struct Waiting {
    BatchPtr batch;
    resource::ClaimName name;
    resource::ResourceClaim claim;
  };

  void request(const BatchPtr& batch, const resource::ClaimName& name);
  void take(const BatchPtr& batch, const resource::ClaimName& name, const Result<apiserver::Response>& response);
  [[nodiscard]] Result<resource::PreparedClaim> known(const resource::ClaimName& name, const Error& why) const;
  void decide(const Waiting& asked);
  void settle(const BatchPtr& batch, const resource::ClaimName& name, Result<resource::PreparedClaim> answer);
  void finish(Batch& batch);
  void read();
  [[nodiscard]] Result<void> write() const;

  const kernel::Host& host_;
  ApiCalls& calls_;
  ClaimSettings settings_;
  std::map<std::string, resource::PreparedClaim> prepared_;  // by UID
  std::vector<Waiting> waiting_;                             // for their CDI names
  std::vector<std::weak_ptr<Batch>> batches_;
  bool tries_again_ = false;
};

}  // namespace hf::plugin
