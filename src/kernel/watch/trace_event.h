/* What the tracer's programs in the kernel report, and what they are told. Included by BPF C and by C++, so it is plain
 * C without padding. */
#ifndef HOLDFAST_TRACE_EVENT_H
#define HOLDFAST_TRACE_EVENT_H

/* NOLINTBEGIN(modernize-macro-to-enum,performance-enum-size): it is C */
enum trace_kind {
  TRACE_ATTACH = 1, /* attached or replaced */
  TRACE_DETACH = 2,
  TRACE_CGROUP_CREATED = 3,
  TRACE_CGROUP_JOINED = 4,
  TRACE_CGROUP_REMOVED = 5,
};

#define TRACE_NAME 16
#define TRACE_PARENTS 8
#define TRACE_COMMAND 240
/* NOLINTEND(modernize-macro-to-enum,performance-enum-size) */

struct trace_parent {
  unsigned int pid;
  char name[TRACE_NAME];
};

struct trace_event {
  unsigned long long at; /* CLOCK_MONOTONIC */
  unsigned long long cgroup;
  unsigned int kind;
  unsigned int hierarchy; /* the id of the hierarchy; 0 is v2 */
  unsigned int pid;
  unsigned int flags;
  unsigned int program;
  unsigned int replaced;
  unsigned int command_size;
  unsigned int member; /* of TRACE_CGROUP_JOINED: the process */
  char name[TRACE_NAME];
  struct trace_parent parents[TRACE_PARENTS];
  char command[TRACE_COMMAND]; /* arguments separated by zeros; of cgroup events: the path of the cgroup */
};

/* Our own calls are not reported. Our pid is that of our pid namespace, which need not be the initial one. */
struct trace_settings {
  unsigned long long own_namespace_device;
  unsigned long long own_namespace_inode;
  unsigned long long own_pid;
};

/* Events that did not fit into their ring buffer. */
struct trace_counters {
  unsigned long long lost_rules;
  unsigned long long lost_cgroups;
};

#endif
