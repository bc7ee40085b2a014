#include "device/cpu/onednn_threads.h"

#include <dlfcn.h>
#include <link.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "device/cpu/onednn.h"
#include "device/cpu/team.h"

namespace ag::cpu {
namespace {

// The functions that the calls reached before.
struct Gomp {
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned) = nullptr;
  void (*barrier)() = nullptr;
  int (*num_threads)() = nullptr;
  int (*thread_num)() = nullptr;
  int (*in_parallel)() = nullptr;
};
Gomp gomp;

void Parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags) {
  const Team::Place& here = Team::Here();
  if (here.team == nullptr) return gomp.parallel(function, data, threads, flags);
  const int wanted = threads == 0 ? omp_get_max_threads() : static_cast<int>(threads);
  const int parts = here.inside ? 1 : std::min(wanted, here.team->size());
  here.team->Run(parts, [&](int) { function(data); });
}
void Barrier() {
  const Team::Place& here = Team::Here();
  if (!here.inside) return gomp.barrier();
  here.team->Barrier();
}
int NumThreads() {
  const Team::Place& here = Team::Here();
  return here.inside ? here.parts : gomp.num_threads();
}
int ThreadNum() {
  const Team::Place& here = Team::Here();
  return here.inside ? here.part : gomp.thread_num();
}
int InParallel() { return Team::Here().inside ? 1 : gomp.in_parallel(); }

// One import: its name, where to store the old address, the new address.
struct Import {
  std::string_view name;
  void** before;
  void* now;
  void** slot = nullptr;  // In the table of imports.
};

// Returns the dynamic section's entry of this tag; 0: none.
ElfW(Addr) Dynamic(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag) {
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == tag) return dynamic->d_un.d_ptr;
  }
  return 0;
}

// Finds the slots among the calls of the library at `base`; returns true when all were found.
bool FindSlots(ElfW(Addr) base, const ElfW(Dyn) * dynamic, std::span<Import> imports) {
  // The loader has added the base to these two.
  const auto* const symbols = reinterpret_cast<const ElfW(Sym)*>(Dynamic(dynamic, DT_SYMTAB));
  const auto* const names = reinterpret_cast<const char*>(Dynamic(dynamic, DT_STRTAB));
  const auto* const calls = reinterpret_cast<const ElfW(Rela)*>(Dynamic(dynamic, DT_JMPREL));
  if (Dynamic(dynamic, DT_PLTREL) != DT_RELA || !symbols || !names || !calls) return false;
  for (size_t i = 0; i < Dynamic(dynamic, DT_PLTRELSZ) / sizeof(ElfW(Rela)); ++i) {
    const std::string_view name = names + symbols[ELF64_R_SYM(calls[i].r_info)].st_name;
    const auto found = std::ranges::find(imports, name, &Import::name);
    if (found != imports.end()) found->slot = reinterpret_cast<void**>(base + calls[i].r_offset);
  }
  return std::ranges::all_of(imports, [](const Import& import) { return import.slot; });
}

// Writes one slot. The loader may have made its page read-only.
bool ReplaceSlot(const Import& import) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGE_SIZE));
  const auto at = reinterpret_cast<uintptr_t>(import.slot);
  auto* const begin = reinterpret_cast<void*>(at & ~(page - 1));
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return false;
  *import.before = *import.slot;
  *import.slot = import.now;
  return true;
}

struct Library {
  ElfW(Addr) base = 0;
  const ElfW(Dyn) * dynamic = nullptr;
  ElfW(Addr) read_only = 0;  // Read-only after loading; 0 bytes: none.
  size_t read_only_bytes = 0;
};

int Look(dl_phdr_info* info, size_t, void* data) {
  auto* const library = static_cast<Library*>(data);
  if (info->dlpi_addr != library->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const ElfW(Addr) at = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) {
      library->dynamic = reinterpret_cast<const ElfW(Dyn)*>(at);
    } else if (header.p_type == PT_GNU_RELRO) {
      library->read_only = at;
      library->read_only_bytes = header.p_memsz;
    }
  }
  return 1;
}

template <class F>
void* Any(F* function) {
  return reinterpret_cast<void*>(function);
}

bool ReplaceImports() {
  Dl_info where{};
  if (dladdr(Any(&dnnl_version), &where) == 0) return false;
  Library library{.base = reinterpret_cast<ElfW(Addr)>(where.dli_fbase)};
  dl_iterate_phdr(Look, &library);
  const auto before = [](auto* function) { return reinterpret_cast<void**>(function); };
  Import imports[] = {{"GOMP_parallel", before(&gomp.parallel), Any(&Parallel)},
                      {"GOMP_barrier", before(&gomp.barrier), Any(&Barrier)},
                      {"omp_get_num_threads", before(&gomp.num_threads), Any(&NumThreads)},
                      {"omp_get_thread_num", before(&gomp.thread_num), Any(&ThreadNum)},
                      {"omp_in_parallel", before(&gomp.in_parallel), Any(&InParallel)}};
  if (library.dynamic == nullptr || !FindSlots(library.base, library.dynamic, imports)) {
    return false;
  }
  const bool replaced = std::ranges::all_of(imports, ReplaceSlot);
  if (library.read_only_bytes > 0) {
    // Whole pages, as the loader does.
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGE_SIZE));
    const uintptr_t begin = library.read_only & ~(page - 1);
    const uintptr_t end = (library.read_only + library.read_only_bytes) & ~(page - 1);
    mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ);
  }
  return replaced;
}

}  // namespace

bool RunOneDnnOnTeams() {
  static const bool replaced = ReplaceImports();
  return replaced;
}

}  // namespace ag::cpu
