// Tells who changed device rules last, and how often that was: fentry on the ways in of cgroup v2 and v1.
// No argument is read, as their layouts differ from kernel to kernel.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

__u32 attaches = 0;
__u32 writes = 0;
char who[16] = {};

SEC("fentry/cgroup_bpf_prog_attach")
int attach(void *arguments) {
  __sync_fetch_and_add(&attaches, 1);
  bpf_get_current_comm(who, sizeof who);
  return 0;
}

SEC("fentry/devcgroup_access_write")
int write(void *arguments) {
  __sync_fetch_and_add(&writes, 1);
  bpf_get_current_comm(who, sizeof who);
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
