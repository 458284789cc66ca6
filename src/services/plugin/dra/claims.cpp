#include "services/plugin/dra/claims.h"

#include <algorithm>
#include <utility>

#include "adapters/kube/claim_json.h"
#include "adapters/kube/slice_json.h"
#include "core/base/text.h"
#include "kernel/files/clock.h"
#include "kernel/files/file.h"

namespace hf::plugin {
namespace {

using resource::ClaimName;
using resource::PreparedClaim;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLimit = 30 * kSecond;  // kubelet waits for 45 s
constexpr unsigned kOk = 200;
constexpr unsigned kNotFound = 404;
constexpr std::uint32_t kPrivate = 0600;

std::string devices_of(const PreparedClaim& claim) {
  std::vector<std::string> names;
  for (const resource::PreparedDevice& device : claim.devices) {
    names.push_back(device.device);
  }
  return join(names, ",");
}

}  // namespace

Claims::Claims(const kernel::Host& host, ApiCalls& calls, ClaimSettings settings)
    : host_(host), calls_(calls), settings_(std::move(settings)) {
  read();
}

void Claims::prepare(const std::vector<ClaimName>& names, Done done) {
  std::map<std::string, ClaimName> asked;
  for (const ClaimName& name : names) {
    asked.emplace(name.uid, name);
  }
  const auto batch = std::make_shared<Batch>();
  batch->size = asked.size();
  batch->deadline = kernel::monotonic_now() + kLimit;
  batch->done = std::move(done);
  std::erase_if(batches_, [](const std::weak_ptr<Batch>& one) { return one.expired(); });
  batches_.push_back(batch);
  if (asked.empty()) {
    finish(*batch);
  }
  for (const auto& [uid, name] : asked) {
    request(batch, name);
  }
}

void Claims::request(const BatchPtr& batch, const ClaimName& name) {
  if (const Result<void> checked = check_claim_name(name); !checked) {
    return settle(batch, name, std::unexpected(checked.error()));
  }
  calls_.send({"GET", kube::claim_path(name)}, batch->deadline,
              [this, batch, name](const Result<apiserver::Response>& response) { take(batch, name, response); });
}

void Claims::take(const BatchPtr& batch, const ClaimName& name, const Result<apiserver::Response>& response) {
  if (!response || response->status >= 500) {
    const Error error =
        response ? Error{std::errc::io_error, kube::refusal_in(response->status, response->body)} : response.error();
    return settle(batch, name, known(name, error));
  }
  const auto refuse = [&](const std::string& why) {
    settle(batch, name, fail(std::errc::invalid_argument, "claim " + to_string(name) + ": " + why));
  };
  if (response->status != kOk) {
    return refuse(response->status == kNotFound ? "the API server does not have it"
                                                : kube::refusal_in(response->status, response->body));
  }
  Result<resource::ResourceClaim> claim = kube::parse_claim(response->body);
  if (!claim) {
    return refuse(claim.error().message);
  }
  decide({batch, name, *std::move(claim)});
}

// A claim that was prepared before is answered without the API server: kubelet asks again after its own restart.
Result<PreparedClaim> Claims::known(const ClaimName& name, const Error& why) const {
  const auto found = prepared_.find(name.uid);
  if (found == prepared_.end() || found->second.name != name) {
    return fail(why.code, "claim " + to_string(name) + " cannot be read: " + why.message);
  }
  TRY(check_prepared(found->second, settings_.look()));
  return found->second;
}

void Claims::decide(const Waiting& asked) {
  Result<PreparedClaim> prepared = resource::prepare(asked.name, asked.claim, settings_.pool, settings_.look());
  const bool waits = !prepared && prepared.error().code == std::errc::resource_unavailable_try_again;
  if (waits && kernel::monotonic_now() < asked.batch->deadline) {
    waiting_.push_back(asked);
    return;
  }
  settle(asked.batch, asked.name, std::move(prepared));
}

void Claims::settle(const BatchPtr& batch, const ClaimName& name, Result<PreparedClaim> answer) {
  batch->answers.insert_or_assign(name.uid, std::move(answer));
  if (batch->answers.size() == batch->size) {
    finish(*batch);
  }
}

// Written before kubelet is answered: what it was told outlives this process.
void Claims::finish(Batch& batch) {
  const std::map<std::string, PreparedClaim> before = prepared_;
  for (const auto& [uid, answer] : batch.answers) {
    if (answer) {
      prepared_[uid] = *answer;
    }
  }
  if (const Result<void> written = prepared_ == before ? Result<void>() : write(); !written) {
    prepared_ = before;
    for (auto& [uid, answer] : batch.answers) {
      answer = answer ? Result<PreparedClaim>(std::unexpected(written.error())) : std::move(answer);
    }
  }
  for (const auto& [uid, answer] : batch.answers) {
    if (answer) {
      settings_.log("prepared claim=" + to_string(answer->name) + " devices=" + devices_of(*answer), false);
    } else {
      settings_.log("not-prepared uid=" + quote(uid) + " error=" + quote(answer.error().message), true);
    }
  }
  if (const Done done = std::exchange(batch.done, nullptr)) {
    done(batch.answers);
  }
  if (prepared_ != before) {
    (void)settings_.look();  // the device plugin must know
  }
}

kube::UnprepareAnswers Claims::unprepare(const std::vector<ClaimName>& names) {
  const std::map<std::string, PreparedClaim> before = prepared_;
  for (const ClaimName& name : names) {
    prepared_.erase(name.uid);
  }
  const Result<void> written = prepared_ == before ? Result<void>() : write();
  prepared_ = written ? std::move(prepared_) : before;
  kube::UnprepareAnswers answers;
  for (const ClaimName& name : names) {
    const bool is_kept = before.contains(name.uid) && !written;
    answers.insert_or_assign(name.uid, is_kept ? written : Result<void>());
    settings_.log((is_kept ? "not-unprepared claim=" : "unprepared claim=") + quote(to_string(name)), is_kept);
  }
  if (prepared_ != before) {
    (void)settings_.look();
  }
  return answers;
}

void Claims::try_again() { tries_again_ = true; }

void Claims::work(std::uint64_t now) {
  if (!std::exchange(tries_again_, false) && next_due() > now) {
    return;
  }
  for (const Waiting& asked : std::exchange(waiting_, {})) {
    decide(asked);
  }
}

std::uint64_t Claims::next_due() const {
  std::uint64_t due = tries_again_ && !waiting_.empty() ? 0 : kernel::EventLoop::kNever;
  for (const Waiting& asked : waiting_) {
    due = std::min(due, asked.batch->deadline);
  }
  return due;
}

void Claims::stop() {
  waiting_.clear();
  for (const std::weak_ptr<Batch>& one : std::exchange(batches_, {})) {
    const BatchPtr batch = one.lock();
    if (const Done done = batch ? std::exchange(batch->done, nullptr) : nullptr) {
      done({});  // kubelet asks again for what is missing
    }
  }
}

void Claims::read() {
  const Result<std::string> text = kernel::read_trusted_file(host_.root.get(), kernel::below_root(settings_.file));
  if (!text && text.error().code == std::errc::no_such_file_or_directory) {
    return;
  }
  const Result<std::vector<PreparedClaim>> claims = text ? kube::parse_prepared(*text) : std::unexpected(text.error());
  if (!claims) {
    // kubelet has its own record of what it prepared, and asks again for what it needs.
    settings_.log("claims-forgotten file=" + settings_.file + " error=" + quote(claims.error().message), true);
    return;
  }
  for (const PreparedClaim& claim : *claims) {
    prepared_[claim.name.uid] = claim;
  }
}

Result<void> Claims::write() const {
  std::vector<PreparedClaim> claims;
  claims.reserve(prepared_.size());
  for (const auto& [uid, claim] : prepared_) {
    claims.push_back(claim);
  }
  const std::string text = kube::render_prepared(claims);
  return kernel::replace_file(host_.root.get(), kernel::below_root(settings_.file),
                              {text, kPrivate, std::nullopt, true});
}

}  // namespace hf::plugin
