/* What the tracer's programs in the kernel hand to us. Read by BPF C and by C++: plain C, no padding by chance. */
#ifndef HOLDFAST_TRACE_EVENT_H
#define HOLDFAST_TRACE_EVENT_H

/* NOLINTBEGIN(modernize-macro-to-enum,performance-enum-size): it is C */
enum trace_kind {
  TRACE_ATTACH = 1, /* or replaced */
  TRACE_DETACH = 2,
  TRACE_MADE = 3,   /* a cgroup was created */
  TRACE_JOINED = 4, /* a process joined one */
  TRACE_GONE = 5,   /* a cgroup was removed */
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
  unsigned int hierarchy; /* its number; 0 is v2 */
  unsigned int pid;
  unsigned int flags;
  unsigned int program;
  unsigned int replaced;
  unsigned int command_size;
  unsigned int member; /* of TRACE_JOINED: the process */
  char name[TRACE_NAME];
  struct trace_parent parents[TRACE_PARENTS];
  char command[TRACE_COMMAND]; /* words parted by zeros; of a cgroup that comes or goes: its path */
};

#endif
