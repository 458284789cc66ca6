#include "kernel/cgroup/shield_map.h"

#include <cerrno>
#include <cstddef>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "core/base/text.h"

namespace hf::kernel {
namespace {

constexpr std::string_view kName = "hf_shield_";
constexpr std::uint32_t kMostEntries = 65536;  // a thousand containers with 65 devices each

// The layout in which the program reads and writes them.
struct RawKey {
  std::uint64_t cgroup = 0;
  std::uint32_t kind = 0;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t depth = 0;
};
static_assert(sizeof(RawKey) == 24);

struct RawValue {
  std::uint32_t access = 0;
  std::uint32_t unused = 0;
  std::uint64_t count = 0;
  std::uint64_t last_at = 0;
};
static_assert(sizeof(RawValue) == 24);

RawKey to_raw(const ShieldKey& key) {
  return {key.cgroup.value, std::uint32_t(key.device.kind), key.device.major, key.device.minor, key.depth};
}

ShieldKey from_raw(const RawKey& key) {
  return {{key.cgroup}, key.depth, {device::Kind(key.kind), key.major, key.minor}};
}

constexpr bpf::Instruction instruction(unsigned code, unsigned dst, unsigned src, int off, std::int32_t imm) {
  return {.code = std::uint8_t(code),
          .dst_reg = std::uint8_t(dst & 15U),
          .src_reg = std::uint8_t(src & 15U),
          .off = std::int16_t(off),
          .imm = imm};
}

constexpr unsigned kMoveRegister = BPF_ALU64 | BPF_MOV | BPF_X;
constexpr unsigned kMoveImmediate = BPF_ALU64 | BPF_MOV | BPF_K;
constexpr unsigned kLoadWord = BPF_LDX | BPF_MEM | BPF_W;
constexpr unsigned kStoreWord = BPF_STX | BPF_MEM | BPF_W;
constexpr unsigned kStoreDouble = BPF_STX | BPF_MEM | BPF_DW;
constexpr unsigned kLoadWide = BPF_LD | BPF_DW;  // of an immediate: BPF_IMM is 0
constexpr unsigned kCall = BPF_JMP | BPF_CALL;

// Helpers by number, because Debian 12's headers do not define all of them.
constexpr std::int32_t kMapLookup = 1;
constexpr std::int32_t kTimeNow = 5;
constexpr std::int32_t kCurrentCgroup = 80;
constexpr std::int32_t kGetRetval = 186;
constexpr std::int32_t kSetRetval = 187;

}  // namespace

std::string shield_name(unsigned depth) { return std::string(kName) + std::to_string(depth); }

std::optional<unsigned> depth_in_shield_name(std::string_view name) {
  if (!name.starts_with(kName)) {
    return std::nullopt;
  }
  return parse_number<unsigned>(name.substr(kName.size()));
}

bpf::Code shield_code(int map, unsigned depth) {
  constexpr int kKey = -24;  // of RawKey on the stack
  return {
      instruction(kMoveRegister, 6, 1, 0, 0),                     // r6 = the request
      instruction(kCall, 0, 0, 0, kGetRetval),                    // the verdict so far
      instruction(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 28, -EPERM),   // allowed, or refused for another reason
      instruction(kCall, 0, 0, 0, kCurrentCgroup),                //
      instruction(kStoreDouble, 10, 0, kKey, 0),                  // cgroup
      instruction(kLoadWord, 7, 6, 0, 0),                         // r7 = access << 16 | kind
      instruction(kMoveRegister, 1, 7, 0, 0),                     //
      instruction(BPF_ALU64 | BPF_AND | BPF_K, 1, 0, 0, 0xffff),  //
      instruction(kStoreWord, 10, 1, kKey + 8, 0),                // kind
      instruction(kLoadWord, 1, 6, 4, 0),                         //
      instruction(kStoreWord, 10, 1, kKey + 12, 0),               // major
      instruction(kLoadWord, 1, 6, 8, 0),                         //
      instruction(kStoreWord, 10, 1, kKey + 16, 0),               // minor
      instruction(BPF_ST | BPF_MEM | BPF_W, 10, 0, kKey + 20, std::int32_t(depth)),  //
      instruction(kLoadWide, 1, BPF_PSEUDO_MAP_FD, 0, map),                          // two instructions long
      instruction(0, 0, 0, 0, 0),                                                    //
      instruction(kMoveRegister, 2, 10, 0, 0),                                       //
      instruction(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, kKey),                       //
      instruction(kCall, 0, 0, 0, kMapLookup),                                       //
      instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 11, 0),                           // not owed
      instruction(kMoveRegister, 8, 0, 0, 0),                                        // r8 = the entry
      instruction(kLoadWord, 1, 8, 0, 0),                                            // owed access bits
      instruction(BPF_ALU64 | BPF_RSH | BPF_K, 7, 0, 0, 16),                         // requested access bits
      instruction(BPF_ALU64 | BPF_AND | BPF_X, 1, 7, 0, 0),                          //
      instruction(BPF_JMP | BPF_JNE | BPF_X, 1, 7, 6, 0),                            // not all of them are owed
      instruction(kMoveImmediate, 1, 0, 0, 1),                                       //
      instruction(BPF_STX | BPF_ATOMIC | BPF_DW, 8, 1, 8, BPF_ADD),                  // count
      instruction(kCall, 0, 0, 0, kTimeNow),                                         //
      instruction(kStoreDouble, 8, 0, 16, 0),                                        // last_at
      instruction(kMoveImmediate, 1, 0, 0, 0),                                       //
      instruction(kCall, 0, 0, 0, kSetRetval),                                       // allow
      instruction(kMoveImmediate, 0, 0, 0, 1),      // all jumps lead here: the verdict stays
      instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),  //
  };
}

Result<std::shared_ptr<KernelShieldMap>> KernelShieldMap::create() {
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_NO_PREALLOC;
  Fd fd(::bpf_map_create(BPF_MAP_TYPE_HASH, "hf_shield", sizeof(RawKey), sizeof(RawValue), kMostEntries, &options));
  if (!fd) {
    return fail_errno(errno, "create the shield's map");
  }
  bpf_map_info info{};
  std::uint32_t size = sizeof(info);
  if (::bpf_obj_get_info_by_fd(fd.get(), &info, &size) < 0) {
    return fail_errno(errno, "read the shield's map");
  }
  return std::make_shared<KernelShieldMap>(std::move(fd), info.id);
}

Result<std::shared_ptr<KernelShieldMap>> KernelShieldMap::open(std::uint32_t id) {
  Fd fd(::bpf_map_get_fd_by_id(id));
  bpf_map_info info{};
  std::uint32_t size = sizeof(info);
  if (!fd || ::bpf_obj_get_info_by_fd(fd.get(), &info, &size) < 0) {
    return fail_errno(errno, "open the shield's map");
  }
  if (info.type != BPF_MAP_TYPE_HASH || info.key_size != sizeof(RawKey) || info.value_size != sizeof(RawValue)) {
    return fail(std::errc::invalid_argument, "open the shield's map: it has another shape");
  }
  return std::make_shared<KernelShieldMap>(std::move(fd), id);
}

Result<void> KernelShieldMap::put(const ShieldKey& key, device::Access access) {
  const RawKey raw_key = to_raw(key);
  const RawValue value{std::uint32_t(access), 0, 0, 0};
  if (::bpf_map_update_elem(fd_.get(), &raw_key, &value, BPF_ANY) < 0) {
    return fail_errno(errno, errno == E2BIG ? "enter a device: the shield is full" : "enter a device in the shield");
  }
  return {};
}

Result<void> KernelShieldMap::remove(const ShieldKey& key) {
  const RawKey raw_key = to_raw(key);
  if (::bpf_map_delete_elem(fd_.get(), &raw_key) < 0 && errno != ENOENT) {
    return fail_errno(errno, "remove a device from the shield");
  }
  return {};
}

Result<std::optional<container::ShieldEntry>> KernelShieldMap::read(const ShieldKey& key) {
  const RawKey raw_key = to_raw(key);
  RawValue value;
  if (::bpf_map_lookup_elem(fd_.get(), &raw_key, &value) == 0) {
    return container::ShieldEntry{key.device, device::Access(value.access), value.count, value.last_at};
  }
  if (errno != ENOENT) {
    return fail_errno(errno, "read the shield");
  }
  return std::nullopt;
}

// Kernel: if an entry is removed meanwhile, the iteration starts again; the bound keeps it from going on for ever.
Result<std::vector<ShieldKey>> KernelShieldMap::list() {
  std::vector<ShieldKey> keys;
  RawKey key;
  const RawKey* before = nullptr;
  while (keys.size() < std::size_t(2) * kMostEntries) {
    RawKey next;
    if (::bpf_map_get_next_key(fd_.get(), before, &next) < 0) {
      return errno == ENOENT ? Result<std::vector<ShieldKey>>(std::move(keys)) : fail_errno(errno, "list the shield");
    }
    key = next;
    before = &key;
    keys.push_back(from_raw(key));
  }
  return keys;
}

}  // namespace hf::kernel
