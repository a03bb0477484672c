/*
 * memory.c - allocations, address ranges and shareable handles of the fake driver.
 *
 * Device memory is host memory at the address that was asked for: a handle is a memfd, mapping it is
 * mmap, access is mprotect. So a kernel's store to a read-only mapping faults, as on a GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is known of an address: plain allocations, pinned memory, reserved ranges, mappings. */
enum what { ALLOCATED, PINNED, RESERVED, MAPPED };
struct range {
	struct range *next;
	enum what what;
	uint64_t at, bytes;
};
static struct range *ranges;
static uint64_t in_use;

static struct range **range_at(enum what what, uint64_t at)
{
	struct range **r = &ranges;
	while (*r && ((*r)->what != what || (*r)->at != at))
		r = &(*r)->next;
	return r;
}

static const struct range *range_around(enum what what, uint64_t at, uint64_t bytes)
{
	for (const struct range *r = ranges; r; r = r->next)
		if (r->what == what && at >= r->at && at - r->at <= r->bytes && bytes <= r->bytes - (at - r->at))
			return r;
	return NULL;
}

static void range_add(enum what what, uint64_t at, uint64_t bytes)
{
	struct range *r = malloc(sizeof *r);
	if (!r)
		abort();
	*r = (struct range){ranges, what, at, bytes};
	ranges = r;
}

static uint64_t range_drop(enum what what, uint64_t at)
{
	struct range **r = range_at(what, at), *gone = *r;
	uint64_t bytes = gone ? gone->bytes : 0;
	if (gone)
		*r = gone->next;
	free(gone);
	return bytes;
}

static int pages(size_t n)
{
	return n && n % fake_granule() == 0;
}

/* --- plain allocations --- */

/* Nothing is mapped behind the last page: an access far out of bounds faults. Fresh memory holds no
 * zeros that a program could rely on. */
CUdeviceptr fake_alloc(size_t bytes)
{
	size_t whole = (bytes + 4095) & ~(size_t)4095;
	char *p = mmap(NULL, whole + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED || mprotect(p + 4096, whole, PROT_READ | PROT_WRITE))
		return 0;
	if (whole <= (size_t)16 << 20)
		memset(p + 4096, 0xc5, whole);
	range_add(ALLOCATED, (uint64_t)(uintptr_t)(p + 4096), whole);
	in_use += whole;
	return (CUdeviceptr)(uintptr_t)(p + 4096);
}

void fake_free(CUdeviceptr at)
{
	uint64_t bytes = range_drop(ALLOCATED, at);
	if (bytes)
		munmap((char *)(uintptr_t)at - 4096, bytes + 8192);
	in_use -= bytes;
}

/* --- where modules keep their data --- */

/* One piece for all modules, as on a GPU: what lies beside a variable can be written, and nobody wipes it. It is
 * mapped at once and handed out from its start as long as a module has some of it. */
enum { PIECE = 2 << 20 };
static char *piece;
static size_t piece_used, piece_users;

CUdeviceptr fake_module_alloc(size_t bytes)
{
	size_t whole = (bytes + 255) & ~(size_t)255;
	if (!piece) {
		char *p = mmap(NULL, 2 * PIECE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return 0;
		piece = (char *)(((uintptr_t)p + PIECE - 1) & ~(uintptr_t)(PIECE - 1));
		if (mprotect(piece, PIECE, PROT_READ | PROT_WRITE))
			return 0;
		piece_used = 256;
	}
	if (whole > PIECE - piece_used)
		return fake_alloc(bytes);
	char *at = piece + piece_used;
	piece_used += whole;
	piece_users++;
	return (CUdeviceptr)(uintptr_t)at;
}

void fake_module_free(CUdeviceptr at)
{
	if (!piece || at < (uintptr_t)piece || at >= (uintptr_t)piece + PIECE)
		fake_free(at);
	else if (--piece_users == 0)
		piece_used = 256;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
	int r = fake_ready_uncaptured();
	if (r || !bytes)
		return r ? r : CUDA_INVALID_VALUE;
	*at = fake_alloc(bytes);
	return *at ? 0 : CUDA_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr at)
{
	int r = fake_ready_uncaptured();
	if (!r)
		r = fake_drain();
	if (r || !at)
		return r;
	if (!*range_at(ALLOCATED, at))
		return CUDA_INVALID_VALUE;
	fake_free(at);
	return 0;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
	int r = fake_ready();
	*total = (size_t)150110011392;
	uint64_t room = (uint64_t)fake_number("FAKE_CUDA_FREE", 256 << 20);
	*available = room > in_use ? room - in_use : 0;
	return r;
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
	int r = fake_ready_uncaptured();
	if (r || !bytes || flags > 7)
		return r ? r : CUDA_INVALID_VALUE;
	*p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (!*p)
		return CUDA_OUT_OF_MEMORY;
	range_add(PINNED, (uint64_t)(uintptr_t)*p, bytes);
	return 0;
}

CUresult cuMemFreeHost(void *p)
{
	if (!range_drop(PINNED, (uint64_t)(uintptr_t)p))
		return CUDA_INVALID_VALUE;
	fake_drain();
	free(p);
	return 0;
}

/* --- copies --- */

static CUresult copy(uint64_t to, uint64_t from, size_t n, CUstream s, int stage)
{
	struct fake_op op = {.kind = FAKE_COPY, .to = to, .from = from, .n = n};
	int r = fake_ready();
	if (r || n == 0)
		return r;
	if (stage && !(s && s->capture)) {
		op.staged = malloc(n);
		if (!op.staged)
			return CUDA_OUT_OF_MEMORY;
		memcpy(op.staged, (void *)(uintptr_t)from, n);
	}
	return fake_enqueue(s, &op);
}

static CUresult copy_now(uint64_t to, uint64_t from, size_t n)
{
	int r = fake_ready_uncaptured();
	if (!r)
		r = copy(to, from, n, NULL, 0);
	return r ? r : fake_drain();
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n)
{
	return copy_now(to, (uint64_t)(uintptr_t)from, n);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n)
{
	return copy_now((uint64_t)(uintptr_t)to, from, n);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
	return copy(to, from, n, s, 0);
}

/* The driver has read pageable memory when the call returns; pinned memory it reads later. */
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
	uint64_t p = (uint64_t)(uintptr_t)from;
	return copy(to, p, n, s, !range_around(PINNED, p, n));
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s)
{
	uint64_t p = (uint64_t)(uintptr_t)to;
	int r = copy(p, from, n, s, 0);
	return r || (s && s->capture) || range_around(PINNED, p, n) ? r : fake_drain();
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream s)
{
	struct fake_op op = {.kind = FAKE_SET8, .to = at, .value = value, .n = n};
	int r = fake_ready();
	return r || n == 0 ? r : fake_enqueue(s, &op);
}

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t n, CUstream s)
{
	struct fake_op op = {.kind = FAKE_SET32, .to = at, .value = value, .n = n};
	int r = fake_ready();
	if (!r && at % 4)
		r = CUDA_INVALID_VALUE;
	return r || n == 0 ? r : fake_enqueue(s, &op);
}

/* --- virtual memory --- */

CUresult cuMemAddressReserve(CUdeviceptr *at, size_t bytes, size_t align, CUdeviceptr want,
			     unsigned long long flags)
{
	int r = fake_ready();
	if (r || !pages(bytes) || flags || (align & (align - 1)))
		return r ? r : CUDA_INVALID_VALUE;
	if (align < fake_granule())
		align = fake_granule();
	void *hint = (void *)(uintptr_t)(want & ~(CUdeviceptr)(align - 1));
	int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *p = hint ? mmap(hint, bytes, PROT_NONE, how | MAP_FIXED_NOREPLACE, -1, 0) : MAP_FAILED;
	if (p == MAP_FAILED) { /* the wish is only a wish: any other place */
		char *wide = mmap(NULL, bytes + align, PROT_NONE, how, -1, 0);
		if (wide == MAP_FAILED)
			return CUDA_OUT_OF_MEMORY;
		p = (char *)(((uintptr_t)wide + align - 1) & ~(uintptr_t)(align - 1));
		if (p > wide)
			munmap(wide, (size_t)(p - wide));
		if (wide + align > p)
			munmap(p + bytes, (size_t)(wide + align - p));
	}
	*at = (CUdeviceptr)(uintptr_t)p;
	range_add(RESERVED, *at, bytes);
	return 0;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
	struct range *r = *range_at(RESERVED, at);
	if (!r || r->bytes != bytes)
		return CUDA_INVALID_VALUE;
	for (const struct range *m = ranges; m; m = m->next)
		if (m->what == MAPPED && m->at >= at && m->at < at + bytes)
			return CUDA_INVALID_VALUE;
	range_drop(RESERVED, at);
	munmap((void *)(uintptr_t)at, bytes);
	return 0;
}

static int prop_bad(const CUmemProp *p)
{
	return !p || p->type != CU_MEM_PINNED || p->location.type != CU_MEM_ON_DEVICE || p->location.id < 0 ||
	       p->location.id >= fake_gpus() || (p->handle_types & ~CU_MEM_POSIX_FD);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemProp *p, int option)
{
	int r = fake_ready();
	if (r || prop_bad(p) || option < 0 || option > 1)
		return r ? r : CUDA_INVALID_VALUE;
	*bytes = fake_granule();
	return 0;
}

/* A handle is the descriptor plus one, and a bit that says whether it may be exported. */
#define HANDLE(fd, shareable) ((CUmemHandle)(uint64_t)(fd) << 1 | 1 | (CUmemHandle)(shareable) << 40)
static int handle_fd(CUmemHandle h)
{
	return (int)(h >> 1 & 0x7fffffff);
}
static int handle_shareable(CUmemHandle h)
{
	return (int)(h >> 40 & 1);
}

CUresult cuMemCreate(CUmemHandle *h, size_t bytes, const CUmemProp *p, unsigned long long flags)
{
	int r = fake_ready();
	if (r || prop_bad(p) || !pages(bytes) || flags)
		return r ? r : CUDA_INVALID_VALUE;
	int fd = memfd_create("fake-gpu-memory", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)bytes)) {
		if (fd >= 0)
			close(fd);
		return CUDA_OUT_OF_MEMORY;
	}
	*h = HANDLE(fd, p->handle_types & CU_MEM_POSIX_FD);
	return 0;
}

CUresult cuMemRelease(CUmemHandle h)
{
	int r = fake_ready();
	if (r)
		return r;
	return close(handle_fd(h)) ? CUDA_INVALID_VALUE : 0;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemHandle h, int type, unsigned long long flags)
{
	int r = fake_ready();
	if (r || type != CU_MEM_POSIX_FD || flags || !handle_shareable(h))
		return r ? r : CUDA_INVALID_VALUE;
	int fd = fcntl(handle_fd(h), F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return CUDA_INVALID_VALUE;
	memcpy(out, &fd, sizeof fd);
	return 0;
}

CUresult cuMemImportFromShareableHandle(CUmemHandle *h, void *os, int type)
{
	struct stat st;
	int r = fake_ready();
	if (r || type != CU_MEM_POSIX_FD)
		return r ? r : CUDA_INVALID_VALUE;
	int fd = fcntl((int)(intptr_t)os, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || fstat(fd, &st) || !pages((size_t)st.st_size)) {
		if (fd >= 0)
			close(fd);
		return CUDA_INVALID_VALUE;
	}
	*h = HANDLE(fd, 0);
	return 0;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemHandle h, unsigned long long flags)
{
	struct stat st;
	int r = fake_ready();
	if (r)
		return r;
	if (!pages(bytes) || at % fake_granule() || offset || flags || !range_around(RESERVED, at, bytes) ||
	    fstat(handle_fd(h), &st) || bytes > (size_t)st.st_size)
		return CUDA_INVALID_VALUE;
	for (const struct range *m = ranges; m; m = m->next)
		if (m->what == MAPPED && m->at < at + bytes && at < m->at + m->bytes)
			return CUDA_INVALID_VALUE;
	if (mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle_fd(h), 0) == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	range_add(MAPPED, at, bytes);
	in_use += bytes;
	return 0;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
	int r = fake_drain();
	struct range *m = *range_at(MAPPED, at);
	if (r || !m || m->bytes != bytes)
		return r ? r : CUDA_INVALID_VALUE;
	if (mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	range_drop(MAPPED, at);
	in_use -= bytes;
	return 0;
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccess *a, size_t n)
{
	int r = fake_ready();
	if (r || n != 1 || a->location.type != CU_MEM_ON_DEVICE || a->location.id < 0 ||
	    a->location.id >= fake_gpus() || !pages(bytes))
		return r ? r : CUDA_INVALID_VALUE;
	/* whole mappings only, as far as the range goes */
	uint64_t covered = 0;
	for (const struct range *m = ranges; m; m = m->next)
		if (m->what == MAPPED && m->at >= at && m->at + m->bytes <= at + bytes)
			covered += m->bytes;
	if (covered != bytes || (a->flags != 0 && a->flags != CU_MEM_READ && a->flags != CU_MEM_READ_WRITE))
		return CUDA_INVALID_VALUE;
	int prot = a->flags == CU_MEM_READ_WRITE ? PROT_READ | PROT_WRITE : a->flags ? PROT_READ : PROT_NONE;
	return mprotect((void *)(uintptr_t)at, bytes, prot) ? CUDA_INVALID_VALUE : 0;
}
