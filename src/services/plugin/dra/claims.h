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
  std::function<std::vector<resource::ClusterDevice>()> read_devices;  // as they are now
  std::function<void(const std::string& line, bool is_warning)> log;
};

class Claims {
 public:
  using Done = std::function<void(const kube::PrepareAnswers&)>;

  Claims(const kernel::Host& host, ApiCalls& calls, ClaimSettings settings);

  // Reads the file again: another instance may have written it.
  void read();
  // Every claim is in the answer, which comes before kubelet gives up.
  void prepare(const std::vector<resource::ClaimName>& names, Done done);
  kube::UnprepareAnswers unprepare(const std::vector<resource::ClaimName>& names);
  // The devices have changed: what waited for them is tried again.
  void try_again();
  void work(std::uint64_t now);
  [[nodiscard]] std::uint64_t next_due() const;
  // Answers what is under way. From here on nothing is prepared or written.
  void stop();

  [[nodiscard]] const std::map<std::string, resource::PreparedClaim>& prepared() const { return prepared_; }
  struct Counts {  // of answers since the start
    std::uint64_t prepared = 0;
    std::uint64_t refused = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  // The claims of one call. They are decided together, when the API server has answered for all of them.
  struct Batch {
    std::map<std::string, resource::ClaimName> asked;              // by UID
    std::map<std::string, Result<resource::ResourceClaim>> found;  // as far as it has answered
    std::uint64_t deadline = 0;
    Done done;

    [[nodiscard]] bool is_complete() const { return found.size() == asked.size(); }
  };
  using BatchPtr = std::shared_ptr<Batch>;                          // of this object and of its requests under way
  using Prepared = std::map<std::string, resource::PreparedClaim>;  // by UID
  using Devices = std::vector<resource::ClusterDevice>;

  void request(const BatchPtr& batch, const resource::ClaimName& name);
  void take(const BatchPtr& batch, const std::string& uid, Result<resource::ResourceClaim> claim);
  void conclude(const BatchPtr& batch);
  [[nodiscard]] Result<resource::PreparedClaim> decide(const resource::ClaimName& name,
                                                       const Result<resource::ResourceClaim>& claim,
                                                       const Devices& devices) const;
  [[nodiscard]] Result<resource::PreparedClaim> known(const resource::ClaimName& name, const Error& why,
                                                      const Devices& devices) const;
  void refuse(const std::vector<resource::ClaimName>& names);
  void answer(Batch& batch, kube::PrepareAnswers answers, Prepared prepared);
  [[nodiscard]] Result<void> write(const Prepared& prepared) const;

  const kernel::Host& host_;
  ApiCalls& calls_;
  ClaimSettings settings_;
  Prepared prepared_;
  std::vector<BatchPtr> batches_;  // without an answer; those that are complete wait for their CDI names
  Counts counts_;
  bool tries_again_ = false;
  bool is_stopped_ = false;
  std::string last_problem_;  // of the file; said once
};

}  // namespace hf::plugin
