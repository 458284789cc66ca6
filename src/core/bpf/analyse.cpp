#include "core/bpf/analyse.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "core/bpf/access_field.h"
#include "core/bpf/analysis.h"
#include "core/bpf/call.h"
#include "core/bpf/region.h"

namespace hf::bpf {
namespace {

AccessMask accesses_of(device::Kind kind, device::AccessSet set) {
  unsigned mask = 0;
  for (unsigned i = 0; i < kAccessValues; ++i) {
    mask |= kind_at(i) == kind && set.allows(device::Access(combination_at(i))) ? 1U << i : 0U;
  }
  return AccessMask(mask);
}

}  // namespace

Readable<device::Table> analyse(const Code& code, const CallNames& names) {
  if (const Result<void> shape = check_shape(code); !shape) {
    return std::unexpected(Opaque{shape.error().message});
  }
  return Analysis(code, names).run({{Region::everything(), kAllAccesses}});
}

Readable<device::Table> analyse_overrides(const Code& code, const CallNames& names) {
  if (!may_override(code, names)) {
    return device::Table();
  }
  if (const Result<void> shape = check_shape(code); !shape) {
    return std::unexpected(Opaque{shape.error().message});
  }
  return Analysis(code, names).run({{Region::everything(), kAllAccesses}}, Verdict::deny);
}

Readable<device::Table> analyse_within(const Code& code, const device::Table& requests) {
  if (const Result<void> shape = check_shape(code); !shape) {
    return std::unexpected(Opaque{shape.error().message});
  }
  std::vector<Analysis::Start> starts;
  for (const device::Kind kind : device::kKinds) {
    const device::Plane& plane = requests.plane(kind);
    for (std::size_t band = 0; band < plane.size(); ++band) {
      const device::Row& row = plane[band].row;
      for (std::size_t segment = 0; segment < row.size(); ++segment) {
        Region region = Region::everything();
        region = region.extract(Field::major, {plane[band].first, device::last_of(plane, band)});
        region = region.extract(Field::minor, {row[segment].first, device::last_of(row, segment)});
        starts.push_back({std::move(region), accesses_of(kind, row[segment].allowed)});
      }
    }
  }
  const CallNames no_names;
  return Analysis(code, no_names).run(std::move(starts));
}

}  // namespace hf::bpf
