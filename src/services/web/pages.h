// Pages: answers each path of the server. A snapshot is rendered once for all clients.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/report/snapshot.h"
#include "services/web/details.h"
#include "services/web/reply.h"
#include "services/web/request.h"

namespace hf::web {

inline constexpr const char* kEventsPath = "/api/v1/events";

class Pages {
 public:
  // The snapshot may be null; `now` is in milliseconds since 1970.
  struct Context {
    Details details = Details::hidden;
    std::int64_t now = 0;
  };
  Reply answer(const Request& request, const std::shared_ptr<const report::Snapshot>& snapshot, const Context& context);

 private:
  void use_snapshot(const std::shared_ptr<const report::Snapshot>& snapshot);
  Reply snapshot_page(const Request& request, Details details);
  Reply metrics_page();

  std::shared_ptr<const report::Snapshot> shown_;  // the cached bodies below are rendered from it
  std::uint64_t generation_ = 0;
  Body json_;
  Body brief_;  // without details
  Body metrics_;
};

// Why clients should not rely on the guard now; "" if they can.
std::string why_not_ready(const report::Snapshot* snapshot, std::int64_t now);

}  // namespace hf::web
