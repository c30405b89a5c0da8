// The program's own `new`: it asks the kernel for pages of 2 MiB for large blocks. A step of
// millions of operations lives in a few long arrays, and touching those for the first time in pages
// of 4 KiB took two fifths of such a command where page faults are dear, as in virtual machines.
// Sanitizers bring a `new` of their own, which this must not replace.
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#endif

#ifndef __SANITIZE_ADDRESS__

namespace {

constexpr std::size_t page = std::size_t{2} << 20;

// Returns null where there is no memory. What it returns is given back by free(), as the standard
// library's `delete` does.
void* block_of(std::size_t size) {
  if (size < page) return std::malloc(size == 0 ? 1 : size);
  if (size > static_cast<std::size_t>(-1) - page) return nullptr;
  const std::size_t whole = (size + page - 1) / page * page;
  void* block = std::aligned_alloc(page, whole);
  if (block != nullptr)
    madvise(block, whole, MADV_HUGEPAGE);  // only advice: without it all is right, and slower
  return block;
}

}  // namespace

void* operator new(std::size_t size) {
  for (;;) {
    if (void* block = block_of(size)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

#endif
