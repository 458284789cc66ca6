#include "services/plugin/dra/slice_writer.h"

#include <algorithm>
#include <utility>

#include "adapters/kube/slice_json.h"
#include "core/base/text.h"
#include "kernel/files/clock.h"

namespace hf::plugin {
namespace {

using resource::SliceAction;
using resource::SliceStep;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLimit = 60 * kSecond;        // of one request, with all that is repeated below it
constexpr std::uint64_t kCheckPause = 300 * kSecond;  // slices may be removed by anyone
constexpr std::uint64_t kShortestPause = kSecond;
constexpr std::uint64_t kLongestPause = 60 * kSecond;
constexpr unsigned kNotFound = 404;
constexpr unsigned kForbidden = 403;

bool is_fine(const apiserver::Response& response) { return response.status >= 200 && response.status < 300; }

apiserver::Request request_of(const resource::Pool& pool, const SliceStep& step) {
  switch (step.action) {
    case SliceAction::create: return {"POST", kube::slice_path(""), kube::render_slice(pool, step)};
    case SliceAction::replace: return {"PUT", kube::slice_path(step.slice.name), kube::render_slice(pool, step)};
    case SliceAction::remove: break;
  }
  return {"DELETE", kube::slice_path(step.slice.name)};
}

}  // namespace

void SliceWriter::publish(std::vector<resource::PublishedDevice> devices, std::uint64_t now) {
  if (!has_devices_ || devices != devices_) {
    has_devices_ = true;
    devices_ = std::move(devices);
    next_check_ = now;
  }
}

void SliceWriter::check_soon(std::uint64_t now) { soon_ = {now, now + 5 * kSecond, now + 40 * kSecond}; }

void SliceWriter::work(std::uint64_t now) {
  if (next_due() <= now) {
    start(now);
  }
}

std::uint64_t SliceWriter::next_due() const {
  if (is_busy_ || !has_devices_) {
    return kernel::EventLoop::kNever;
  }
  return std::min({next_check_, next_retry_, soon_.empty() ? kernel::EventLoop::kNever : *soon_.begin()});
}

void SliceWriter::start(std::uint64_t now) {
  is_busy_ = true;
  next_check_ = now + kCheckPause;
  next_retry_ = kernel::EventLoop::kNever;
  soon_.erase(soon_.begin(), soon_.upper_bound(now));
  read_node();
}

void SliceWriter::send(apiserver::Request request, std::function<void(const apiserver::Response&)> done) {
  calls_.send(std::move(request), kernel::monotonic_now() + kLimit,
              [this, done = std::move(done)](const Result<apiserver::Response>& response) {
                if (response) {
                  done(*response);
                } else {
                  retry(response.error().message);
                }
              });
}

// Its UID makes the slices a part of the node: they are removed with it. A node that was registered again has another.
void SliceWriter::read_node() {
  send({"GET", kube::node_path(pool_.node)}, [this](const apiserver::Response& response) {
    const Result<std::string> uid = kube::parse_uid(response.body);
    const bool is_refused = response.status == kForbidden || response.status == kNotFound;
    const std::string problem = is_refused ? kube::refusal_in(response.status, response.body) : "";
    if (!is_refused && (!is_fine(response) || !uid)) {
      return retry(is_fine(response) ? uid.error().message : kube::refusal_in(response.status, response.body));
    }
    if (std::exchange(node_problem_, problem) != problem && is_refused) {
      log_("no-node error=" + quote(problem), true);
    }
    pool_.node_uid = is_refused ? pool_.node_uid : *uid;
    read_slices();
  });
}

void SliceWriter::read_slices() {
  send({"GET", kube::slices_path(pool_)}, [this](const apiserver::Response& response) {
    if (is_fine(response)) {
      plan(response.body);
    } else {
      retry(kube::refusal_in(response.status, response.body));
    }
  });
}

void SliceWriter::plan(const std::string& list) {
  const Result<std::vector<resource::FoundSlice>> found = kube::parse_slices(list);
  if (!found) {
    return retry(found.error().message);
  }
  std::vector<SliceStep> steps = plan_slices(pool_, devices_, *found);
  if (!steps.empty()) {
    log_("publishing devices=" + std::to_string(devices_.size()) +
             " slices=" + std::to_string(steps.front().slice.count) +
             " generation=" + std::to_string(steps.front().slice.generation),
         false);
  }
  std::ranges::reverse(steps);
  carry_out(std::move(steps));
}

// The last step is carried out first.
void SliceWriter::carry_out(std::vector<SliceStep> steps) {
  if (steps.empty()) {
    return finish();
  }
  const SliceStep step = std::move(steps.back());
  steps.pop_back();
  send(request_of(pool_, step),
       [this, steps = std::move(steps), action = step.action](const apiserver::Response& response) {
         const bool is_gone = action == SliceAction::remove && response.status == kNotFound;
         if (is_fine(response) || is_gone) {
           carry_out(steps);
         } else {
           retry(kube::refusal_in(response.status, response.body));
         }
       });
}

void SliceWriter::finish() {
  is_busy_ = false;
  pause_ = 0;
  if (!last_problem_.empty()) {
    last_problem_.clear();
    log_("published-again", false);
  }
}

// All of it is read again: a conflict means that it has changed.
void SliceWriter::retry(const std::string& problem) {
  is_busy_ = false;
  pause_ = std::clamp(pause_ * 2, kShortestPause, kLongestPause);
  next_retry_ = kernel::monotonic_now() + pause_;
  if (problem != last_problem_) {
    last_problem_ = problem;
    log_("not-published error=" + quote(problem), true);
  }
}

}  // namespace hf::plugin
