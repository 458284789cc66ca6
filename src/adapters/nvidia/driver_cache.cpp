#include "adapters/nvidia/driver_cache.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "adapters/nvidia/driver.h"
#include "adapters/nvidia/file_search.h"
#include "adapters/nvidia/file_table.h"
#include "adapters/nvidia/library_identity.h"
#include "core/base/text.h"
#include "kernel/files/file.h"
#include "kernel/files/rooted_fs.h"

namespace hf::nvidia {
namespace {

constexpr std::array kKinds = {FileKind::library,  FileKind::library32, FileKind::binary,
                               FileKind::firmware, FileKind::config,    FileKind::other};

// The directories in which files of the driver may appear or disappear.
std::set<std::string> searched_directories(const DriverFiles& driver) {
  std::set<std::string> all = {"/etc/ld.so.cache", "/lib/firmware/nvidia", "/lib/firmware/updates/nvidia",
                               "/lib/firmware/nvidia/" + driver.version};
  for (const auto& directories : {library_directories(), binary_directories(), display_directories()}) {
    all.insert(directories.begin(), directories.end());
  }
  for (const std::string_view directory : config_directories()) {
    for (const KnownFile& file : config_files()) {
      all.insert(directory_of(std::string(directory).append("/").append(file.name)));
    }
  }
  for (const DriverFile& file : driver.files) {
    all.insert(directory_of(file.path));
  }
  return all;
}

// A text that changes when one of these directories changes.
std::string stamps_of(const kernel::Host& host, const std::string& root, const std::set<std::string>& directories) {
  std::string stamps;
  for (const std::string& directory : directories) {
    stamps += kernel::stamp_of(host.root.get(), kernel::below_root(root + directory)) + ";";
  }
  return stamps;
}

void identify_libraries(const kernel::Host& host, DriverFiles& driver) {
  for (const DriverFile& file : driver.files) {
    const bool is_library = file.kind == FileKind::library || file.kind == FileKind::library32;
    const std::string path = driver.root + file.path;
    const Result<kernel::Fd> opened =
        is_library ? kernel::open_file_in(host.root.get(), path) : fail(std::errc::invalid_argument, "");
    if (std::optional<LibraryIdentity> identity = opened ? read_library_identity(*opened) : std::nullopt) {
      driver.identities.emplace(path, *std::move(identity));
    }
  }
}

void add_line(std::string& text, const std::vector<std::string>& fields) { text += join(fields, "\t") + "\n"; }

std::optional<FileKind> parse_kind(std::string_view text) {
  const auto number = parse_number<unsigned>(text);
  const auto found = std::ranges::find_if(kKinds, [&](FileKind kind) { return number == unsigned(kind); });
  return found == kKinds.end() ? std::nullopt : std::optional(*found);
}

bool parse_line(DriverFiles& driver, const std::vector<std::string_view>& fields) {
  const auto field = [&fields](std::size_t index) { return std::string(fields[index]); };
  const auto is = [&fields](std::string_view name, std::size_t count) {
    return fields[0] == name && fields.size() == count + 1;
  };
  if (is("driver", 2)) {
    driver.version = field(1);
    driver.root = field(2);
  } else if (is("file", 4)) {
    const std::optional<FileKind> kind = parse_kind(fields[2]);
    driver.files.push_back({field(1), kind.value_or(FileKind::other), field(3), field(4)});
    return kind.has_value();
  } else if (is("link", 3)) {
    driver.links.push_back({field(1), field(2), field(3)});
  } else if (is("directory", 1)) {
    driver.library_directories.push_back(field(1));
  } else if (is("identity", 3)) {
    const auto flags = parse_number<std::uint32_t>(fields[3]);
    driver.identities[field(1)] = {field(2), flags.value_or(0)};
    return flags.has_value();
  } else {
    return false;
  }
  return true;
}

// The cached files with the sockets of now, which come and go while the directories stay.
Result<DriverFiles> with_sockets(const kernel::Host& host, DriverFiles driver) {
  std::erase_if(driver.files, [](const DriverFile& file) { return file.kind == FileKind::socket; });
  const kernel::Fd root = TRY(kernel::open_directory_in(host.root.get(), driver.root.empty() ? "/" : driver.root));
  add_sockets(driver, root.get());
  return driver;
}

// Absent where there is none, it is of another driver, or something has changed since.
std::optional<DriverFiles> read_cache(const kernel::Host& host, const std::string& version, const std::string& root) {
  const Result<std::string> text = kernel::read_trusted_file(host.root.get(), kernel::below_root(kDriverCache));
  const std::size_t end = text ? text->find('\n') : std::string::npos;
  if (end == std::string::npos) {
    return std::nullopt;
  }
  Result<DriverFiles> driver = parse_driver_files(std::string_view(*text).substr(end + 1));
  const bool is_current = driver && driver->version == version && driver->root == root &&
                          stamps_of(host, root, searched_directories(*driver)) == text->substr(0, end);
  return is_current ? std::optional(*std::move(driver)) : std::nullopt;
}

}  // namespace

std::string render_driver_files(const DriverFiles& driver) {
  std::string text;
  std::size_t lines = 1;
  std::size_t tabs = 2;
  const auto add = [&](const std::vector<std::string>& fields) {
    add_line(text, fields);
    ++lines;
    tabs += fields.size() - 1;
  };
  add_line(text, {"driver", driver.version, driver.root});
  for (const DriverFile& file : driver.files) {
    if (file.kind != FileKind::socket) {
      add({"file", file.path, std::to_string(unsigned(file.kind)), file.capability, file.container_path});
    }
  }
  for (const DriverLink& link : driver.links) {
    add({"link", link.target, link.path, link.library});
  }
  for (const std::string& directory : driver.library_directories) {
    add({"directory", directory});
  }
  for (const auto& [path, identity] : driver.identities) {
    add({"identity", path, identity.name, std::to_string(identity.flags)});
  }
  const bool is_clean =
      std::size_t(std::ranges::count(text, '\n')) == lines && std::size_t(std::ranges::count(text, '\t')) == tabs;
  return is_clean ? text : std::string();
}

Result<DriverFiles> parse_driver_files(std::string_view text) {
  DriverFiles driver;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty() && !parse_line(driver, split(line, '\t'))) {
      return fail(std::errc::invalid_argument, "read the driver's cached files: " + quote(line));
    }
  }
  return driver;
}

Result<CachedDriver> read_cached_driver(const kernel::Host& host, const std::string& driver_root) {
  const std::string root = driver_root == "/" ? "" : driver_root;
  const std::string version =
      parse_driver_version(kernel::read_text(host.root.get(), "proc/driver/nvidia/version").value_or(""));
  if (!version.empty()) {
    if (std::optional<DriverFiles> cached = read_cache(host, version, root)) {
      return CachedDriver{TRY(with_sockets(host, *std::move(cached))), ""};
    }
  }
  DriverFiles driver = TRY(read_driver_files(host, driver_root));
  const std::set<std::string> directories = searched_directories(driver);
  const std::string stamps = stamps_of(host, root, directories);
  driver = TRY(read_driver_files(host, driver_root));  // what was added before the stamps were taken is in it
  identify_libraries(host, driver);
  const bool is_stable = !version.empty() && searched_directories(driver) == directories;
  const std::string text = is_stable ? render_driver_files(driver) : std::string();
  return CachedDriver{std::move(driver), text.empty() ? "" : stamps + "\n" + text};
}

Result<void> write_driver_cache(const kernel::Host& host, const std::string& contents) {
  TRY(kernel::make_directories(host.root.get(), kernel::below_root(directory_of(kDriverCache))));
  return kernel::replace_file(host.root.get(), kernel::below_root(kDriverCache), {contents, 0600});
}

}  // namespace hf::nvidia
