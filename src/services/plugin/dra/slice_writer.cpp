#include "services/plugin/dra/slice_writer.h"

#include <algorithm>
#include <utility>

#include "adapters/kube/slice_json.h"
#include "core/base/text.h"

namespace hf::plugin {
namespace {

using resource::SliceAction;
using resource::SliceStep;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kLimit = 60 * kSecond;        // of one request, with all that is repeated below it
constexpr std::uint64_t kCheckPause = 300 * kSecond;  // and a tenth less or more: slices may be removed by anyone
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

void SliceWriter::publish(std::vector<resource::PublishedDevice> devices) {
  if (!has_devices_ || devices != devices_) {
    has_devices_ = true;
    devices_ = std::move(devices);
    next_check_ = settings_.now();
  }
}

void SliceWriter::check_soon() {
  const std::uint64_t now = settings_.now();
  soon_ = {now, now + between(5 * kSecond, 10 * kSecond), now + between(40 * kSecond, 60 * kSecond)};
}

void SliceWriter::work() {
  if (const std::uint64_t now = settings_.now(); next_due() <= now) {
    start(now);
  }
}

std::uint64_t SliceWriter::between(std::uint64_t shortest, std::uint64_t longest) const {
  return shortest + std::uint64_t(double(longest - shortest) * settings_.random());
}

std::uint64_t SliceWriter::next_due() const {
  if (is_busy_ || !has_devices_) {
    return kernel::EventLoop::kNever;
  }
  return std::min({next_check_, next_retry_, soon_.empty() ? kernel::EventLoop::kNever : *soon_.begin()});
}

void SliceWriter::start(std::uint64_t now) {
  is_busy_ = true;
  next_check_ = now + between(kCheckPause - kCheckPause / 10, kCheckPause + kCheckPause / 10);
  next_retry_ = kernel::EventLoop::kNever;
  soon_.erase(soon_.begin(), soon_.upper_bound(now));
  read_node();
}

void SliceWriter::send(apiserver::Request request, std::function<void(const apiserver::Response&)> done) {
  request.deadline = settings_.now() + kLimit;
  api_(std::move(request), [this, done = std::move(done)](const Result<apiserver::Response>& response) {
    if (response) {
      done(*response);
    } else {
      retry(response.error().message);
    }
  });
}

// Its UID makes the slices a part of the node: they are removed with it. A node that was registered again has another,
// and one that does not exist can have no slices: they would stay for ever.
void SliceWriter::read_node() {
  send({"GET", kube::node_path(settings_.pool.node)}, [this](const apiserver::Response& response) {
    const Result<std::string> uid = kube::parse_uid(response.body);
    const bool is_refused = response.status == kForbidden;
    const std::string problem = is_refused ? kube::refusal_in(response.status, response.body) : "";
    if (!is_refused && (!is_fine(response) || !uid)) {
      return retry(is_fine(response) ? uid.error().message : kube::refusal_in(response.status, response.body));
    }
    if (std::exchange(node_problem_, problem) != problem && is_refused) {
      settings_.log("no-node error=" + quote(problem), true);
    }
    settings_.pool.node_uid = is_refused ? settings_.pool.node_uid : *uid;
    read_slices();
  });
}

void SliceWriter::read_slices() {
  send({"GET", kube::slices_path(settings_.pool)}, [this](const apiserver::Response& response) {
    if (is_fine(response)) {
      plan(response.body);
    } else {
      retry(kube::refusal_in(response.status, response.body));
    }
  });
}

void SliceWriter::plan(const std::string& list) {
  const Result<std::vector<resource::FoundSlice>> found = kube::parse_slices(settings_.pool, list);
  if (!found) {
    return retry(found.error().message);
  }
  std::vector<SliceStep> steps = plan_slices(settings_.pool, devices_, *found);
  if (!steps.empty()) {
    settings_.log("publishing devices=" + std::to_string(devices_.size()) +
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
  send(request_of(settings_.pool, step),
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
    settings_.log("published-again", false);
  }
}

// All of it is read again: a conflict means that it has changed.
void SliceWriter::retry(const std::string& problem) {
  is_busy_ = false;
  pause_ = std::clamp(pause_ * 2, kShortestPause, kLongestPause);
  next_retry_ = settings_.now() + between(pause_ / 2, pause_);
  if (problem != last_problem_) {
    last_problem_ = problem;
    settings_.log("not-published error=" + quote(problem), true);
  }
}

}  // namespace hf::plugin
