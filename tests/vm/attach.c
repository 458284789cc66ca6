// usage: attach OBJECT FOLDER: loads a BPF object, attaches all its programs by their section names, and pins their links in a folder
// of bpffs, so that they stay. (bpftool can do so since version 7.2: prog loadall … autoattach.)
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int failed(const char *what) {
  fprintf(stderr, "attach: %s: %s\n", what, strerror(errno));
  return 1;
}

int main(int count, char **words) {
  if (count != 3) {
    fprintf(stderr, "usage: attach OBJECT FOLDER\n");
    return 2;
  }
  struct bpf_object *object = bpf_object__open_file(words[1], NULL);
  if (object == NULL || bpf_object__load(object) != 0) {
    return failed(words[1]);
  }
  if (mkdir(words[2], 0700) != 0) {
    return failed(words[2]);
  }
  struct bpf_program *program;
  bpf_object__for_each_program(program, object) {
    const char *name = bpf_program__name(program);
    char path[256];
    snprintf(path, sizeof path, "%s/%s", words[2], name);
    struct bpf_link *link = bpf_program__attach(program);
    if (link == NULL || bpf_link__pin(link, path) != 0) {
      return failed(name);
    }
  }
  return 0;
}
