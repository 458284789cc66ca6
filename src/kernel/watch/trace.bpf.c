/* The tracer: reports which process attaches, replaces or detaches device programs, and which cgroups are created and
 * removed.
 *
 * The tracepoints of bpf(2) exist on every kernel that can run this. What they read from the caller's memory is a hint,
 * never a proof, so the guard reads the cgroup itself. Nothing here decides or changes anything.
 *
 * Rule events and cgroup events have a ring buffer each, so that a container that creates cgroups all the time cannot
 * displace the rule events.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "trace_event.h"

char LICENSE[] SEC("license") = "GPL";

typedef unsigned int u32;
typedef unsigned long long u64;
#define bool _Bool

/* Only the fields that are read; CO-RE relocates them to their offsets in the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct inode {
  unsigned long i_ino;
};
struct file {
  struct inode *f_inode;
  void *private_data;
};
struct fdtable {
  unsigned int max_fds;
  struct file **fd;
};
struct files_struct {
  struct fdtable *fdt;
};
struct mm_struct {
  unsigned long arg_start;
  unsigned long arg_end;
};
struct task_struct {
  int pid;
  int tgid;
  char comm[16];
  struct task_struct *real_parent;
  struct task_struct *group_leader;
  struct files_struct *files;
  struct mm_struct *mm;
};
struct bpf_prog_aux {
  u32 id;
};
struct bpf_prog {
  enum bpf_prog_type type;
  struct bpf_prog_aux *aux;
};
struct bpf_link {
  struct bpf_prog *prog;
};
struct kernfs_node {
  u64 id;
};
struct cgroup_root {
  unsigned int subsys_mask;
  int hierarchy_id;
};
struct cgroup {
  struct kernfs_node *kn;
  struct cgroup_root *root;
};
struct bpf_cgroup_link {
  struct bpf_link link;
  struct cgroup *cgroup;
};
#pragma clang attribute pop

enum cgroup_subsys_id { devices_cgrp_id___any = 1 }; /* CO-RE replaces the value by that of the running kernel */

struct trace_event_raw_sys_enter {
  unsigned long long unused;
  long id;
  unsigned long args[6];
};
struct trace_event_raw_sys_exit {
  unsigned long long unused;
  long id;
  long ret;
};

const volatile struct trace_settings settings SEC(".rodata.settings") = {};
struct trace_counters counters SEC(".data.counters") = {};

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 18);
} rules SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 16);
} cgroups SEC(".maps");

struct call {
  u32 command;
  u32 target_fd;
  u32 program_fd;
  u32 replace_fd;
  u32 flags;
  u32 replaced; /* of a link: its previous program */
  u64 cgroup;   /* of a link */
};

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, u64);
  __type(value, struct call);
} calls SEC(".maps");

static __always_inline void fill_parents(struct trace_event *event, struct task_struct *task) {
  for (int i = 0; i < TRACE_PARENTS; i++) {
    event->parents[i].pid = 0;
    event->parents[i].name[0] = 0;
  }
  for (int i = 0; i < TRACE_PARENTS; i++) {
    task = BPF_CORE_READ(task, real_parent, group_leader);
    if (!task) {
      return;
    }
    u32 pid = BPF_CORE_READ(task, tgid);
    if (pid == 0) {
      return;
    }
    event->parents[i].pid = pid;
    bpf_core_read_str(event->parents[i].name, TRACE_NAME, &task->comm);
    if (pid == 1) {
      return;
    }
  }
}

static __always_inline void fill_command(struct trace_event *event, struct task_struct *task) {
  event->command_size = 0;
  struct mm_struct *mm = BPF_CORE_READ(task, mm);
  if (!mm) {
    return;
  }
  unsigned long start = BPF_CORE_READ(mm, arg_start);
  unsigned long size = BPF_CORE_READ(mm, arg_end) - start;
  if (size > TRACE_COMMAND) {
    size = TRACE_COMMAND;
  }
  if (size > 0 && bpf_probe_read_user(event->command, size, (void *)start) == 0) {
    event->command_size = size;
  }
}

static __always_inline bool is_own(void) {
  struct bpf_pidns_info own;
  return bpf_get_ns_current_pid_tgid(settings.own_namespace_device, settings.own_namespace_inode, &own, sizeof(own)) == 0 &&
         own.tgid == settings.own_pid;
}

/* Reserves an event and fills in what is known of the current process; the caller fills in the rest. */
static __always_inline struct trace_event *begin(void *ring, __u64 *lost, u32 kind) {
  struct trace_event *event = bpf_ringbuf_reserve(ring, sizeof(*event), 0);
  if (!event) {
    __sync_fetch_and_add(lost, 1);
    return 0;
  }
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  event->at = bpf_ktime_get_ns();
  event->cgroup = 0;
  event->kind = kind;
  event->hierarchy = 0;
  event->pid = bpf_get_current_pid_tgid() >> 32;
  event->flags = 0;
  event->program = 0;
  event->replaced = 0;
  event->member = 0;
  event->command_size = 0;
  struct task_struct *leader = BPF_CORE_READ(task, group_leader); /* threads may have names of their own */
  event->name[0] = 0;
  bpf_core_read_str(event->name, TRACE_NAME, &leader->comm);
  fill_parents(event, task);
  if (kind == TRACE_ATTACH || kind == TRACE_DETACH) {
    fill_command(event, task);
  }
  return event;
}

static __always_inline struct file *file_of(u32 fd) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  struct fdtable *table = BPF_CORE_READ(task, files, fdt);
  struct file **files = BPF_CORE_READ(table, fd);
  struct file *file = 0;
  if (!table || fd >= BPF_CORE_READ(table, max_fds)) {
    return 0;
  }
  bpf_core_read(&file, sizeof(file), files + fd);
  return file;
}

static __always_inline bool is_device_program(struct bpf_prog *program) {
  return BPF_CORE_READ(program, type) == BPF_PROG_TYPE_CGROUP_DEVICE;
}

/* Kernel: a detach call need not name a program, so the descriptor may be of any file, or of none. */
static __always_inline u32 program_of(u32 fd) {
  struct file *file = file_of(fd);
  if (!file) {
    return 0;
  }
  struct bpf_prog *program = (struct bpf_prog *)BPF_CORE_READ(file, private_data);
  return is_device_program(program) ? BPF_CORE_READ(program, aux, id) : 0;
}

static __always_inline struct bpf_cgroup_link *link_of(u32 fd) {
  struct file *file = file_of(fd);
  return file ? (struct bpf_cgroup_link *)BPF_CORE_READ(file, private_data) : 0;
}

static __always_inline u64 cgroup_of(u32 fd) {
  struct file *file = file_of(fd);
  return file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
}

/* ---- bpf(2), seen at its tracepoints ---- */

/* Reads what the first attributes of a bpf(2) command refer to. False where it does not concern device programs. */
static __always_inline bool read_call(struct call *call, const u32 *attributes) {
  switch (call->command) {
    case BPF_PROG_ATTACH: /* target, program, type, flags, replaced program */
    case BPF_PROG_DETACH:
      call->target_fd = attributes[0];
      call->program_fd = attributes[1];
      call->flags = attributes[3];
      call->replace_fd = attributes[4];
      return attributes[2] == BPF_CGROUP_DEVICE;
    case BPF_LINK_CREATE: /* program, target, type, flags */
      call->program_fd = attributes[0];
      call->target_fd = attributes[1];
      call->flags = attributes[3] | BPF_F_ALLOW_MULTI; /* as the kernel attaches it */
      return attributes[2] == BPF_CGROUP_DEVICE;
    case BPF_LINK_UPDATE: /* link, program, flags; a detached link no longer has a cgroup, so it is read before */
    case BPF_LINK_DETACH: {
      struct bpf_cgroup_link *link = link_of(attributes[0]);
      call->program_fd = attributes[1];
      call->replaced = BPF_CORE_READ(link, link.prog, aux, id);
      call->cgroup = BPF_CORE_READ(link, cgroup, kn, id);
      return is_device_program(BPF_CORE_READ(link, link.prog));
    }
    default:
      return 0;
  }
}

SEC("tracepoint/syscalls/sys_enter_bpf")
int on_enter_bpf(struct trace_event_raw_sys_enter *context) {
  u64 thread = bpf_get_current_pid_tgid();
  struct call call = {.command = context->args[0]};
  u32 attributes[5] = {0, 0, 0, 0, 0};
  u32 size = context->args[2];
  if (size > sizeof(attributes)) {
    size = sizeof(attributes);
  }
  if (is_own() || bpf_probe_read_user(attributes, size, (void *)context->args[1]) < 0) {
    return 0;
  }
  if (read_call(&call, attributes)) {
    bpf_map_update_elem(&calls, &thread, &call, BPF_ANY);
  }
  return 0;
}

static __always_inline u32 kind_of(u32 command) {
  switch (command) {
    case BPF_PROG_DETACH:
    case BPF_LINK_DETACH: return TRACE_DETACH;
    default: return TRACE_ATTACH;
  }
}

SEC("tracepoint/syscalls/sys_exit_bpf")
int on_exit_bpf(struct trace_event_raw_sys_exit *context) {
  u64 thread = bpf_get_current_pid_tgid();
  struct call *found = bpf_map_lookup_elem(&calls, &thread);
  if (!found) {
    return 0;
  }
  struct call call = *found;
  bpf_map_delete_elem(&calls, &thread);
  if (context->ret < 0) {
    return 0;
  }
  struct trace_event *event = begin(&rules, &counters.lost_rules, kind_of(call.command));
  if (!event) {
    return 0;
  }
  event->flags = call.flags;
  if (call.command == BPF_LINK_DETACH) {
    event->cgroup = call.cgroup;
    event->program = call.replaced;
  } else if (call.command == BPF_LINK_UPDATE) {
    event->cgroup = call.cgroup;
    event->program = program_of(call.program_fd);
    event->replaced = call.replaced;
  } else {
    event->cgroup = cgroup_of(call.target_fd);
    event->program = program_of(call.program_fd);
    if (call.command == BPF_PROG_ATTACH && (call.flags & BPF_F_REPLACE)) {
      event->replaced = program_of(call.replace_fd);
    }
  }
  bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
  return 0;
}

/* ---- creation and removal of cgroups ---- */

static __always_inline bool is_ours(void) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  return is_own() || BPF_CORE_READ(task, real_parent, tgid) == settings.own_pid;
}

/* A container has a cgroup in each of a dozen v1 hierarchies; only the one of the devices controller matters. */
static __always_inline bool decides_about_devices(struct cgroup *cgroup) {
  if (BPF_CORE_READ(cgroup, root, hierarchy_id) == 0) {
    return 1;
  }
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, devices_cgrp_id___any)) {
    return 0;
  }
  u32 devices = bpf_core_enum_value(enum cgroup_subsys_id, devices_cgrp_id___any);
  return (BPF_CORE_READ(cgroup, root, subsys_mask) >> (devices & 31)) & 1;
}

static __always_inline int report_cgroup(struct bpf_raw_tracepoint_args *context, u32 kind,
                                         struct task_struct *member) {
  struct cgroup *cgroup = (struct cgroup *)context->args[0];
  if (is_ours() || !decides_about_devices(cgroup)) {
    return 0;
  }
  struct trace_event *event = begin(&cgroups, &counters.lost_cgroups, kind);
  if (!event) {
    return 0;
  }
  event->cgroup = BPF_CORE_READ(cgroup, kn, id);
  event->hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id);
  event->member = member ? BPF_CORE_READ(member, tgid) : 0;
  long size = bpf_probe_read_kernel_str(event->command, TRACE_COMMAND, (const char *)context->args[1]);
  event->command_size = size > 0 && size < TRACE_COMMAND ? size : 0; /* a truncated path is dropped */
  bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
  return 0;
}

/* The arguments of all three are cgroup and path; this one adds the process. */
SEC("raw_tp/cgroup_attach_task")
int on_cgroup_attach_task(struct bpf_raw_tracepoint_args *context) {
  return report_cgroup(context, TRACE_CGROUP_JOINED, (struct task_struct *)context->args[2]);
}

/* A process may also be created in a cgroup (CLONE_INTO_CGROUP), which no tracepoint reports. */
SEC("raw_tp/cgroup_mkdir")
int on_cgroup_mkdir(struct bpf_raw_tracepoint_args *context) {
  return report_cgroup(context, TRACE_CGROUP_CREATED, 0);
}

SEC("raw_tp/cgroup_rmdir")
int on_cgroup_rmdir(struct bpf_raw_tracepoint_args *context) {
  return report_cgroup(context, TRACE_CGROUP_REMOVED, 0);
}
