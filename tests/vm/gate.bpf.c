// A device program as an engine would attach it: /dev/null and /dev/zero, nothing else.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("cgroup/dev")
int gate(struct bpf_cgroup_dev_ctx *asked) {
  if ((asked->access_type & 0xffff) != BPF_DEVCG_DEV_CHAR || asked->major != 1) {
    return 0;
  }
  return asked->minor == 3 || asked->minor == 5;
}

char _license[] SEC("license") = "Dual BSD/GPL";
