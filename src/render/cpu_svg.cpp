// A machine as a picture: sockets hold NUMA nodes, those hold caches and devices, caches hold cores, and a core's cells
// are its threads. A cell has its owner's colour; the names are in the legend, and in the cell's tooltip.
#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "render/cpu.h"
#include "render/svg.h"

namespace hf::report {
namespace {

constexpr std::uint32_t kCellWidth = 34;
constexpr std::uint32_t kCellHeight = 20;
constexpr std::uint32_t kGap = 6;
constexpr std::uint32_t kLine = 18;
constexpr std::uint32_t kCoresPerLine = 8;
constexpr std::size_t kDevicesPerLine = 4;
constexpr std::size_t kMostInMatrix = 16;  // NUMA nodes; the tooltips have the distances of larger machines

struct Owner {
  std::string title;
  std::string detail;  // for the tooltip; "" where the title says it all
  cpu::CpuSet cpus;
};

template <class Field>
std::set<std::uint32_t> distinct(const std::vector<cpu::Cpu>& cpus, Field field) {
  std::set<std::uint32_t> ids;
  for (const cpu::Cpu& cpu : cpus) {
    ids.insert(field(cpu));
  }
  return ids;
}

std::string distances_of(const cpu::Topology& topology, cpu::NumaId node) {
  std::vector<std::string> parts;
  for (const cpu::NumaId other : numa_nodes(topology)) {
    parts.push_back(std::to_string(other.value) + ": " + std::to_string(distance(topology, node, other)));
  }
  return topology.distances.empty() ? "" : ", distances to " + join(parts, ", ");
}

class Painter {
 public:
  Painter(const cpu::Topology& topology, std::vector<Owner> owners) : topology_(topology), owners_(std::move(owners)) {}

  [[nodiscard]] Picture machine(const std::string& source) const {
    std::vector<Picture> sockets;
    for (const std::uint32_t socket : distinct(topology_.cpus, [](const cpu::Cpu& cpu) { return cpu.socket; })) {
      sockets.push_back(paint_socket(socket));
    }
    if (Picture lost = paint_devices(std::nullopt); lost.width > 0) {
      sockets.push_back(svg_box({"on no known NUMA node", "", "socket", 1}, {std::move(lost)}));
    }
    return svg_box({source + described(topology_), "", "machine", 2}, sockets);
  }

  void add_legend(const std::optional<cpu::CpuSet>& shared, Picture& picture) const {
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      const std::string text = owners_[i].title + ": " + to_string(owners_[i].cpus);
      add_line(picture, text, owners_[i].detail,
               R"(<rect y="4" width="14" height="12" fill=")" + to_string(owner_colour(i)) + "\"/>");
    }
    if (shared) {
      add_line(picture, "shared: " + to_string(*shared), "",
               R"(<rect class="free" y="4" width="14" height="12" fill="#ffffff" stroke="#999"/>)");
    }
  }

  // The distances between NUMA nodes, a row for each.
  void add_distances(Picture& picture) const {
    const std::vector<cpu::NumaId> nodes = numa_nodes(topology_);
    if (topology_.distances.empty() || nodes.size() < 2 || nodes.size() > kMostInMatrix) {
      return;
    }
    std::uint32_t top = picture.height + kLine;
    const auto x_of = [](std::size_t column) { return std::uint32_t(70 + column * 30); };
    constexpr std::string_view kRight = R"(text-anchor="end")";
    picture.body += svg_text(kGap, top, "distance");
    for (std::size_t column = 0; column < nodes.size(); ++column) {
      picture.body += svg_text(x_of(column) + 20, top, std::to_string(nodes[column].value), kRight);
    }
    for (const cpu::NumaId from : nodes) {
      top += kLine;
      picture.body += svg_text(kGap, top, "node " + std::to_string(from.value));
      for (std::size_t column = 0; column < nodes.size(); ++column) {
        picture.body +=
            svg_text(x_of(column) + 20, top, std::to_string(distance(topology_, from, nodes[column])), kRight);
      }
      picture.body += "\n";
    }
    picture.height = top + kGap;
    picture.width = std::max(picture.width, x_of(nodes.size()) + kGap);
  }

 private:
  static void add_line(Picture& picture, const std::string& text, const std::string& tooltip, const std::string& mark) {
    picture.body +=
        svg_at(kGap, picture.height,
               "<g>" + (tooltip.empty() ? "" : svg_tooltip(tooltip)) + mark + svg_text(20, 14, text) + "</g>");
    picture.height += kLine;
    picture.width = std::max(picture.width, text_width(text) + 26 + kGap);
  }

  template <class Keep>
  [[nodiscard]] std::vector<cpu::Cpu> those(Keep keep) const {
    std::vector<cpu::Cpu> cpus;
    std::ranges::copy_if(topology_.cpus, std::back_inserter(cpus), keep);
    return cpus;
  }

  [[nodiscard]] std::string paint_cpu(std::uint32_t cpu) const {
    constexpr Colour kFree{255, 255, 255};
    Colour fill = kFree;
    bool is_owned = false;
    std::string title = "CPU " + std::to_string(cpu);
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i].cpus.contains(cpu)) {
        fill = owner_colour(i);
        is_owned = true;
        title += ", " + owners_[i].title;
      }
    }
    const std::string text = is_owned ? R"(class="on" fill=")" + to_string(text_colour_on(fill)) + "\"" : "";
    return std::string(is_owned ? "<g>" : "<g class=\"free\">") + svg_tooltip(title) +
           R"(<rect class="cpu" stroke="#999" width=")" + std::to_string(kCellWidth) + "\" height=\"" +
           std::to_string(kCellHeight) + "\" fill=\"" + to_string(fill) + "\"/>" +
           svg_text(4, 14, std::to_string(cpu), text) + "</g>";
  }

  [[nodiscard]] Picture paint_core(const std::vector<std::uint32_t>& threads) const {
    Picture core{.body = "", .width = kCellWidth, .height = kCellHeight * std::uint32_t(threads.size())};
    for (std::size_t i = 0; i < threads.size(); ++i) {
      core.body += svg_at(0, std::uint32_t(i) * kCellHeight, paint_cpu(threads[i]));
    }
    return core;
  }

  [[nodiscard]] Picture paint_cache(std::uint32_t cache, const std::vector<cpu::Cpu>& cpus) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> cores;
    for (const cpu::Cpu& cpu : cpus) {
      if (cpu.cache == cache) {
        cores[cpu.core].push_back(cpu.id);
      }
    }
    std::vector<Picture> pieces;
    pieces.reserve(cores.size());
    for (const auto& [core, threads] : cores) {
      pieces.push_back(paint_core(threads));
    }
    return svg_box({"cache " + std::to_string(cache), "", "cache", kCoresPerLine}, pieces);
  }

  // The devices on this node, or those whose node is not known; of no width where there is none.
  [[nodiscard]] Picture paint_devices(std::optional<cpu::NumaId> node) const {
    Picture line;
    std::size_t count = 0;
    std::uint32_t x = 0;
    for (const cpu::DeviceLocation& device : topology_.devices) {
      if (device.numa != node) {
        continue;
      }
      const std::string where = node ? " on NUMA node " + std::to_string(node->value) : "";
      const Picture label = svg_label({std::string(base_name(device.name)), "device " + device.name + where, "device"});
      x = count++ % kDevicesPerLine == 0 ? 0 : x;
      line.height =
          std::max(line.height, std::uint32_t((count - 1) / kDevicesPerLine + 1) * (label.height + kGap) - kGap);
      line.body += svg_at(x, line.height - label.height, label.body);
      x += label.width + kGap;
      line.width = std::max(line.width, x);
    }
    return line;
  }

  [[nodiscard]] Picture paint_node(cpu::NumaId node, const std::vector<cpu::Cpu>& cpus) const {
    std::vector<Picture> caches;
    for (const std::uint32_t cache : distinct(cpus, [](const cpu::Cpu& cpu) { return cpu.cache; })) {
      caches.push_back(paint_cache(cache, cpus));
    }
    if (Picture devices = paint_devices(node); devices.width > 0) {
      caches.resize((caches.size() + 1) / 2 * 2);  // in a line of their own
      caches.push_back(std::move(devices));
    }
    const std::string title = "NUMA node " + std::to_string(node.value) + memory_text(topology_, node);
    const std::string tooltip = title + ", CPUs " + to_string(cpus_of(topology_, node)) + distances_of(topology_, node);
    return svg_box({title, tooltip, "node", 2}, caches);
  }

  [[nodiscard]] Picture paint_socket(std::uint32_t socket) const {
    const std::vector<cpu::Cpu> here = those([&](const cpu::Cpu& cpu) { return cpu.socket == socket; });
    std::vector<Picture> nodes;
    for (const std::uint32_t node : distinct(here, [](const cpu::Cpu& cpu) { return cpu.numa.value; })) {
      nodes.push_back(paint_node(
          {node}, those([&](const cpu::Cpu& cpu) { return cpu.socket == socket && cpu.numa.value == node; })));
    }
    return svg_box({"socket " + std::to_string(socket), "", "socket", 2}, nodes);
  }

  const cpu::Topology& topology_;
  std::vector<Owner> owners_;
};

std::string picture_of(const std::string& source, const cpu::Topology& topology, std::vector<Owner> owners,
                       const std::optional<cpu::CpuSet>& shared) {
  const Painter painter(topology, std::move(owners));
  Picture picture = painter.machine(source);
  painter.add_legend(shared, picture);
  painter.add_distances(picture);
  return svg_document(picture, "The CPUs of " + source);
}

}  // namespace

std::string render_svg(const CpuMap& map) {
  std::vector<Owner> owners;
  std::optional<cpu::CpuSet> shared;
  if (map.state) {
    shared = map.state->shared;
    for (const auto& [owner, cpus] : map.state->entries) {
      const auto name = map.pod_names.find(owner.pod);
      const std::string pod = name == map.pod_names.end() ? owner.pod : name->second;
      owners.push_back({pod + "/" + owner.container, pod == owner.pod ? "" : "pod " + owner.pod, cpus});
    }
  }
  return picture_of(map.source, map.topology, std::move(owners), shared);
}

std::string render_svg(const CpuStatus& status) {
  std::vector<Owner> owners;
  for (const CpuContainer& one : status.containers) {
    if (one.is_exclusive) {
      owners.push_back({one.title, "container " + one.id, one.cpus});
    }
  }
  return picture_of("this machine", status.topology, std::move(owners), status.pool);
}

}  // namespace hf::report
