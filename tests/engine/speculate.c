/*
 * speculate.c - the plain engine with lossless n-gram speculation: honest, and to be accepted.
 *
 * Where the last two ids of a sequence have been seen together before, the ids that followed then are the draft. One pass
 * computes the model's own choice after every id of the draft; what of it all sequences of the batch agree with is said at once,
 * and after it the model's own next id. So every id said is the argmax of the model's logits after the ids before it, whatever the
 * draft was. Positions of the cache beyond those are written again by the next pass before they are read.
 *
 * How many drafted ids were taken is its last word on standard error.
 *
 * SPDX-License-Identifier: MIT
 */
#define main plain_main
#include "../../specs/qwen3-tiny/baseline/engine.c"
#undef main

enum { DRAFT = 4 };

static long drafted, taken;

/* The ids after the latest earlier place of the last two; the last id again where there is none. */
static void guess(const int32_t *ids, int n, int32_t *draft)
{
	int at = n - 3;
	while (at >= 0 && (ids[at] != ids[n - 2] || ids[at + 1] != ids[n - 1]))
		at--;
	for (int i = 0; i < DRAFT; i++)
		draft[i] = at < 0 ? ids[n - 1] : ids[at + 2 + i % (n - at - 2)];
}

/* The model's own next id after token `t` of `per` of each sequence. */
static int32_t own(int b, int per, int t)
{
	int32_t best = 0;
	rms(s.y, s.x + ((size_t)b * (size_t)per + (size_t)t) * (size_t)m.hidden, m.norm, m.hidden);
	matmul(s.logits, s.y, m.head, 1, m.vocab, m.hidden);
	for (int i = 1; i < m.vocab; i++)
		if (s.logits[i] > s.logits[best])
			best = i;
	return best;
}

/* One pass over the last id and a draft of `want`; says what holds, and returns how many steps that was. ids: [batch][most], n each. */
static int pass(const struct engine_request *r, int32_t *ids, size_t most, int n, int want)
{
	int32_t in[ENGINE_BATCH_MOST * (DRAFT + 1)], right[ENGINE_BATCH_MOST][DRAFT + 1], step[ENGINE_BATCH_MOST];
	int hold = want;
	for (int b = 0; b < r->batch; b++) {
		int32_t draft[DRAFT];
		const int32_t *own_ids = ids + (size_t)b * most;
		if (n > 2)
			guess(own_ids, n, draft);
		in[b * (want + 1)] = own_ids[n - 1];
		for (int i = 0; i < want; i++)
			in[b * (want + 1) + 1 + i] = n > 2 ? draft[i] : own_ids[n - 1];
	}
	embed(in, r->batch * (want + 1));
	forward(want + 1, n - 1);
	for (int b = 0; b < r->batch; b++) {
		int k = 0;
		right[b][0] = own(b, want + 1, 0);
		while (k < hold && in[b * (want + 1) + 1 + k] == right[b][k]) {
			k++;
			right[b][k] = own(b, want + 1, k);
		}
		hold = k;
	}
	for (int t = 0; t <= hold; t++) {
		for (int b = 0; b < r->batch; b++)
			step[b] = ids[(size_t)b * most + (size_t)(n + t)] = right[b][t];
		engine_step(r, step);
	}
	drafted += want;
	taken += hold;
	return hold + 1;
}

static void speculate(const struct engine_request *r)
{
	struct engine_request big = *r; /* room for a pass over a draft, even after a short prompt */
	const size_t most = (size_t)(r->prompt + r->steps);
	int32_t next[ENGINE_BATCH_MOST], *ids = calloc((size_t)r->batch * most, sizeof *ids);
	if (!ids)
		fail("out of memory");
	big.prompt = r->prompt > DRAFT + 1 ? r->prompt : DRAFT + 1;
	make_room(&big);
	for (int b = 0; b < r->batch; b++)
		memcpy(ids + (size_t)b * most, r->ids + (size_t)b * (size_t)r->prompt, (size_t)r->prompt * sizeof *ids);
	embed(r->ids, r->batch * r->prompt);
	forward(r->prompt, 0);
	choose(r->prompt, next);
	engine_step(r, next);
	for (int b = 0; b < r->batch; b++)
		ids[(size_t)b * most + (size_t)r->prompt] = next[b];
	for (int said = 1; said < r->steps;) {
		const int left = r->steps - said - 1, want = left < DRAFT ? left : DRAFT;
		said += pass(r, ids, most, r->prompt + said, want);
	}
	free(ids);
}

int main(int argc, char **argv)
{
	struct engine_request r;
	if (argc != 2)
		fail("usage: engine MODEL_DIR");
	load(argv[1]);
	engine_ready();
	while (engine_next(&r))
		speculate(&r);
	fprintf(stderr, "%ld of %ld drafted ids were taken\n", taken, drafted);
	return 0;
}
