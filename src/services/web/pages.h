// Pages: which path shows what. A snapshot is rendered once, whoever asks.
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
  struct Visit {
    Details details = Details::hidden;
    std::int64_t now = 0;
  };
  Reply answer(const Request& request, const std::shared_ptr<const report::Snapshot>& snapshot, const Visit& visit);

 private:
  void turn_to(const std::shared_ptr<const report::Snapshot>& snapshot);
  Reply snapshot_page(const Request& request, Details details);
  Reply metrics_page();

  std::shared_ptr<const report::Snapshot> shown_;  // kept by the cache: the bodies below are of this one
  std::uint64_t turns_ = 0;
  Body json_;
  Body brief_;  // without details
  Body metrics_;
};

// Why nobody should rely on us now, "" where they may.
std::string why_not_ready(const report::Snapshot* snapshot, std::int64_t now);

}  // namespace hf::web
