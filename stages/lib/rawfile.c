/*
 * rawfile.c - see rawfile.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rawfile.h"

#include <string.h>

static const char MAGIC[8] = "TSRAW1\n";

static void put(uint8_t *at, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get(const uint8_t *at, int bytes)
{
	uint64_t v = 0;
	for (int i = bytes - 1; i >= 0; i--)
		v = v << 8 | at[i];
	return v;
}

void raw_begin(struct raw *r, uint64_t ticks_per_s)
{
	uint8_t h[RAW_HEADER] = {0};
	*r = (struct raw){.bytes = BUF_INIT, .ticks_per_s = ticks_per_s};
	memcpy(h, MAGIC, sizeof MAGIC);
	put(h + 8, RAW_HEADER, 4);
	put(h + 12, RAW_RECORD, 4);
	put(h + 24, ticks_per_s, 8);
	buf_add(&r->bytes, h, sizeof h);
}

void raw_add(struct raw *r, const struct raw_rep *p)
{
	uint8_t b[RAW_RECORD];
	put(b, p->start, 8);
	put(b + 8, p->stop, 8);
	put(b + 16, p->session, 2);
	put(b + 18, p->workload, 2);
	put(b + 20, p->block, 2);
	put(b + 22, p->slot, 2);
	put(b + 24, p->set, 4);
	b[28] = p->arm;
	b[29] = p->phase;
	b[30] = p->drop;
	b[31] = p->check;
	buf_add(&r->bytes, b, sizeof b);
	r->count++;
}

void raw_set_check(struct raw *r, uint64_t index, enum raw_check check)
{
	if (index < r->count)
		r->bytes.data[RAW_HEADER + index * RAW_RECORD + 31] = (char)check;
}

const void *raw_bytes(struct raw *r, size_t *len)
{
	put((uint8_t *)r->bytes.data + 16, r->count, 8);
	*len = r->bytes.len;
	return r->bytes.data;
}

void raw_free(struct raw *r)
{
	buf_free(&r->bytes);
	r->count = 0;
}

int raw_parse(const void *data, size_t len, const char *what, struct raw *out, struct err *e)
{
	const uint8_t *h = data;
	if (len < RAW_HEADER || memcmp(h, MAGIC, sizeof MAGIC) != 0)
		return err_set(e, EX_BADINPUT, "%s: not a TSRAW1 file", what);
	if (get(h + 8, 4) != RAW_HEADER || get(h + 12, 4) != RAW_RECORD)
		return err_set(e, EX_BADINPUT, "%s: unknown header or record size", what);
	uint64_t count = get(h + 16, 8), ticks = get(h + 24, 8);
	if ((len - RAW_HEADER) % RAW_RECORD != 0 || (len - RAW_HEADER) / RAW_RECORD != count)
		return err_set(e, EX_BADINPUT, "%s: %llu records announced, %zu bytes of them", what,
			       (unsigned long long)count, len - RAW_HEADER);
	if (ticks == 0)
		return err_set(e, EX_BADINPUT, "%s: zero ticks per second", what);
	*out = (struct raw){.bytes = BUF_INIT, .count = count, .ticks_per_s = ticks};
	buf_add(&out->bytes, data, len);
	return 0;
}

void raw_get(const struct raw *r, uint64_t index, struct raw_rep *p)
{
	const uint8_t *b = (const uint8_t *)r->bytes.data + RAW_HEADER + index * RAW_RECORD;
	p->start = get(b, 8);
	p->stop = get(b + 8, 8);
	p->session = (uint16_t)get(b + 16, 2);
	p->workload = (uint16_t)get(b + 18, 2);
	p->block = (uint16_t)get(b + 20, 2);
	p->slot = (uint16_t)get(b + 22, 2);
	p->set = (uint32_t)get(b + 24, 4);
	p->arm = b[28];
	p->phase = b[29];
	p->drop = b[30];
	p->check = b[31];
}
