/*
 * memory.c - the memory of one workload. See memory.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "memory.h"
#include "buf.h"
#include "defence.h"
#include "dtype.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* Far from what loaders, heaps and the sanitizers' shadows use (stages/emu/protocol.h). The
 * base moves in steps of 16 MiB within the first half of that range. */
#define MEM_BASE 0x3000000000ULL
#define MEM_LIMIT 0x7000000000ULL

int mem_add(struct mem_layout *l, const char *name, enum mem_kind kind, int index, int dtype,
	    uint64_t bytes, struct err *e)
{
	if (l->n >= MEM_MAX)
		return err_set(e, EX_BADINPUT, "more than %d buffers", MEM_MAX);
	if (strlen(name) >= MEM_NAME || bytes > 1ULL << 40)
		return err_set(e, EX_BADINPUT, "buffer '%.40s': name or size out of range", name);
	struct mem_buf *b = &l->buf[l->n++];

	memset(b, 0, sizeof *b);
	strcpy(b->name, name);
	b->kind = kind;
	b->index = index;
	b->dtype = dtype;
	b->bytes = bytes;
	return 0;
}

static uint64_t up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

int mem_plan(struct mem_layout *l, int fence, struct rng *r, struct err *e)
{
	uint64_t addr = MEM_BASE + (r ? rng_below(r, 1u << 13) << 24 : 0);
	uint64_t page = l->page ? l->page : MEM_PAGE, gap = page == MEM_PAGE ? 16 * page : page;

	l->page = page;
	l->fence = fence != 0;
	l->in_bytes = l->rw_bytes = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		struct mem_buf *b = &l->buf[i];
		uint64_t *end = b->kind == MEM_INPUT ? &l->in_bytes : &l->rw_bytes;
		uint64_t payload = up(b->bytes, MEM_ALIGN);

		b->seg_off = *end;
		if (fence) {
			b->seg_len = up(MEM_GUARD + payload, page);
			b->offset = b->seg_off + b->seg_len - payload;
		} else {
			b->seg_len = up(MEM_GUARD + b->bytes + MEM_GUARD, page);
			b->offset = b->seg_off + MEM_GUARD;
		}
		b->seg_addr = addr;
		b->addr = addr + (b->offset - b->seg_off);
		*end += b->seg_len;
		/* Unmapped pages between segments, in every mode. */
		addr += b->seg_len + gap;
	}
	if (l->in_bytes == 0)
		l->in_bytes = page;
	if (l->rw_bytes == 0)
		l->rw_bytes = page;
	if (addr > MEM_LIMIT)
		return err_set(e, EX_BADINPUT, "workload needs more than 128 GiB");
	return 0;
}

static int make_memfd(const char *name, uint64_t bytes, uint8_t **map, struct err *e)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return err_sys(e, "cannot create memfd '%s'", name);
	void *p = MAP_FAILED;
	if (ftruncate(fd, (off_t)bytes) == 0)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		err_sys(e, "cannot map %llu bytes for '%s'", (unsigned long long)bytes, name);
		close(fd);
		return -1;
	}
	*map = p;
	return fd;
}

int mem_create(struct mem *m, const struct mem_layout *l, struct err *e)
{
	memset(m, 0, sizeof *m);
	m->l = *l;
	m->in_fd = m->rw_fd = -1;
	m->in_fd = make_memfd("inputs", l->in_bytes, &m->in, e);
	if (m->in_fd >= 0)
		m->rw_fd = make_memfd("outputs", l->rw_bytes, &m->rw, e);
	if (m->rw_fd < 0) {
		mem_destroy(m);
		return -1;
	}
	/* Our writable mapping exists already, so it stays; nobody can make another. Kernels
	 * before 5.1 lack that seal: there the confined child's own read-only mapping and the
	 * comparison after each rep remain. */
	if (!DEFENCE("readonly.inputs") ||
	    fcntl(m->in_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0)
		fcntl(m->in_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	fcntl(m->in_fd, F_ADD_SEALS, F_SEAL_SEAL);
	if (fcntl(m->rw_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		err_sys(e, "cannot seal the output memory");
		mem_destroy(m);
		return -1;
	}
	m->want = xmalloc(l->rw_bytes);
	m->want_in = xmalloc(l->in_bytes);
	return 0;
}

void mem_destroy(struct mem *m)
{
	if (m->in)
		munmap(m->in, m->l.in_bytes);
	if (m->rw)
		munmap(m->rw, m->l.rw_bytes);
	if (m->in_fd >= 0)
		close(m->in_fd);
	if (m->rw_fd >= 0)
		close(m->rw_fd);
	if (m->want_in)
		rng_wipe(m->want_in, m->l.in_bytes);
	free(m->want);
	free(m->want_in);
	memset(m, 0, sizeof *m);
	m->in_fd = m->rw_fd = -1;
}

static uint64_t layout_end(const struct mem_layout *l)
{
	const struct mem_buf *b = &l->buf[l->n - 1];

	return b->seg_addr + b->seg_len + l->page;
}

int mem_overlaps(const struct mem_layout *a, const struct mem_layout *b)
{
	return a->n && b->n && a->buf[0].seg_addr < layout_end(b) && b->buf[0].seg_addr < layout_end(a);
}

const struct mem_buf *mem_find(const struct mem_layout *l, enum mem_kind kind, int index)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->buf[i].kind == (int)kind && l->buf[i].index == index)
			return &l->buf[i];
	return NULL;
}

void *mem_at(const struct mem *m, const struct mem_buf *b)
{
	return (b->kind == MEM_INPUT ? m->in : m->rw) + b->offset;
}

uint64_t mem_used(const struct mem_buf *b, const uint64_t *ws, uint32_t n_ws)
{
	if (b->kind != MEM_WORKSPACE)
		return b->bytes;
	uint64_t used = (uint32_t)b->index < n_ws ? ws[b->index] : 0;
	return used < b->bytes ? used : b->bytes;
}

/* Finite random words: sign and mantissa random, exponent large in every float type, so that a
 * kernel that adds to what it finds, or reads it, is far off. */
static void poison_finite(uint8_t *p, uint64_t n, int dtype, struct rng *r)
{
	rng_bytes(r, p, n);
	size_t w = dtype_size((enum dtype)dtype);
	uint64_t i;

	if (w == 2)
		for (i = 1; i < n; i += 2)
			p[i] = (uint8_t)((p[i] & 0x83) | (dtype == DT_F16 ? 0x68 : 0x48));
	else if (w == 8 && dtype_is_float((enum dtype)dtype))
		for (i = 7; i < n; i += 8)
			p[i] = (uint8_t)((p[i] & 0x80) | 0x41);
	else if (w == 4 || w == 0)
		for (i = 3; i < n; i += 4)
			p[i] = (uint8_t)((p[i] & 0x81) | 0x48);
}

/* NaN of the type; random bytes where the type has none. */
static void poison_nan(uint8_t *p, uint64_t n, int dtype, struct rng *r)
{
	size_t w = dtype_size((enum dtype)dtype);
	uint64_t i;

	rng_bytes(r, p, n);
	if (dtype && !dtype_is_float((enum dtype)dtype))
		return;
	if (w == 0)
		w = 4;
	for (i = w - 1; i < n; i += w) {
		p[i] |= 0x7f;
		if (w == 1)
			p[i] |= 0x7f; /* e4m3fn: 0x7f and 0xff; e5m2: also NaN */
		else
			p[i - 1] |= 0xf0;
	}
}

/* What a rep left there stays: as where buffers are allocated once and never cleared. */
static int keeps(const struct mem_buf *b)
{
	return (b->kind == MEM_OUTPUT && !DEFENCE("poison.outputs")) ||
	       (b->kind == MEM_WORKSPACE && !DEFENCE("poison.workspaces"));
}

void mem_poison(struct mem *m, struct rng *r, unsigned pattern, const uint64_t *ws, uint32_t n_ws)
{
	uint8_t *before = NULL;

	for (uint32_t i = 0; i < m->l.n && !before; i++)
		if (keeps(&m->l.buf[i])) {
			before = xmalloc(m->l.rw_bytes);
			memcpy(before, m->rw, m->l.rw_bytes);
		}
	/* Guards first, everywhere; payloads over them. Input payloads are kept aside. */
	rng_bytes(r, m->rw, m->l.rw_bytes);
	for (uint32_t i = 0; i < m->l.n; i++) {
		const struct mem_buf *b = &m->l.buf[i];
		uint8_t *p = mem_at(m, b);

		if (b->kind == MEM_INPUT) {
			uint64_t end = b->offset + b->bytes;
			rng_bytes(r, m->in + b->seg_off, b->offset - b->seg_off);
			rng_bytes(r, m->in + end, b->seg_off + b->seg_len - end);
		} else if (before && keeps(b)) {
			memcpy(p, before + b->offset, b->bytes);
		} else if (pattern & 1) {
			poison_finite(p, mem_used(b, ws, n_ws), b->dtype, r);
		} else {
			poison_nan(p, mem_used(b, ws, n_ws), b->dtype, r);
		}
	}
	free(before);
	memcpy(m->want, m->rw, m->l.rw_bytes);
	memcpy(m->want_in, m->in, m->l.in_bytes);
}

enum mem_check mem_guard_check(const struct mem *m, const uint64_t *ws, uint32_t n_ws,
			       char name[MEM_NAME])
{
	for (uint32_t i = 0; i < m->l.n; i++) {
		const struct mem_buf *b = &m->l.buf[i];
		const uint8_t *now = b->kind == MEM_INPUT ? m->in : m->rw;
		const uint8_t *was = b->kind == MEM_INPUT ? m->want_in : m->want;
		uint64_t end = b->offset + (b->kind == MEM_INPUT ? b->bytes : mem_used(b, ws, n_ws));
		uint64_t stop = b->seg_off + b->seg_len;

		strcpy(name, b->name);
		if (b->kind == MEM_INPUT && memcmp(now + b->offset, was + b->offset, b->bytes))
			return MEM_INPUT_HIT;
		if (memcmp(now + b->seg_off, was + b->seg_off, b->offset - b->seg_off) ||
		    memcmp(now + end, was + end, stop - end))
			return MEM_GUARD_HIT;
	}
	name[0] = 0;
	return MEM_CLEAN;
}

int mem_reaches(const struct mem_layout *l, uint32_t buffer, int64_t at)
{
	if (buffer >= l->n)
		return 0;
	const struct mem_buf *b = &l->buf[buffer];
	int64_t front = (int64_t)(b->offset - b->seg_off);

	return at >= -front && at < (int64_t)b->seg_len - front;
}

void mem_hash_outputs(const struct mem *m, uint8_t out[32])
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	unsigned len = 32;

	if (!c || EVP_DigestInit_ex(c, EVP_sha256(), NULL) != 1)
		abort();
	for (uint32_t i = 0; i < m->l.n; i++)
		if (m->l.buf[i].kind == MEM_OUTPUT)
			EVP_DigestUpdate(c, mem_at(m, &m->l.buf[i]), m->l.buf[i].bytes);
	if (EVP_DigestFinal_ex(c, out, &len) != 1)
		abort();
	EVP_MD_CTX_free(c);
}
