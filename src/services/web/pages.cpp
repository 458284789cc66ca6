#include "services/web/pages.h"

#include <algorithm>

#include "core/base/text.h"
#include "render/cpu.h"
#include "render/finding.h"
#include "render/snapshot.h"
#include "render/text_table.h"
#include "services/web/assets.h"

namespace hf::web {
namespace {

constexpr std::int64_t kOldestFresh = 180'000;  // milliseconds

constexpr std::string_view kFindings = "/findings";

Reply finding_page(const std::string& path) {
  const bool is_list = path.size() == kFindings.size();
  const std::string page =
      is_list ? report::html_list_of_pages() : report::html_page_of(path.substr(kFindings.size() + 1));
  if (page.empty()) {
    return text_reply(404, "there is no finding with this code");
  }
  Reply reply;
  reply.type = "text/html; charset=utf-8";
  reply.body = std::make_shared<const std::string>(page);
  return reply;
}

Reply asset_at(const std::string& path) {
  if (path == kFindings || path.starts_with(std::string(kFindings) + "/")) {
    return finding_page(path);
  }
  const auto* const found = std::ranges::find(kAssets, path, &Asset::path);
  if (found == kAssets.end()) {
    return text_reply(404, "there is nothing here");
  }
  Reply reply;
  reply.type = found->type;
  reply.body = std::make_shared<const std::string>(found->bytes);
  return reply;
}

// The machine, coloured by the owners of its CPUs.
Reply picture_of(const report::Snapshot& snapshot) {
  if (!snapshot.cpus || !snapshot.cpus->problem.empty()) {
    return text_reply(404, "CPUs are not managed");
  }
  Reply reply;
  reply.type = "image/svg+xml";
  reply.body = std::make_shared<const std::string>(render_svg(*snapshot.cpus));
  return reply;
}

Reply readiness(const report::Snapshot* snapshot, std::int64_t now) {
  const std::string why = why_not_ready(snapshot, now);
  return why.empty() ? text_reply(200, "ready") : text_reply(503, report::on_one_line(why));
}

}  // namespace

std::string why_not_ready(const report::Snapshot* snapshot, std::int64_t now) {
  if (snapshot == nullptr) {
    return "the host has not been surveyed yet";
  }
  if (!snapshot->missing_capabilities.empty()) {
    return "it lacks " + join(snapshot->missing_capabilities, ", ");
  }
  if (snapshot->is_blind) {
    return "blind: " + (snapshot->why_blind.empty() ? "nothing is watched" : snapshot->why_blind);
  }
  if (now - snapshot->at > kOldestFresh) {
    return "the last survey of the host is " + std::to_string((now - snapshot->at) / 1000) + " s old";
  }
  return "";
}

Reply Pages::answer(const Request& request, const std::shared_ptr<const report::Snapshot>& snapshot,
                    const Context& context) {
  if (request.path == "/healthz") {
    return text_reply(200, "ok");
  }
  if (request.path == "/readyz") {
    return readiness(snapshot.get(), context.now);
  }
  const bool wants_metrics = request.path == "/metrics";
  const bool wants_picture = request.path == "/cpus.svg";
  if (!wants_metrics && !wants_picture && request.path != "/api/v1/snapshot") {
    return asset_at(request.path);
  }
  if (!snapshot) {
    return text_reply(503, why_not_ready(nullptr, context.now));
  }
  if (wants_picture) {
    return picture_of(*snapshot);
  }
  use_snapshot(snapshot);
  return wants_metrics ? metrics_page() : snapshot_page(request, context.details);
}

void Pages::use_snapshot(const std::shared_ptr<const report::Snapshot>& snapshot) {
  if (shown_ == snapshot) {
    return;
  }
  shown_ = snapshot;
  ++generation_;
  json_.reset();
  brief_.reset();
  metrics_.reset();
}

Reply Pages::snapshot_page(const Request& request, Details details) {
  Reply reply;
  reply.type = "application/json";
  // The tag includes the daemon's start, because the generation restarts with it.
  reply.tag = "\"" + std::to_string(shown_->started_at) + "-" + std::to_string(generation_) +
              (details == Details::shown ? "-d\"" : "\"");
  if (request.header("if-none-match") == reply.tag) {
    reply.status = 304;
    return reply;
  }
  Body& body = details == Details::shown ? json_ : brief_;
  if (!body) {
    body = std::make_shared<const std::string>(
        render_json(details == Details::shown ? *shown_ : without_details(*shown_)));
  }
  reply.body = body;
  return reply;
}

Reply Pages::metrics_page() {
  if (!metrics_) {
    metrics_ = std::make_shared<const std::string>(render_metrics(*shown_));
  }
  Reply reply;
  reply.type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = metrics_;
  return reply;
}

}  // namespace hf::web
