// A short CUDA program: it opens the GPU, copies memory to it and back, and ends.
// Exit: 0 it worked; otherwise the number of the CUDA call that failed, with the CUDA error code on standard error.
#include <cstdio>
#include <vector>

#include <dlfcn.h>

namespace {

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

int main() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "no libcuda: %s\n", ::dlerror());
    return 77;
  }
  const auto init = find<int (*)(unsigned)>(library, "cuInit");
  const auto device_get = find<int (*)(int*, int)>(library, "cuDeviceGet");
  const auto context_create = find<int (*)(void**, unsigned, int)>(library, "cuCtxCreate_v2");
  const auto allocate = find<int (*)(unsigned long long*, std::size_t)>(library, "cuMemAlloc_v2");
  const auto copy_to = find<int (*)(unsigned long long, const void*, std::size_t)>(library, "cuMemcpyHtoD_v2");
  const auto copy_from = find<int (*)(void*, unsigned long long, std::size_t)>(library, "cuMemcpyDtoH_v2");
  int device = 0;
  void* context = nullptr;
  unsigned long long memory = 0;
  std::vector<int> there(1 << 20, 42);
  std::vector<int> back(there.size());
  const std::size_t bytes = there.size() * sizeof(int);
  int step = 0;
  const auto check = [&step](int result) {
    ++step;
    if (result != 0) {
      std::fprintf(stderr, "CUDA call %d: error %d\n", step, result);
    }
    return result == 0;
  };
  const bool worked = check(init(0)) && check(device_get(&device, 0)) && check(context_create(&context, 0, device)) &&
                      check(allocate(&memory, bytes)) && check(copy_to(memory, there.data(), bytes)) &&
                      check(copy_from(back.data(), memory, bytes));
  return worked && back == there ? 0 : step;
}
