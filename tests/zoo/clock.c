/*
 * clock.c - cheats whose whole deed is a pattern of time, against the true contest on a made-up device.
 *
 * clock SCENARIO
 *
 * The code that decides is the judge's own (session.h, contest.h, stats.h); what a rep takes is invented:
 * a millisecond with 1 % of noise for both arms, and what the scenario says. Nothing is gained in any of
 * them. Prints the reason code with which the contest ends, or `through` if it believes in a gain.
 *
 * SPDX-License-Identifier: MIT
 */
#include "contest.h"

#include "../bench/noise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct device {
	struct noise_rng rng;
	const struct scenario *is;
	int session;
	double offset; /* of this process */
	int reps[RAW_ARMS]; /* measured ones of this session and workload */
};

struct scenario {
	const char *name;
	/* log of what a rep of the arm takes, over a millisecond */
	double (*log_time)(struct device *d, const struct shot *s, int rep);
	int confirm; /* the cheat shows in a confirmation */
	int tries;   /* that many candidates, each once */
	int emu;     /* by the constants of emu: short blocks */
};

/* Fast as long as few samples were taken. */
static double short_sample(struct device *d, const struct shot *s, int rep)
{
	(void)d, (void)rep;
	return s->arm != RAW_CANDIDATE ? 0 : s->block == 0 ? -0.15 : 0.03;
}

/* Fast in the first session and no more. */
static double first_session(struct device *d, const struct shot *s, int rep)
{
	(void)rep;
	return s->arm != RAW_CANDIDATE ? 0 : d->session == 0 ? -0.15 : 0.02;
}

/* One rep of eight does the work of all, the others next to nothing. */
static double batch(struct device *d, const struct shot *s, int rep)
{
	(void)d;
	return s->arm != RAW_CANDIDATE ? 0 : rep % 8 == 7 ? log(6.32) : log(0.24);
}

/* The same by chance, one of four. */
static double batch_chance(struct device *d, const struct shot *s, int rep)
{
	(void)rep;
	return s->arm != RAW_CANDIDATE ? 0 : noise_unit(&d->rng) < 0.25 ? log(3.28) : log(0.24);
}

/* As fast as the champion, which is slower in company. */
static double slow_rival(struct device *d, const struct shot *s, int rep)
{
	(void)d, (void)rep;
	return s->arm == RAW_CHAMPION && s->phase == RAW_MEASURE ? 0.06 : 0;
}

/* Every other rep of the champion meets a cache full of somebody's dirty lines. */
static double slow_rival_half(struct device *d, const struct shot *s, int rep)
{
	(void)d;
	return s->arm == RAW_CHAMPION && s->phase == RAW_MEASURE && rep % 2 ? 0.12 : 0;
}

/* No better; one of many may be lucky: processes of a noisy machine differ by 2 %. */
static double luck(struct device *d, const struct shot *s, int rep)
{
	(void)rep;
	return s->arm == RAW_CANDIDATE ? d->offset : 0;
}

/* Better, by less than counts. */
static double luck_close(struct device *d, const struct shot *s, int rep)
{
	return luck(d, s, rep) - (s->arm == RAW_CANDIDATE ? 0.008 : 0);
}

/* What it wins is paid for after its window. */
static double unpaid(struct device *d, const struct shot *s, int rep)
{
	(void)d, (void)rep;
	return s->arm != RAW_CANDIDATE ? 0 : s->phase == RAW_DRAIN ? 0.05 : -0.06;
}

/* Fast after a pause only: clocks fall when it is kept busy. */
static double boost(struct device *d, const struct shot *s, int rep)
{
	(void)d, (void)rep;
	return s->arm != RAW_CANDIDATE ? 0 : s->phase == RAW_SUSTAINED ? 0.08 : -0.06;
}

static const struct scenario ALL[] = {
	{"short_sample", short_sample, 0, 1, 0}, {"first_session", first_session, 0, 1, 0}, {"batch", batch, 0, 1, 1},
	{"batch_chance", batch_chance, 0, 1, 1}, {"slow_rival", slow_rival, 0, 1, 0},
	{"slow_rival_half", slow_rival_half, 0, 1, 0}, {"luck", luck, 0, 60, 0}, {"luck_close", luck_close, 0, 60, 0},
	{"unpaid", unpaid, 1, 1, 0}, {"boost", boost, 1, 1, 0},
};

static int open_workload(void *ctx, int session, int workload, struct err *e)
{
	struct device *d = ctx;
	(void)workload, (void)e;
	d->session = session;
	d->offset = 0.02 * noise_normal(&d->rng);
	memset(d->reps, 0, sizeof d->reps);
	return 0;
}

static int start(void *ctx, enum raw_arm arm, enum shot_outcome *o, char text[256], struct err *e)
{
	(void)ctx, (void)arm, (void)o, (void)text, (void)e;
	return 0;
}

static int stop(void *ctx, enum raw_arm arm, struct err *e)
{
	(void)ctx, (void)arm, (void)e;
	return 0;
}

static int shoot(void *ctx, struct shot *s, struct err *e)
{
	struct device *d = ctx;
	int rep = s->phase == RAW_MEASURE ? d->reps[s->arm]++ : 0;
	(void)e;
	s->start = 1000 * s->rep;
	s->stop = s->start + (uint64_t)exp(log(1e6) + 0.01 * noise_normal(&d->rng) + d->is->log_time(d, s, rep));
	s->check = RAW_RIGHT;
	return 0;
}

static void close_workload(void *ctx)
{
	(void)ctx;
}

static const struct session_ops OPS = {open_workload, start, stop, shoot, close_workload, NULL};

static int one(const struct scenario *is, uint64_t seed, char code[64])
{
	static struct session_class c;
	struct device d = {.rng = {.s = seed}, .is = is};
	struct contest t;
	struct raw raw;
	struct err e = {0};

	c = is->emu ? SESSION_EMU : SESSION_CUDA;
	c.blocks_max = c.blocks_max > 32 ? 32 : c.blocks_max; /* quiet as it is, more would only take time */
	contest_init(&t);
	raw_begin(&raw, 1000000000);
	t.c = &c;
	t.rule.s0 = 0.003;
	t.workloads = 1;
	t.name[0] = "size";
	t.weight[0] = 1;
	snprintf(t.order_seed, sizeof t.order_seed, "%016llx%016llx", (unsigned long long)seed, 0x746f756368ull);
	t.ops = &OPS;
	t.ctx = &d;
	t.raw = &raw;
	int rc = contest_decide(&t, &e);
	if (rc == 0 && is->confirm && t.kind == V_PASS) {
		t.kind = V_NONE;
		t.n = t.k = 0;
		t.confirming = t.guards = 1;
		rc = contest_fixed(&t, CONTEST_CONFIRM, &e);
		if (rc == 0 && t.kind == V_PASS)
			contest_confirm(&t);
	}
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		return -1;
	}
	int through = t.kind == V_PASS;
	fprintf(stderr, "%s: %s after %d sessions, %.4f\n", is->name, t.code, t.n, exp(stats_mean(t.theta, (size_t)t.k)));
	snprintf(code, 64, "%s", through ? "through" : t.code ? t.code : "open");
	contest_free(&t);
	raw_free(&raw);
	return through;
}

int main(int argc, char **argv)
{
	char code[64] = "";

	for (size_t i = 0; argc == 2 && i < sizeof ALL / sizeof *ALL; i++) {
		if (strcmp(ALL[i].name, argv[1]))
			continue;
		int through = 0;
		for (int k = 0; k < ALL[i].tries && through == 0; k++)
			through = one(&ALL[i], 7 + 1000003 * (uint64_t)k, code);
		if (through < 0)
			return 1;
		puts(code);
		return 0;
	}
	fputs("usage: clock SCENARIO\n", stderr);
	return 2;
}
