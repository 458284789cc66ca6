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
#include "core/container/mount.h"
#include "core/device/rule.h"
#include "kernel/cgroup.h"

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

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string_view word : split_words(line)) {
    words.emplace_back(word);
  }
  return words;
}

int error_of(const std::string& name) {
  const std::map<std::string, int> names = {{"ok", 0},        {"EPERM", EPERM},   {"EACCES", EACCES},
                                            {"ENXIO", ENXIO}, {"ENODEV", ENODEV}, {"EIO", EIO},
                                            {"EBUSY", EBUSY}, {"ENOENT", ENOENT}};
  return names.at(name);
}

std::string value(const std::map<std::string, std::string>& words, const std::string& key,
                  const std::string& otherwise) {
  const auto found = words.find(key);
  return found == words.end() ? otherwise : found->second;
}

// As containerd does: the bundle of a container names its cgroup. A user's cgroup is nobody's.
void tell_bundle_its_cgroup(const std::string& root, const std::string& cgroup) {
  constexpr std::size_t kId = 64;
  const std::string tasks = root + "/run/containerd/io.containerd.runtime.v2.task";
  std::string name(name_in(cgroup));
  const bool is_scope = name.ends_with(".scope");
  name = is_scope ? name.substr(0, name.size() - 6) : name;
  if (!fs::is_directory(tasks) || name.size() < kId || cgroup.starts_with("/user.slice/")) {
    return;
  }
  const std::string id = name.substr(name.size() - kId);
  const std::string parent(name_in(cgroup.substr(0, cgroup.rfind('/'))));
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

std::vector<std::string> list_stories(const std::string& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (entry.is_directory() && !name.starts_with('_')) {
      names.push_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

FakeSeats::FakeSeats(std::string root, const std::vector<std::vector<std::string>>& told) : root_(std::move(root)) {
  for (const std::vector<std::string>& words : told) {
    Told& entry = told_[{std::stoi(words.at(0)), words.at(1)}];
    entry.access = error_of(words.at(2));
    entry.open = words.size() > 3 ? std::optional(error_of(words[3])) : std::nullopt;
  }
}

Result<std::vector<container::Seen>> FakeSeats::look(const kernel::Look& look) {
  const std::string folder = root_ + "/proc/" + std::to_string(look.container.process().pid.value);
  const std::vector<container::Mount> mounts = container::parse_mountinfo(read(folder + "/mountinfo"));
  std::vector<container::Seen> all;
  for (const std::string& path : look.paths) {
    container::Seen& seen = all.emplace_back();
    seen.path = path;
    struct stat status{};
    if (::stat((folder + "/root" + path).c_str(), &status) < 0) {
      seen.look = errno;
      continue;
    }
    if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
      const device::Kind kind = S_ISBLK(status.st_mode) ? device::Kind::block : device::Kind::character;
      seen.device = device::Device{kind, ::major(status.st_rdev), ::minor(status.st_rdev)};
    }
    seen.mode = status.st_mode & 07777U;
    seen.uid = status.st_uid;
    seen.gid = status.st_gid;
    const container::Mount* mount = mount_over(mounts, path);
    seen.is_on_nodev_mount = mount != nullptr && mount->has_option("nodev");
    if (const auto told = told_.find({look.container.process().pid.value, path}); told != told_.end()) {
      seen.access = told->second.access;
      seen.open = told->second.open;
    }
  }
  return all;
}

Story::Story(const std::string& folder, const std::string& name) : root_("/tmp/hf-story-XXXXXX") {
  if (::mkdtemp(root_.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  for (const std::string& layer : lines_of(folder + "/" + name + "/layers")) {
    if (!fs::is_directory(folder + "/" + layer)) {
      throw std::runtime_error("no layer " + layer);
    }
    lay(folder + "/" + layer);
  }
  lay(folder + "/" + name);
  make_nodes();
  make_links();
  for (const auto& [pid, words] : processes_) {
    make_process(words);
  }
  set_modes();
  Result<kernel::Host> host = kernel::open_host(root_);
  if (!host) {
    throw std::runtime_error(host.error().message);
  }
  host_ = *std::move(host);
  attach_filters();
  filters_ = std::make_unique<kernel::Filters>(*host_, bpf_);
  seats_ = std::make_unique<FakeSeats>(root_, access_);
  read_expected(folder + "/" + name);
}

Story::~Story() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void Story::lay(const std::string& folder) {
  const std::string tree = folder + "/host";
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
  for (const std::string& line : lines_of(folder + "/nodes")) {
    const std::vector<std::string> words = words_of(line);
    if (words.at(0) == "-") {
      nodes_.erase(words.at(1));
    } else {
      nodes_[words[0]] = words;
    }
  }
  for (const std::string& line : lines_of(folder + "/links")) {
    const std::vector<std::string> words = words_of(line);
    links_[words.at(0)] = words.at(1);
  }
  for (const std::string& line : lines_of(folder + "/processes")) {
    std::map<std::string, std::string> entry;
    for (const std::string& word : words_of(line)) {
      entry[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    processes_[entry.at("pid")] = entry;
  }
  if (fs::exists(folder + "/filters")) {
    filter_lines_ = lines_of(folder + "/filters");
  }
  for (const std::string& line : lines_of(folder + "/access")) {
    access_.push_back(words_of(line));
  }
  for (const std::string& line : lines_of(folder + "/modes")) {
    modes_.push_back(words_of(line));
  }
}

void Story::make_nodes() {
  for (const auto& [path, words] : nodes_) {
    const fs::path full = root_ + "/" + path;
    fs::create_directories(full.parent_path());
    const mode_t kind = words.at(1) == "b" ? S_IFBLK : S_IFCHR;
    const auto device = makedev(unsigned(std::stoul(words.at(2))), unsigned(std::stoul(words.at(3))));
    const auto mode = mode_t(std::stoul(words.at(4), nullptr, 8));
    if (::mknod(full.c_str(), kind | mode, device) < 0 || ::chmod(full.c_str(), mode) < 0 ||
        (words.size() > 6 && ::chown(full.c_str(), uid_t(std::stoul(words[5])), gid_t(std::stoul(words[6]))) < 0)) {
      throw std::runtime_error("make node " + path);
    }
  }
}

void Story::make_links() {
  for (const auto& [path, target] : links_) {
    const fs::path full = root_ + "/" + path;
    fs::create_directories(full.parent_path());
    fs::remove(full);  // a link may stand in the place of a layer's file
    fs::create_symlink(target, full);
  }
}

void Story::set_modes() {
  for (const std::vector<std::string>& words : modes_) {
    const std::string path = root_ + "/" + words.at(0);
    if (::chmod(path.c_str(), mode_t(std::stoul(words.at(1), nullptr, 8))) < 0 ||
        (words.size() > 3 && ::chown(path.c_str(), uid_t(std::stoul(words[2])), gid_t(std::stoul(words[3]))) < 0)) {
      throw std::runtime_error("set mode of " + words[0]);
    }
  }
}

void Story::make_process(const std::map<std::string, std::string>& words) {
  const std::string pid = words.at("pid");
  const std::string folder = root_ + "/proc/" + pid;
  const std::string ns = value(words, "ns", "1");
  const std::string ticks = std::to_string(std::stoll(value(words, "started", "1")) * 100);
  if (ns == "1" && !fs::exists(folder + "/root")) {
    fs::create_directories(folder);
    fs::create_symlink("../..", folder + "/root");  // a process of the host
  } else {
    fs::create_directories(folder + "/root/dev");
  }
  write(folder + "/stat", pid + " (" + value(words, "name", "sleep") + ") S " + value(words, "parent", "1") +
                              " 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + ticks + " 0 0\n");
  const std::string uid = value(words, "uid", "0");
  const std::string gid = value(words, "gid", uid);
  const bool is_first = ns != "1" && value(words, "first", "yes") == "yes";
  write(folder + "/status", "Name:\tx\nUid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid + "\nGid:\t" + gid + "\t" +
                                gid + "\t" + gid + "\t" + gid + "\nGroups:\t\nNSpid:\t" + pid +
                                (is_first ? "\t1" : "") + "\nCapEff:\t0000000000000000\nCpus_allowed_list:\t" +
                                value(words, "cpus", "0-3") + "\n");
  for (const char* kind : {"mnt", "pid", "user"}) {
    const std::string number = std::string(kind) == "user" ? "1" : ns;
    fs::create_directories(folder + "/ns");
    fs::create_symlink(std::string(kind) + ":[" + number + "]", folder + "/ns/" + kind);
  }
  if (!fs::exists(folder + "/mountinfo")) {
    write(folder + "/mountinfo", "1 0 0:1 / / rw - overlay overlay rw\n2 1 0:2 / /dev rw,nosuid - tmpfs tmpfs rw\n");
  }
  const bool has_v1 = fs::exists(root_ + "/sys/fs/cgroup/devices");
  const std::string both = value(words, "cgroup", "/");
  const std::string v1 = value(words, "v1", both);
  const std::string v2 = value(words, "v2", both);
  std::string lines;
  if (has_v1) {
    lines = "5:devices:" + v1 + "\n1:name=systemd:" + value(words, "named", v1) + "\n";
    fs::create_directories(root_ + "/sys/fs/cgroup/devices" + v1);
  } else {
    lines = "0::" + v2 + "\n";
    fs::create_directories(root_ + "/sys/fs/cgroup" + v2);
  }
  write(folder + "/cgroup", lines);
  tell_bundle_its_cgroup(root_, has_v1 ? value(words, "named", v1) : v2);
  std::string command = value(words, "cmdline", value(words, "name", "sleep"));
  std::ranges::replace(command, ',', '\0');
  write(folder + "/cmdline", command + '\0');
  if (words.contains("cwd")) {
    fs::create_symlink("../.." + words.at("cwd"), folder + "/cwd");
  }
  if (words.contains("runc")) {
    const std::string id = words.at("runc");
    write(root_ + "/run/runc/" + id + "/state.json", R"({"id":")" + id + R"(","init_process_pid":)" + pid +
                                                         R"(,"init_process_start":)" + ticks +
                                                         R"(,"config":{"labels":["bundle=/bundles/)" + id + R"("]}})");
  }
  if (words.contains("crun")) {
    const std::string id = words.at("crun");
    write(root_ + "/run/crun/" + id + "/status",
          R"({"pid":)" + pid + R"(,"process-start-time":)" + ticks + R"(,"bundle":"/bundles/)" + id + R"("})");
  }
}

void Story::attach_filters() {
  if (!host_->v2) {
    return;
  }
  for (const std::string& line : filter_lines_) {
    const std::vector<std::string> words = words_of(line);
    const std::size_t rules_at = line.find(words.at(2)) + words[2].size();
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
        kernel::open_cgroup(*host_, container::Hierarchy::v2, container::CgroupPath{words[0]});
    const auto code = bpf::generate(device::Table::of_rules(rules));
    if (!cgroup || !code) {
      throw std::runtime_error("filters: no cgroup " + words[0]);
    }
    bpf_.add(*cgroup, *code, words[1] == "-" ? "" : words[1], std::stoll(words[2]));
  }
}

void Story::read_expected(const std::string& folder) {
  for (const std::string& line : lines_of(folder + "/expected")) {
    const std::vector<std::string> words = words_of(line);
    if (words.at(0) == "state") {
      states_[words.at(1)] = line.substr(line.find(words[1]) + words[1].size() + 1);
      continue;
    }
    const bool is_banned = words[0] == "not";
    const std::string_view rest = std::string_view(line).substr(is_banned ? words[0].size() + 1 : 0);
    const std::string& code = words.at(is_banned ? 1 : 0);
    const std::string& subject = words.at(is_banned ? 2 : 1);
    findings_.push_back({code, subject, std::string(trim(rest.substr(code.size() + 1 + subject.size()))), is_banned});
  }
}

}  // namespace hf::test
