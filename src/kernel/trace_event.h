/* What the tracer's programs in the kernel hand to us. Read by BPF C and by C++: plain C, no padding by chance. */
#ifndef HOLDFAST_TRACE_EVENT_H
#define HOLDFAST_TRACE_EVENT_H

/* NOLINTBEGIN(modernize-macro-to-enum,performance-enum-size): it is C */
enum trace_kind {
  TRACE_LOAD = 1,   /* a device program was loaded */
  TRACE_ATTACH = 2, /* or replaced */
  TRACE_DETACH = 3,
  TRACE_WRITE = 5,   /* devices.allow or devices.deny of cgroup v1 */
  TRACE_CGROUP = 6,  /* a cgroup was made, or a process joined one */
  TRACE_RELEASE = 7, /* a cgroup is gone */
};

#define TRACE_NAME 16
#define TRACE_PARENTS 8
#define TRACE_COMMAND 240
#define TRACE_TEXT 48
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
  unsigned int text_size;
  char name[TRACE_NAME];
  struct trace_parent parents[TRACE_PARENTS];
  char command[TRACE_COMMAND]; /* words parted by zeros */
  char text[TRACE_TEXT];
};

#endif
