#include "story.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/bpf/generate.h"
#include "core/container/cgroup/mount.h"
#include "core/device/rule.h"
#include "kernel/cgroup/cgroup.h"

namespace hf::test {
namespace {

namespace fs = std::filesystem;

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  const std::string text = read(path);
  for (const std::string_view line : split(text, '\n')) {
    if (!trim(line).empty() && !line.starts_with('#')) {
      lines.emplace_back(line);
    }
  }
  return lines;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (const std::string_view field : split_fields(line)) {
    fields.emplace_back(field);
  }
  return fields;
}

int error_of(const std::string& name) {
  const std::map<std::string, int> names = {{"ok", 0},        {"EPERM", EPERM},   {"EACCES", EACCES},
                                            {"ENXIO", ENXIO}, {"ENODEV", ENODEV}, {"EIO", EIO},
                                            {"EBUSY", EBUSY}, {"ENOENT", ENOENT}};
  return names.at(name);
}

std::string value(const std::map<std::string, std::string>& fields, const std::string& key,
                  const std::string& otherwise) {
  const auto found = fields.find(key);
  return found == fields.end() ? otherwise : found->second;
}

// Whether the mount that a path is on has the option nodev.
bool is_on_nodev_mount(const std::string& mountinfo, const std::string& path) {
  const std::vector<container::Mount> mounts = container::parse_mountinfo(mountinfo);
  const container::Mount* mount = mount_over(mounts, path);
  bool is_nodev = false;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const std::vector<std::string_view> fields = split_fields(line);
    if (mount != nullptr && fields.size() > 5 && fields[4] == mount->point) {
      is_nodev = list_contains(fields[5], "nodev");  // a later mount covers an earlier one at the same place
    }
  }
  return is_nodev;
}

// As containerd does: the bundle of a container names its cgroup. A cgroup of a user belongs to no container.
void write_cgroup_to_bundle(const std::string& root, const std::string& cgroup) {
  constexpr std::size_t kId = 64;
  const std::string tasks = root + "/run/containerd/io.containerd.runtime.v2.task";
  std::string name(base_name(cgroup));
  const bool is_scope = name.ends_with(".scope");
  name = is_scope ? name.substr(0, name.size() - 6) : name;
  if (!fs::is_directory(tasks) || name.size() < kId || cgroup.starts_with("/user.slice/")) {
    return;
  }
  const std::string id = name.substr(name.size() - kId);
  const std::string parent(base_name(cgroup.substr(0, cgroup.rfind('/'))));
  const std::string path = is_scope ? parent + ":" + name.substr(0, name.size() - kId - 1) + ":" + id : cgroup;
  for (const fs::directory_entry& space : fs::directory_iterator(tasks)) {
    const std::string file = space.path().string() + "/" + id + "/config.json";
    std::string text = fs::is_regular_file(file) ? read(file) : "";
    const std::size_t linux = text.find("\"linux\": {");
    if (linux != std::string::npos && text.find("cgroupsPath") == std::string::npos) {
      write(file, text.insert(linux + 10, "\"cgroupsPath\": \"" + path + "\", "));
    }
  }
}

}  // namespace

std::vector<std::string> list_stories(const std::string& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (entry.is_directory() && !name.starts_with('_')) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

FakeNodeProber::FakeNodeProber(std::string root, const std::vector<std::vector<std::string>>& answers)
    : root_(std::move(root)) {
  for (const std::vector<std::string>& fields : answers) {
    Answer& entry = answers_[{std::stoi(fields.at(0)), fields.at(1)}];
    entry.access = error_of(fields.at(2));
    entry.open = fields.size() > 3 ? std::optional(error_of(fields[3])) : std::nullopt;
  }
}

Result<std::vector<container::NodeView>> FakeNodeProber::probe(const kernel::ProbeRequest& request) {
  const std::string directory = root_ + "/proc/" + std::to_string(request.container.process().pid.value);
  const std::string mountinfo = read(directory + "/mountinfo");
  std::vector<container::NodeView> all;
  for (const std::string& path : request.paths) {
    container::NodeView& seen = all.emplace_back();
    seen.path = path;
    struct stat status{};
    if (::stat((directory + "/root" + path).c_str(), &status) < 0) {
      seen.lookup_error = errno;
      continue;
    }
    if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
      const device::Kind kind = S_ISBLK(status.st_mode) ? device::Kind::block : device::Kind::character;
      seen.device = device::Device{kind, ::major(status.st_rdev), ::minor(status.st_rdev)};
    }
    seen.mode = status.st_mode & 07777U;
    seen.uid = status.st_uid;
    seen.gid = status.st_gid;
    seen.is_on_nodev_mount = is_on_nodev_mount(mountinfo, path);
    if (const auto answer = answers_.find({request.container.process().pid.value, path}); answer != answers_.end()) {
      seen.access = answer->second.access;
      seen.open = answer->second.open;
    }
  }
  return all;
}

Result<std::vector<container::NodeView>> FakeNodeProber::look_up(const kernel::ProbeRequest& request) {
  std::vector<container::NodeView> all = TRY(probe(request));
  for (container::NodeView& seen : all) {
    if (seen.open || !seen.access || (*seen.access != 0 && *seen.access != EPERM)) {
      return fail(std::errc::not_supported, "look up " + seen.path);
    }
    seen.access.reset();
  }
  return all;
}

Story::Story(const std::string& directory, const std::string& name) : root_("/tmp/hf-story-XXXXXX") {
  if (::mkdtemp(root_.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  for (const std::string& layer : lines_of(directory + "/" + name + "/layers")) {
    if (!fs::is_directory(directory + "/" + layer)) {
      throw std::runtime_error("no layer " + layer);
    }
    add_layer(directory + "/" + layer);
  }
  add_layer(directory + "/" + name);
  make_nodes();
  make_links();
  for (const auto& [pid, fields] : processes_) {
    make_process(fields);
  }
  set_modes();
  Result<kernel::Host> host = kernel::open_host(root_);
  if (!host) {
    throw std::runtime_error(host.error().message);
  }
  host_ = *std::move(host);
  attach_filters();
  filters_ = std::make_unique<kernel::Filters>(*host_, bpf_);
  prober_ = std::make_unique<FakeNodeProber>(root_, access_);
  read_expected(directory + "/" + name);
}

Story::~Story() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void Story::add_layer(const std::string& directory) {
  const std::string tree = directory + "/host";
  for (const fs::directory_entry& entry :
       fs::is_directory(tree) ? fs::recursive_directory_iterator(tree) : fs::recursive_directory_iterator()) {
    const fs::path target = root_ / fs::relative(entry.path(), tree);
    if (entry.is_directory()) {
      fs::create_directories(target);
      continue;
    }
    write(target, read(entry.path()));
    const bool is_program = target.string().find("/usr/bin/") != std::string::npos;
    fs::permissions(target, fs::perms(is_program ? 0755 : 0644));
  }
  for (const std::string& line : lines_of(directory + "/nodes")) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.at(0) == "-") {
      nodes_.erase(fields.at(1));
    } else {
      nodes_[fields[0]] = fields;
    }
  }
  for (const std::string& line : lines_of(directory + "/links")) {
    const std::vector<std::string> fields = fields_of(line);
    links_[fields.at(0)] = fields.at(1);
  }
  for (const std::string& line : lines_of(directory + "/processes")) {
    std::map<std::string, std::string> entry;
    for (const std::string& field : fields_of(line)) {
      entry[field.substr(0, field.find('='))] = field.substr(field.find('=') + 1);
    }
    processes_[entry.at("pid")] = entry;
  }
  if (fs::exists(directory + "/filters")) {
    filter_lines_ = lines_of(directory + "/filters");
  }
  for (const std::string& line : lines_of(directory + "/access")) {
    access_.push_back(fields_of(line));
  }
  for (const std::string& line : lines_of(directory + "/modes")) {
    modes_.push_back(fields_of(line));
  }
}

void Story::make_nodes() {
  for (const auto& [path, fields] : nodes_) {
    const fs::path full = root_ + "/" + path;
    fs::create_directories(full.parent_path());
    const mode_t kind = fields.at(1) == "b" ? S_IFBLK : S_IFCHR;
    const auto device = makedev(unsigned(std::stoul(fields.at(2))), unsigned(std::stoul(fields.at(3))));
    const auto mode = mode_t(std::stoul(fields.at(4), nullptr, 8));
    if (::mknod(full.c_str(), kind | mode, device) < 0 || ::chmod(full.c_str(), mode) < 0 ||
        (fields.size() > 6 && ::chown(full.c_str(), uid_t(std::stoul(fields[5])), gid_t(std::stoul(fields[6]))) < 0)) {
      throw std::runtime_error("make node " + path);
    }
  }
}

void Story::make_links() {
  for (const auto& [path, target] : links_) {
    const fs::path full = root_ + "/" + path;
    fs::create_directories(full.parent_path());
    fs::remove(full);  // a symlink may replace a file of a layer
    fs::create_symlink(target, full);
  }
}

void Story::set_modes() {
  for (const std::vector<std::string>& fields : modes_) {
    const std::string path = root_ + "/" + fields.at(0);
    if (::chmod(path.c_str(), mode_t(std::stoul(fields.at(1), nullptr, 8))) < 0 ||
        (fields.size() > 3 && ::chown(path.c_str(), uid_t(std::stoul(fields[2])), gid_t(std::stoul(fields[3]))) < 0)) {
      throw std::runtime_error("set mode of " + fields[0]);
    }
  }
}

void Story::make_process(const std::map<std::string, std::string>& fields) {
  const std::string pid = fields.at("pid");
  const std::string directory = root_ + "/proc/" + pid;
  const std::string ns = value(fields, "ns", "1");
  const std::string ticks = std::to_string(std::stoll(value(fields, "started", "1")) * 100);
  if (ns == "1" && !fs::exists(directory + "/root")) {
    fs::create_directories(directory);
    fs::create_symlink("../..", directory + "/root");  // a process of the host
  } else {
    fs::create_directories(directory + "/root/dev");
  }
  write(directory + "/stat", pid + " (" + value(fields, "name", "sleep") + ") S " + value(fields, "parent", "1") +
                                 " 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + ticks + " 0 0\n");
  const std::string uid = value(fields, "uid", "0");
  const std::string gid = value(fields, "gid", uid);
  const bool is_first = ns != "1" && value(fields, "first", "yes") == "yes";
  write(directory + "/status", "Name:\tx\nUid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid + "\nGid:\t" + gid +
                                   "\t" + gid + "\t" + gid + "\t" + gid + "\nGroups:\t\nNSpid:\t" + pid +
                                   (is_first ? "\t1" : "") + "\nCapEff:\t0000000000000000\nCpus_allowed_list:\t" +
                                   value(fields, "cpus", "0-3") + "\n");
  for (const char* kind : {"mnt", "pid", "user"}) {
    const std::string number = std::string(kind) == "user" ? "1" : ns;
    fs::create_directories(directory + "/ns");
    fs::create_symlink(std::string(kind) + ":[" + number + "]", directory + "/ns/" + kind);
  }
  if (!fs::exists(directory + "/mountinfo")) {
    write(directory + "/mountinfo", "1 0 0:1 / / rw - overlay overlay rw\n2 1 0:2 / /dev rw,nosuid - tmpfs tmpfs rw\n");
  }
  const bool has_v1 = fs::exists(root_ + "/sys/fs/cgroup/devices");
  const std::string both = value(fields, "cgroup", "/");
  const std::string v1 = value(fields, "v1", both);
  const std::string v2 = value(fields, "v2", both);
  std::string lines;
  if (has_v1) {
    lines = "5:devices:" + v1 + "\n1:name=systemd:" + value(fields, "named", v1) + "\n";
    fs::create_directories(root_ + "/sys/fs/cgroup/devices" + v1);
  } else {
    lines = "0::" + v2 + "\n";
    fs::create_directories(root_ + "/sys/fs/cgroup" + v2);
  }
  write(directory + "/cgroup", lines);
  write_cgroup_to_bundle(root_, has_v1 ? value(fields, "named", v1) : v2);
  std::string command = value(fields, "cmdline", value(fields, "name", "sleep"));
  std::ranges::replace(command, ',', '\0');
  write(directory + "/cmdline", command + '\0');
  if (fields.contains("cwd")) {
    fs::create_symlink("../.." + fields.at("cwd"), directory + "/cwd");
  }
  if (fields.contains("runc")) {
    const std::string id = fields.at("runc");
    write(root_ + "/run/runc/" + id + "/state.json", R"({"id":")" + id + R"(","init_process_pid":)" + pid +
                                                         R"(,"init_process_start":)" + ticks +
                                                         R"(,"config":{"labels":["bundle=/bundles/)" + id + R"("]}})");
  }
  if (fields.contains("crun")) {
    const std::string id = fields.at("crun");
    write(root_ + "/run/crun/" + id + "/status",
          R"({"pid":)" + pid + R"(,"process-start-time":)" + ticks + R"(,"bundle":"/bundles/)" + id + R"("})");
  }
}

void Story::attach_filters() {
  if (!host_->v2) {
    return;
  }
  for (const std::string& line : filter_lines_) {
    const std::vector<std::string> fields = fields_of(line);
    const std::size_t rules_at = line.find(fields.at(2)) + fields[2].size();
    device::RuleSet rules;
    const std::string rest = line.substr(rules_at);
    for (const std::string_view text : split(rest, ';')) {
      const Result<device::Rule> rule = device::parse_rule(trim(text));
      if (!rule) {
        throw std::runtime_error("filters: " + rule.error().message);
      }
      rules.push_back(*rule);
    }
    const Result<kernel::Cgroup> cgroup =
        kernel::open_cgroup(*host_, container::Hierarchy::v2, container::CgroupPath{fields[0]});
    const auto code = bpf::generate(device::Table::of_rules(rules));
    if (!cgroup || !code) {
      throw std::runtime_error("filters: no cgroup " + fields[0]);
    }
    bpf_.add(*cgroup, *code, fields[1] == "-" ? "" : fields[1], std::stoll(fields[2]));
  }
}

void Story::read_expected(const std::string& directory) {
  for (const std::string& line : lines_of(directory + "/expected")) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.at(0) == "state") {
      states_[fields.at(1)] = line.substr(line.find(fields[1]) + fields[1].size() + 1);
      continue;
    }
    const bool is_banned = fields[0] == "not";
    const std::string_view rest = std::string_view(line).substr(is_banned ? fields[0].size() + 1 : 0);
    const std::string& code = fields.at(is_banned ? 1 : 0);
    const std::string& subject = fields.at(is_banned ? 2 : 1);
    findings_.push_back({code, subject, std::string(trim(rest.substr(code.size() + 1 + subject.size()))), is_banned});
  }
}

}  // namespace hf::test
