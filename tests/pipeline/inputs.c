/*
 * inputs.c - for t15 and t16: what the checker of a run draws for one stage of a trial.
 *
 * usage: inputs trials/runs/R TRIAL STAGE, in the folder that holds trials/. A line for each of four held-out
 * shapes (its axes), then one for each of three reps at the first public workload (hash of all inputs). Last,
 * whether anything is still drawn once the stage's key is given away.
 *
 * SPDX-License-Identifier: MIT
 */
#include "checker_call.h"
#include "spec.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void rep(struct checker *c, struct checker_work *w, uint64_t n)
{
	struct checker_prep p = {.rep = n, .set = (uint32_t)n % 2, .perturb = 1};
	double scalars[CHECKER_SCALARS];
	char sha[HASH_HEX], line[HASH_HEX * 4] = "";
	struct err e = {0};

	if (checker_prepare(c, w, &p, scalars, &e) < 0)
		die_err(&e);
	uint8_t *in = mmap(NULL, w->layout.in_bytes, PROT_READ, MAP_SHARED, w->in_fd, 0);
	if (in == MAP_FAILED)
		die(EX_SYS, "cannot map the inputs");
	for (uint32_t i = 0; i < w->layout.n && strlen(line) < HASH_HEX * 3; i++) {
		const struct mem_buf *b = &w->layout.buf[i];
		if (b->kind != MEM_INPUT)
			continue;
		hash_hex(in + b->offset, b->bytes, sha);
		strcat(line, sha);
	}
	munmap(in, w->layout.in_bytes);
	printf("rep %llu %s\n", (unsigned long long)n, line);
}

int main(int argc, char **argv)
{
	struct checker *c;
	struct checker_work w = {0};
	struct checker_open q = {.mode = CHECKER_PUBLIC, .emu = 1};
	struct spec *s;
	struct axes a;
	struct err e = {0};
	char dir[256], key[HASH_HEX];

	prog_name(argv[0]);
	if (argc != 4)
		die(EX_BADUSE, "inputs trials/runs/R TRIAL STAGE");
	snprintf(dir, sizeof dir, "%.200s/spec", argv[1]);
	struct checker_opts o = {.device = "emu", .run_dir = argv[1], .trial = argv[2], .stage = argv[3]};
	if (spec_load(dir, &s, &e) < 0 || checker_start(&c, &o, &e) < 0)
		die_err(&e);
	for (uint32_t i = 0; i < 16; i++) {
		if (checker_draw(c, CHECKER_HELD_OUT, i, 1, &a, &e) < 0)
			die_err(&e);
		printf("shape");
		for (int k = 0; k < s->naxes; k++)
			printf(" %lld", (long long)a.v[k]);
		puts("");
	}
	if (checker_open(c, &q, &w, &e) < 0)
		die_err(&e);
	for (uint64_t n = 1; n <= 3; n++)
		rep(c, &w, n);
	struct checker_prep late = {.rep = 9};
	double scalars[CHECKER_SCALARS];
	if (checker_subkey(c, key, &e) < 0)
		die_err(&e);
	printf("then %s\n", checker_prepare(c, &w, &late, scalars, &e) < 0 ? "nothing" : "MORE");
	checker_close(c, &w);
	checker_stop(c);
	spec_free(s);
	return 0;
}
