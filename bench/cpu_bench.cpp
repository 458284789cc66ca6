// How long a choice of CPUs takes, and how often it allocates memory: machines of 16 to 1,024 CPUs, all free and
// fragmented, packed and distributed. Kubelet's figures are printed beside them (its own benchmark, machines of the
// same sizes).
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/cpu/machine.h"
#include "core/cpu/policy.h"
#include "core/cpu/take.h"

namespace {

std::atomic<std::uint64_t> allocations = 0;

}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads,cppcoreguidelines-no-malloc)
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(misc-new-delete-overloads,cppcoreguidelines-no-malloc)

namespace {

using namespace hf::cpu;
using Clock = std::chrono::steady_clock;

struct Figure {
  double median_ns = 0;
  double worst_ns = 0;
  double allocations = 0;
};

template <class Work>
Figure measure(Work work) {
  constexpr int kSamples = 41;
  std::vector<double> times;
  work();
  int rounds = 1;
  for (auto began = Clock::now(); Clock::now() - began < std::chrono::milliseconds(2); ++rounds) {
    work();
  }
  const std::uint64_t before = allocations;
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto began = Clock::now();
    for (int round = 0; round < rounds; ++round) {
      work();
    }
    times.push_back(double(std::chrono::nanoseconds(Clock::now() - began).count()) / rounds);
  }
  const double count = double(allocations - before) / (double(kSamples) * rounds);
  std::ranges::sort(times);
  return {times[times.size() / 2], times.back(), count};
}

struct Machine {
  const char* name;
  Shape shape;
};

constexpr std::array kMachines = {
    Machine{"16", {1, 1, 2, 4, 2}},
    Machine{"128", {2, 2, 4, 4, 2}},
    Machine{"256", {2, 4, 2, 8, 2}},
    Machine{"1024", {8, 2, 4, 8, 2}},
};

// Every fourth core has one thread taken.
CpuSet fragmented(const Layout& layout) {
  CpuSet free = layout.cpus;
  for (const Cpu& cpu : layout.topology.cpus) {
    if (cpu.core % 4 == 0 && cpu.id == cpu.core) {
      free.remove(cpu.id);
    }
  }
  return free;
}

// The worst case: every NUMA node has another number of free CPUs, so that no two are alike.
CpuSet ragged(const Layout& layout) {
  CpuSet free = layout.cpus;
  std::map<std::uint32_t, std::uint32_t> seen;
  for (const Cpu& cpu : layout.topology.cpus) {
    if (seen[cpu.numa.value]++ < 1 + cpu.numa.value) {
      free.remove(cpu.id);
    }
  }
  return free;
}

// Nanoseconds of kubelet v1.36.4, by algorithm, CPUs, pool and request.
const std::map<std::string, double> kKubelet = {
    {"packed 16 full 1", 164743},
    {"packed 16 full 8", 97800},
    {"packed 16 fragmented 1", 85926},
    {"packed 16 fragmented 8", 75227},
    {"packed 128 full 1", 4176951},
    {"packed 128 full 8", 2767851},
    {"packed 128 full 64", 298565},
    {"packed 128 fragmented 1", 4198463},
    {"packed 128 fragmented 8", 2891119},
    {"packed 128 fragmented 64", 4198274},
    {"packed 256 full 1", 14937056},
    {"packed 256 full 8", 10271239},
    {"packed 256 full 64", 1581543},
    {"packed 256 full 128", 568988},
    {"packed 256 fragmented 1", 13215134},
    {"packed 256 fragmented 8", 7607386},
    {"packed 256 fragmented 64", 11444819},
    {"packed 256 fragmented 128", 11957450},
    {"packed 1024 full 1", 222381277},
    {"packed 1024 full 8", 102001189},
    {"packed 1024 full 64", 124184682},
    {"packed 1024 full 512", 4550250},
    {"packed 1024 fragmented 1", 115887267},
    {"packed 1024 fragmented 8", 65087957},
    {"packed 1024 fragmented 64", 123794219},
    {"packed 1024 fragmented 512", 148031751},
    {"distributed 16 full 1", 181354},
    {"distributed 16 full 8", 148974},
    {"distributed 128 full 1", 2018874},
    {"distributed 128 full 8", 1410020},
    {"distributed 128 full 64", 397518},
    {"distributed 256 full 1", 2783487},
    {"distributed 256 full 8", 3123551},
    {"distributed 256 full 64", 9844295},
    {"distributed 256 full 128", 35167855},
    {"distributed 1024 full 1", 30293566},
    {"distributed 1024 full 8", 16639601},
    {"distributed 1024 full 64", 14599840},
    {"distributed 1024 full 512", 103297533},
};

void show(const std::string& name, const Figure& figure) {
  const auto kubelet = kKubelet.find(name);
  std::printf("%-34s %10.2f us %10.2f us %8.1f", name.c_str(), figure.median_ns / 1000, figure.worst_ns / 1000,
              figure.allocations);
  if (kubelet != kKubelet.end()) {
    std::printf(" %12.0f us %8.0fx", kubelet->second / 1000, kubelet->second / figure.median_ns);
  }
  std::printf("\n");
}

void bench_machine(const Machine& machine) {
  const Layout layout(build(machine.shape));
  const std::uint32_t all = std::uint32_t(layout.topology.cpus.size());
  const std::vector<std::pair<std::string, CpuSet>> pools = {
      {"full", layout.cpus}, {"fragmented", fragmented(layout)}, {"ragged", ragged(layout)}};
  for (const char* algorithm : {"packed", "distributed"}) {
    for (const auto& [pool, free] : pools) {
      for (const std::uint32_t count : {1U, 8U, 64U, all / 2}) {
        if (count > free.count() || (count == all / 2 && (count == 8 || count == 64))) {
          continue;
        }
        const bool is_packed = algorithm == std::string("packed");
        const std::string name = std::string(algorithm) + " " + machine.name + " " + pool + " " + std::to_string(count);
        show(name, measure([&] {
               const hf::Result<CpuSet> cpus =
                   is_packed ? take_packed(layout, free, count, {}) : take_distributed(layout, free, count, 1);
               if (!cpus || cpus->count() != count) {
                 std::abort();
               }
             }));
      }
    }
  }
  const Policy policy =
      *make_policy(layout, *parse_options({{"full-pcpus-only", "true"}}), *parse_cpu_set("0"), std::nullopt);
  const PodRequest pod{.uid = "p", .is_guaranteed = true, .containers = {{"c", ContainerRole::app, whole_cpus(4)}}};
  State state;
  if (!start(policy, state)) {
    std::abort();
  }
  show("policy " + std::string(machine.name) + " allocate 4, remove", measure([&] {
         if (!allocate(policy, state, pod, "c", {.hint = {{NumaId{0}}}})) {
           std::abort();
         }
         (void)remove(state, {"p", "c"});
       }));
}

}  // namespace

int main() {
  std::printf("%-34s %13s %13s %8s %15s %9s\n", "", "median", "worst", "allocs", "kubelet's", "ratio");
  for (const Machine& machine : kMachines) {
    bench_machine(machine);
  }
}
