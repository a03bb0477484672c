/*
 * engine_judge.h - are an engine's tokens the model's own? Regrets of a replay, gates, and their calibration.
 *
 * The reference is given prompt and emitted tokens (teacher-forced) and says the logits before each emitted
 * one. The regret of a token is the best logit minus its own: 0 for the argmax and for ties. Four gates: the
 * largest regret (margin), the mean, the 99th percentile and the share of tokens that are the argmax. One
 * margin alone cannot see mild quantisation; the mean over many tokens can.
 *
 *   struct engine_regrets r = {0};
 *   engine_regrets_add ... (a sequence at a time) -> engine_judge -> engine_regrets_free
 *
 * A regret that is not finite is INFINITY: a NaN anywhere in the logits fails whatever the gates are.
 *
 * Calibration (per checkpoint): the regrets of honest ways to compute the same model, each against the
 * reference, set the gates; a checkpoint on which honest ways differ by more than ENGINE_NOISE, or on which a
 * wrong token could hide, is refused in words.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_JUDGE_H
#define TS_ENGINE_JUDGE_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

#define ENGINE_MARGIN_MOST 2.0  /* logits: no checkpoint gets a wider margin */
#define ENGINE_MARGIN_LEAST 0.25
#define ENGINE_NOISE 0.75       /* honest ways may differ by this much */

struct engine_regrets {
	double *regret; /* of each token, in the order added */
	size_t n, cap;
	size_t argmax;   /* tokens that are the argmax, ties counted as such */
	size_t distinct; /* different argmaxes of the reference */
	double near;     /* sum over positions of the share of the vocabulary within ENGINE_MARGIN_LEAST of the best */
	unsigned char *seen;
	int vocab;
};

/* What the reference says of one place. Here, or by the kernel of the same name where the logits are on a GPU. */
struct engine_said {
	float best, own; /* the largest logit, the token's */
	int32_t id;      /* the lowest id of the largest; -1: no figure that could be told (best, own and near are 0) */
	uint32_t near;   /* logits within ENGINE_MARGIN_LEAST of the best, itself too */
};
/* `token` -1: own is best. */
void engine_said_of(const float *logits, int vocab, int32_t token, struct engine_said *s);

/* Said of n tokens' places. EX_HARNESS: another vocabulary than before. */
int engine_regrets_say(struct engine_regrets *r, const struct engine_said *s, int vocab, int n, struct err *e);
/* The same from logits [n, vocab] before each of token[n]. EX_BADINPUT: a token outside the vocabulary; nothing is added
 * then. */
int engine_regrets_add(struct engine_regrets *r, const float *logits, int vocab, const int32_t *token, int n,
		       struct err *e);
/* Those of `from` behind those of r. EX_HARNESS: of another vocabulary. */
int engine_regrets_merge(struct engine_regrets *r, const struct engine_regrets *from, struct err *e);
void engine_regrets_free(struct engine_regrets *r);

struct engine_figures {
	size_t tokens;
	double worst, mean, p99, argmax_rate; /* logits, logits, logits, 0 to 1 */
};
void engine_figures(const struct engine_regrets *r, struct engine_figures *f);

struct engine_gates {
	double margin, mean, p99, argmax_rate;
};
/* "ok", or the gate that is broken first: "margin", "mean_regret", "p99_regret", "argmax_rate", "no_tokens". */
const char *engine_judge(const struct engine_figures *f, const struct engine_gates *g);

/* Gates from honest[n] (all against the same reference). -1 with EX_BADINPUT when this checkpoint cannot judge:
 * the text says why. */
int engine_calibrate(const struct engine_regrets *honest, size_t n, struct engine_gates *g, struct err *e);

/* Tokens needed to tell a mean regret of `bad` from the gate `g->mean` with 99 % power at 1 % risk, each token's
 * regret having deviation `sd`; 0 when no number will do (bad is within the gate). */
size_t engine_tokens_needed(double bad, double sd, const struct engine_gates *g);

#endif
