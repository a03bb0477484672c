/*
 * check_memory.c - the memory of one workload as tools/check.c sees it. See check_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "check_part.h"

#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void check_say(struct check *c, int ok, const char *fmt, ...)
{
	va_list ap;

	c->failures += !ok;
	printf("  %-5s ", ok ? "ok" : "FAIL");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

int check_use(struct check *c, enum checker_mode mode, uint32_t index, struct err *e)
{
	struct checker_open q = {.mode = mode, .index = index, .baseline = 1};
	int in_fd, rw_fd;

	if (proof_open(&c->proof, &c->arm, &q, &c->w, e) < 0)
		return -1;
	if (c->w.refused[0])
		return err_set(e, EX_BADINPUT, "baseline: %.200s", c->w.refused);
	const struct mem_layout *l = &c->w.w.layout;
	if (c->on_gpu && checker_copy(c->checker, &c->w.w, CHECKER_GET, &in_fd, &rw_fd, e) < 0)
		return -1;
	if (!c->on_gpu) {
		in_fd = c->w.w.in_fd;
		rw_fd = c->w.w.rw_fd;
	}
	c->in = mmap(NULL, l->in_bytes, PROT_READ | (c->on_gpu ? PROT_WRITE : 0), MAP_SHARED, in_fd, 0);
	c->rw = mmap(NULL, l->rw_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rw_fd, 0);
	if (c->on_gpu) {
		close(in_fd);
		close(rw_fd);
	}
	if (c->in == MAP_FAILED || c->rw == MAP_FAILED)
		return err_sys(e, "cannot map the workload");
	c->out = xcalloc(1, l->rw_bytes);
	return 0;
}

void check_unuse(struct check *c)
{
	if (c->out) {
		munmap(c->in, c->w.w.layout.in_bytes);
		munmap(c->rw, c->w.w.layout.rw_bytes);
	}
	free(c->out);
	c->out = NULL;
	proof_close(&c->w);
}

static int copy(struct check *c, enum checker_way way, struct err *e)
{
	return c->on_gpu ? checker_copy(c->checker, &c->w.w, way, NULL, NULL, e) : 0;
}

int check_get(struct check *c, struct err *e)
{
	return copy(c, CHECKER_GET, e);
}

int check_put(struct check *c, struct err *e)
{
	return copy(c, CHECKER_PUT, e);
}

const struct mem_buf *check_out(const struct check *c, int i)
{
	return mem_find(&c->w.w.layout, MEM_OUTPUT, i);
}

int check_honest(struct check *c, struct checker_prep *p, struct err *e)
{
	struct proof_out *o = xcalloc(1, sizeof *o);

	p->ratio = 1;
	p->rep = ++c->rep;
	int rc = proof_rep(&c->w, p, ARM_FORWARD, 3, o, e);
	if (rc == 0 && !o->pass)
		rc = err_set(e, EX_BADINPUT, "the baseline is wrong in regime %s: %s %s",
			     fill_regime_name(p->regime), o->word, o->cmp.output);
	if (rc == 0)
		rc = check_get(c, e);
	for (int i = 0; i < c->spec->noutputs && rc == 0; i++)
		memcpy(c->out + check_out(c, i)->offset, c->rw + check_out(c, i)->offset, check_out(c, i)->bytes);
	free(o);
	return rc;
}

int check_again(struct check *c, struct checker_prep *p, struct err *e)
{
	p->n_ws = 0;
	for (uint32_t i = 0; i < c->w.w.layout.n; i++)
		if (c->w.w.layout.buf[i].kind == MEM_WORKSPACE)
			p->ws[p->n_ws++] = c->w.w.layout.buf[i].bytes;
	return checker_prepare(c->checker, &c->w.w, p, c->scalars, e) < 0 ? -1 : check_get(c, e);
}
