#include "models/cpu/kernels.h"

#include <array>

namespace cohort::models::cpu {

extern const Kernels kernels_portable;
#if defined(__x86_64__)
extern const Kernels kernels_avx512;
extern const Kernels kernels_avx2;
#endif

namespace {

struct Available {
  std::array<const Kernels*, 3> list{};
  int size = 0;

  Available() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
      add(kernels_avx512);
    if (__builtin_cpu_supports("avx2")) add(kernels_avx2);
#endif
    add(kernels_portable);
  }

  void add(const Kernels& k) {
    list[static_cast<std::size_t>(size++)] = &k;
  }
};

const Available& available() {
  static const Available instance;
  return instance;
}

}  // namespace

const Kernels& kernels() {
  return *available().list[0];
}

KernelList all_kernels() {
  return {available().list.data(), available().size};
}

}  // namespace cohort::models::cpu
