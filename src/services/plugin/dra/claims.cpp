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

// Only an answer that the claim is gone (404) or another one counts against what was prepared. Every other refusal is
// about this request: its token (401), its rights (403, also while the server starts), its number (429), the server.
Result<resource::ResourceClaim> claim_in(const Result<apiserver::Response>& response, const ClaimName& name) {
  if (!response || (response->status != kOk && response->status != kNotFound)) {
    return fail(Reason::unreadable,
                response ? kube::refusal_in(response->status, response->body) : response.error().message);
  }
  const auto refuse = [&](const std::string& why) {
    return fail(std::errc::invalid_argument, "claim " + to_string(name) + ": " + why);
  };
  if (response->status == kNotFound) {
    return refuse("the API server does not have it");
  }
  Result<resource::ResourceClaim> claim = kube::parse_claim(response->body);
  return claim ? std::move(claim) : refuse(claim.error().message);
}

}  // namespace

Claims::Claims(const kernel::Host& host, ApiCalls& calls, ClaimSettings settings)
    : host_(host), calls_(calls), settings_(std::move(settings)) {
  read();
}

void Claims::prepare(const std::vector<ClaimName>& names, Done done) {
  if (is_stopped_) {
    return done({});
  }
  const auto batch = std::make_shared<Batch>();
  for (const ClaimName& name : names) {
    batch->asked.emplace(name.uid, name);
  }
  batch->deadline = kernel::monotonic_now() + kLimit;
  batch->done = std::move(done);
  batches_.push_back(batch);
  for (const auto& [uid, name] : batch->asked) {
    request(batch, name);
  }
  if (names.empty()) {
    conclude(batch);
  }
}

void Claims::request(const BatchPtr& batch, const ClaimName& name) {
  if (const Result<void> checked = check_claim_name(name); !checked) {
    return take(batch, name.uid, std::unexpected(checked.error()));
  }
  apiserver::Request request{"GET", kube::claim_path(name)};
  request.deadline = batch->deadline;
  calls_.send(std::move(request), [this, batch, name](const Result<apiserver::Response>& response) {
    take(batch, name.uid, claim_in(response, name));
  });
}

// A claim that kubelet has unprepared meanwhile has its answer already.
void Claims::take(const BatchPtr& batch, const std::string& uid, Result<resource::ResourceClaim> claim) {
  if (batch->found.emplace(uid, std::move(claim)).second && batch->is_complete()) {
    conclude(batch);
  }
}

// Decided and written down at one moment: what was true when the first of the claims was read may have changed.
void Claims::conclude(const BatchPtr& batch) {
  if (!batch->done) {
    return;
  }
  const Devices devices = settings_.read_devices();
  Prepared prepared = prepared_;
  kube::PrepareAnswers answers;
  bool waits = false;
  for (const auto& [uid, name] : batch->asked) {
    Result<PreparedClaim> decided = decide(name, batch->found.at(uid), devices);
    if (const Result<void> free = decided ? check_free(*decided, prepared) : Result<void>(); !free) {
      decided = std::unexpected(free.error());
    }
    waits = waits || (!decided && decided.error().reason == Reason::not_yet);
    if (decided) {
      prepared[uid] = *decided;
    }
    answers.emplace(uid, std::move(decided));
  }
  if (!waits || kernel::monotonic_now() >= batch->deadline) {
    answer(*batch, std::move(answers), std::move(prepared));
  }
}

Result<PreparedClaim> Claims::decide(const ClaimName& name, const Result<resource::ResourceClaim>& claim,
                                     const Devices& devices) const {
  if (claim) {
    return resource::prepare(name, *claim, settings_.pool, devices);
  }
  return claim.error().reason == Reason::unreadable ? known(name, claim.error(), devices)
                                                    : std::unexpected(claim.error());
}

// A claim that was prepared before is answered without the API server: kubelet asks again after its own restart.
Result<PreparedClaim> Claims::known(const ClaimName& name, const Error& why, const Devices& devices) const {
  const auto found = prepared_.find(name.uid);
  if (found == prepared_.end() || found->second.name != name) {
    return fail(why.code, "claim " + to_string(name) + " cannot be read: " + why.message);
  }
  TRY(check_prepared(found->second, devices));
  return found->second;
}

// Written before kubelet is answered: what it was told outlives this process.
void Claims::answer(Batch& batch, kube::PrepareAnswers answers, Prepared prepared) {
  const bool has_changed = prepared != prepared_;
  const Result<void> written = has_changed ? write(prepared) : Result<void>();
  if (written) {
    prepared_ = std::move(prepared);
  }
  for (auto& [uid, answer] : answers) {
    if (answer && !written) {
      answer = std::unexpected(written.error());
    }
    ++(answer ? counts_.prepared : counts_.refused);
    if (answer) {
      settings_.log("prepared claim=" + to_string(answer->name) + " devices=" + devices_of(*answer), false);
    } else {
      settings_.log("not-prepared uid=" + quote(uid) + " error=" + quote(answer.error().message), true);
    }
  }
  std::erase_if(batches_, [&batch](const BatchPtr& one) { return one.get() == &batch; });
  std::exchange(batch.done, nullptr)(answers);
  if (has_changed && written) {
    (void)settings_.read_devices();  // the device plugin must know
  }
}

kube::UnprepareAnswers Claims::unprepare(const std::vector<ClaimName>& names) {
  Prepared prepared = prepared_;
  for (const ClaimName& name : names) {
    prepared.erase(name.uid);
  }
  const bool has_changed = prepared != prepared_;
  const Result<void> written = is_stopped_   ? fail(std::errc::operation_canceled, "holdfast-kube ends")
                               : has_changed ? write(prepared)
                                             : Result<void>();
  kube::UnprepareAnswers answers;
  for (const ClaimName& name : names) {
    const bool is_kept = !written && prepared_.contains(name.uid);
    answers.insert_or_assign(name.uid, is_kept ? written : Result<void>());
    settings_.log((is_kept ? "not-unprepared claim=" : "unprepared claim=") + quote(to_string(name)), is_kept);
  }
  if (written) {
    prepared_ = std::move(prepared);
  }
  refuse(names);
  if (has_changed && written) {
    (void)settings_.read_devices();
  }
  return answers;
}

// What kubelet has unprepared must not be prepared by a call that came before.
void Claims::refuse(const std::vector<ClaimName>& names) {
  for (const BatchPtr& batch : std::vector(batches_)) {
    for (const ClaimName& name : names) {
      if (batch->asked.contains(name.uid)) {
        batch->found.insert_or_assign(
            name.uid, fail(std::errc::operation_canceled, "claim " + to_string(name) + ": kubelet has unprepared it"));
      }
    }
    if (batch->is_complete()) {
      conclude(batch);
    }
  }
}

void Claims::try_again() { tries_again_ = true; }

void Claims::work(std::uint64_t now) {
  if (!std::exchange(tries_again_, false) && next_due() > now) {
    return;
  }
  for (const BatchPtr& batch : std::vector(batches_)) {
    if (batch->is_complete()) {
      conclude(batch);
    }
  }
}

std::uint64_t Claims::next_due() const {
  std::uint64_t due = kernel::EventLoop::kNever;
  for (const BatchPtr& batch : batches_) {
    if (batch->is_complete()) {
      due = std::min(due, tries_again_ ? 0 : batch->deadline);
    }
  }
  return due;
}

void Claims::stop() {
  is_stopped_ = true;
  for (const BatchPtr& batch : std::exchange(batches_, {})) {
    std::exchange(batch->done, nullptr)({});  // kubelet asks again for what is missing
  }
}

void Claims::read() {
  prepared_.clear();
  const Result<std::string> text = kernel::read_trusted_file(host_.root.get(), kernel::below_root(settings_.file));
  if (!text && text.error().code == std::errc::no_such_file_or_directory) {
    return;
  }
  const Result<std::vector<PreparedClaim>> claims = text ? kube::parse_prepared(*text) : std::unexpected(text.error());
  const std::string problem = claims ? "" : claims.error().message;
  if (std::exchange(last_problem_, problem) != problem && !claims) {
    // kubelet has its own record of what it prepared, and asks again for what it needs.
    settings_.log("claims-forgotten file=" + settings_.file + " error=" + quote(problem), true);
  }
  for (const PreparedClaim& claim : claims.value_or(std::vector<PreparedClaim>())) {
    prepared_[claim.name.uid] = claim;
  }
}

Result<void> Claims::write(const Prepared& prepared) const {
  std::vector<PreparedClaim> claims;
  claims.reserve(prepared.size());
  for (const auto& [uid, claim] : prepared) {
    claims.push_back(claim);
  }
  const std::string text = kube::render_prepared(claims);
  return kernel::replace_file(host_.root.get(), kernel::below_root(settings_.file),
                              {text, kPrivate, std::nullopt, true});
}

}  // namespace hf::plugin
