// A machine as a picture: sockets hold NUMA nodes, those hold caches, those hold cores, and a core's cells are its
// threads. A cell has its owner's colour; the names are in the legend, and in the cell's tooltip.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "render/cpu.h"

namespace hf::report {
namespace {

constexpr std::uint32_t kCellWidth = 34;
constexpr std::uint32_t kCellHeight = 20;
constexpr std::uint32_t kGap = 6;
constexpr std::uint32_t kTitle = 18;
constexpr std::uint32_t kCoresPerLine = 8;
constexpr std::array kColours = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1",
                                 "#76b7b2", "#edc948", "#9c755f", "#ff9da7", "#bab0ac"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char character : text) {
    switch (character) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += std::uint8_t(character) < 0x20 ? '?' : character;
    }
  }
  return safe;
}

// A piece of the picture, drawn from its own corner.
struct Picture {
  std::string body;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

std::string at(std::uint32_t x, std::uint32_t y, const std::string& body) {
  return "<g transform=\"translate(" + std::to_string(x) + "," + std::to_string(y) + ")\">" + body + "</g>\n";
}

std::string text_at(std::uint32_t x, std::uint32_t y, const std::string& text) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\">" + escaped(text) + "</text>";
}

// Pieces side by side, `columns` in a line, in a box with a title.
Picture boxed(const std::string& title, const char* style, const std::vector<Picture>& pieces, std::size_t columns) {
  Picture box{.body = "", .width = 0, .height = kTitle};
  std::uint32_t x = kGap;
  std::uint32_t line = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && i % columns == 0) {
      box.height += line + kGap;
      x = kGap;
      line = 0;
    }
    box.body += at(x, box.height, pieces[i].body);
    x += pieces[i].width + kGap;
    line = std::max(line, pieces[i].height);
    box.width = std::max(box.width, x);
  }
  box.height += line + kGap;
  box.width = std::max<std::uint32_t>(box.width, std::uint32_t(title.size()) * 7 + 2 * kGap);
  box.body = "<rect class=\"" + std::string(style) + "\" width=\"" + std::to_string(box.width) + "\" height=\"" +
             std::to_string(box.height) + "\"/>" + text_at(kGap, kTitle - 5, title) + "\n" + box.body;
  return box;
}

class Painter {
 public:
  explicit Painter(const CpuMap& map) : map_(map) {
    if (map.state) {
      for (const auto& [owner, cpus] : map.state->entries) {
        owners_.push_back({owner.pod + "/" + owner.container, cpus});
      }
    }
  }

  [[nodiscard]] Picture machine() const {
    std::vector<Picture> sockets;
    for (const std::uint32_t socket : distinct(map_.topology.cpus, [](const cpu::Cpu& cpu) { return cpu.socket; })) {
      sockets.push_back(paint_socket(socket));
    }
    Picture picture = boxed(map_.source, "machine", sockets, 2);
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      picture.body += "<rect x=\"" + std::to_string(kGap) + "\" y=\"" + std::to_string(picture.height + 4) +
                      R"(" width="14" height="12" fill=")" + colour_of(i) + "\"/>" +
                      text_at(26, picture.height + 14, owners_[i].title + ": " + to_string(owners_[i].cpus)) + "\n";
      picture.height += kTitle;
    }
    if (map_.state) {
      picture.body += text_at(26, picture.height + 14, "shared: " + to_string(map_.state->shared)) + "\n";
      picture.height += kTitle;
    }
    return picture;
  }

 private:
  struct Owned {
    std::string title;
    cpu::CpuSet cpus;
  };

  template <class Field>
  static std::set<std::uint32_t> distinct(const std::vector<cpu::Cpu>& cpus, Field field) {
    std::set<std::uint32_t> ids;
    for (const cpu::Cpu& cpu : cpus) {
      ids.insert(field(cpu));
    }
    return ids;
  }

  static std::string colour_of(std::size_t owner) { return kColours[owner % kColours.size()]; }

  template <class Keep>
  [[nodiscard]] std::vector<cpu::Cpu> those(Keep keep) const {
    std::vector<cpu::Cpu> cpus;
    std::ranges::copy_if(map_.topology.cpus, std::back_inserter(cpus), keep);
    return cpus;
  }

  [[nodiscard]] std::string paint_cpu(std::uint32_t cpu) const {
    std::string fill = "#ffffff";
    std::string title = "CPU " + std::to_string(cpu);
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i].cpus.contains(cpu)) {
        fill = colour_of(i);
        title += ", " + owners_[i].title;
      }
    }
    return R"(<rect class="cpu" width=")" + std::to_string(kCellWidth) + "\" height=\"" + std::to_string(kCellHeight) +
           "\" fill=\"" + fill + "\"><title>" + escaped(title) + "</title></rect>" +
           text_at(4, 14, std::to_string(cpu));
  }

  [[nodiscard]] Picture paint_core(const std::vector<std::uint32_t>& threads) const {
    Picture core{.body = "", .width = kCellWidth, .height = kCellHeight * std::uint32_t(threads.size())};
    for (std::size_t i = 0; i < threads.size(); ++i) {
      core.body += at(0, std::uint32_t(i) * kCellHeight, paint_cpu(threads[i]));
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
    return boxed("cache " + std::to_string(cache), "cache", pieces, kCoresPerLine);
  }

  [[nodiscard]] Picture paint_node(cpu::NumaId node, const std::vector<cpu::Cpu>& cpus) const {
    std::vector<Picture> caches;
    for (const std::uint32_t cache : distinct(cpus, [](const cpu::Cpu& cpu) { return cpu.cache; })) {
      caches.push_back(paint_cache(cache, cpus));
    }
    std::string title = "NUMA node " + std::to_string(node.value);
    for (const cpu::DeviceLocation& device : map_.topology.devices) {
      title += device.numa == node ? " · " + device.name : "";
    }
    return boxed(title, "node", caches, 2);
  }

  [[nodiscard]] Picture paint_socket(std::uint32_t socket) const {
    const std::vector<cpu::Cpu> here = those([&](const cpu::Cpu& cpu) { return cpu.socket == socket; });
    std::vector<Picture> nodes;
    for (const std::uint32_t node : distinct(here, [](const cpu::Cpu& cpu) { return cpu.numa.value; })) {
      nodes.push_back(paint_node(
          {node}, those([&](const cpu::Cpu& cpu) { return cpu.socket == socket && cpu.numa.value == node; })));
    }
    return boxed("socket " + std::to_string(socket), "socket", nodes, 2);
  }

  const CpuMap& map_;
  std::vector<Owned> owners_;
};

}  // namespace

std::string render_svg(const CpuMap& map) {
  const Picture picture = Painter(map).machine();
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
         std::to_string(picture.width) + "\" height=\"" + std::to_string(picture.height) +
         "\" font-family=\"sans-serif\" "
         "font-size=\"12\">\n<style>rect{stroke:#555}.machine{fill:#fff}.socket{fill:#eef}"
         ".node{fill:#efe}.cache{fill:#fed}.cpu{stroke:#999}</style>\n" +
         picture.body + "</svg>\n";
}

}  // namespace hf::report
