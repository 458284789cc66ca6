// libelf.a of elfutils 0.192 (Debian 13) refers to these functions of libeu, an archive that no package contains. They
// keep a tree of raw chunks, which libbpf never reads: it stays empty, as libelf allocates it.
extern "C" {
void eu_search_tree_init(void* /*tree*/, int (* /*compare*/)(const void*, const void*)) {}
void eu_search_tree_fini(void* /*tree*/, void (* /*free_node*/)(void*)) {}
}
