// A device program like those of engines: it allows /dev/null and /dev/zero, and nothing else.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("cgroup/dev")
int gate(struct bpf_cgroup_dev_ctx *request) {
  if ((request->access_type & 0xffff) != BPF_DEVCG_DEV_CHAR || request->major != 1) {
    return 0;
  }
  return request->minor == 3 || request->minor == 5;
}

char _license[] SEC("license") = "Dual BSD/GPL";
