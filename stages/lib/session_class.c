/*
 * session_class.c - the constants of each class of devices, and what a workload of a GPU takes. See session.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "session.h"

#include "facts.h"

#include <math.h>

/* Emulated reps take milliseconds on a CPU that others use too. Blocks are single quads, so that a
 * preemption spoils two pairs and not sixteen, and trimming throws it out. Measured on two shared
 * cores: 3-6 % sd of a rep, 0.5-1.5 % of theta at 16 blocks, 6.5 ms a rep with its checks; four
 * blocks decide what is far from the margin, sixteen are what a minute of patience buys near it.
 * An emulated kernel can keep what it likes in its process (idle stacks, the emulator's own memory), so
 * no set comes twice: with two of them a kernel that kept the products of both and computed only
 * what a few changed elements touch was right every time, and twice as fast. */
const struct session_class SESSION_EMU = {
	.name = "emu",
	.block_quads = 1,
	.blocks_min = 4,
	.blocks_max = 16,
	.se_target = 0.003,
	.decisive = 5,
	.trim = 0.2,
	.warm_pairs = 1,
	.solo_reps = 6,
	.solo_slack = 0.10,
	.anchor_quads = 5,
	.ring = 1 << 30,
	.k_max = 8,
	.time_s = 15,
	.hopeless = 20,
	.behind_s = 20,
	.s0_floor = 0.002,
};

const struct session_class SESSION_SIM = {
	.name = "sim",
	.block_quads = 1,
	.blocks_min = 8,
	.blocks_max = 8,
	.se_target = 0.003,
	.trim = 0.2,
	.warm_pairs = 1,
	.solo_reps = 4,
	.solo_slack = 0.015,
	.anchor_quads = 2,
	.ring = 8,
	.k_max = 12,
	.hopeless = 20,
	.behind_s = 20,
	.s0_floor = 0.002,
};

/* A GPU. Measured on an H200 over 131 processes, A/A (sd of a rep, of 16 pairs): 46 us streaming 1.5 %, 0.41 %;
 * 20 us RMSNorm 2.4 %, 0.84 %; 4 us elementwise 4.7 %, 1.5 %; 127 us GEMM 0.7 %, 0.25 %; between sessions less
 * than 0.1-0.2 % and no floor seen. A rep with hand-overs and full checks: 0.8 ms. So:
 *   blocks of 16 pairs; 8 blocks (0.2 s) end what is far from the margin; 128 (2,048 pairs) are what a 4 us
 *   kernel needs for 0.15 %, beyond which more pairs buy nothing;
 *   `decisive` 5 as on emu: a loser of 2 % by 0.4 % of standard error, a winner of 3 % by 0.2 %;
 *   `lost`: a block of 16 pairs is good to 1-2 %, so two that are 10 % behind are no accident; what is spared is
 *   three quarters of the time of a clear loser;
 *   32 solo reps: their median is good to 0.2-1 %, under the slack of 1.5 %;
 *   no input set comes twice (1 << 30), as on emu;
 *   time_s is for one public workload, hopeless as on emu, behind_s cut: reps are short. */
const struct session_class SESSION_CUDA = {
	.name = "cuda",
	.block_quads = 8,
	.blocks_min = 8,
	.blocks_max = 128,
	.se_target = 0.0015,
	.decisive = 5,
	.lost_blocks = 2,
	.lost = 0.10,
	.trim = 0.2,
	.warm_pairs = 2,
	.solo_reps = 32,
	.solo_slack = 0.015,
	.anchor_quads = 24,
	.ring = 1 << 30,
	.k_max = 12,
	.time_s = 15,
	.hopeless = 20,
	.behind_s = 2,
	.s0_floor = 0.0005,
	.drain_quads = 16,
	.sustained_quads = 6,
};

/* An engine: a rep is a whole batch, tenths of a second to seconds, on processes started for this workload. Two quads
 * are eight batches; solo as on emu, since an engine that waits could keep the machine busy. A batch carries hundreds of
 * kernels' noise averaged, so between-session sd is what is left: s0 is fixed at 1 %, no A/A run pays for it; it only
 * says when to stop for want of hope (stats.h), never when to promote. */
const struct session_class SESSION_ENGINE = {
	.name = "engine",
	.block_quads = 1,
	.blocks_min = 2,
	.blocks_max = 4,
	.se_target = 0.005,
	.decisive = 5,
	.trim = 0.2,
	.warm_pairs = 1,
	.solo_reps = 2,
	.solo_slack = 0.05,
	.anchor_quads = 2,
	.ring = 1 << 30,
	.k_max = 12,
	.time_s = 1800,
	.hopeless = 20,
	.behind_s = 60,
	.s0_floor = 0.01,
};

/* The same on a GPU, for models of any size. Measured on an H200: a batch of each of six workloads is 0.6 to 1.3 s of an arm
 * at 0.6B and 2 to 3 s at 4B, a load 0.8 s and more, the replay of the six 0.8 s and 2.5 s. So an arm is one process for the session,
 * and a session is one quad of each workload: 5 batches of the champion (3 of them warm-up and alone), 3 of the candidate, the
 * tokens of about 6 replayed. A batch there varies by a percent or less, and what differs between sessions is what
 * counts: a clear loser ends after one, a clear winner after four. */
const struct session_class SESSION_ENGINE_GPU = {
	.name = "engine-gpu",
	.block_quads = 1,
	.blocks_min = 1,
	.blocks_max = 1,
	.se_target = 0.004,
	.trim = 0.2,
	.warm_pairs = 1,
	.solo_reps = 1,
	.solo_slack = 0.03,
	.anchor_quads = 1,
	.ring = 1 << 30,
	.k_max = 12,
	.time_s = 900,
	.hopeless = 20,
	.behind_s = 60,
	.s0_floor = 0.005,
	.lasting = 1,
};

const struct session_class *session_class_of(const char *device)
{
	static const struct session_class *const of[] = {
		[DEVICE_EMU] = &SESSION_EMU, [DEVICE_SIM] = &SESSION_SIM, [DEVICE_CUDA] = &SESSION_CUDA};
	return of[device_class_of(device)];
}

/* Shares of time of one workload in one session, seconds: enough for a first answer, and at most. */
#define SIZE_LEAST_S 0.8
#define SIZE_MOST_S 3.4
#define SIZE_SIDE_S 0.25 /* solo, anchor */
/* A reference that takes longer is computed once for each of a few sets (the checker keeps 8). */
#define SIZE_PREPARE_NS 20e6

static int at_most(double x, int least, int most)
{
	return x < least ? least : x > most ? most : (int)x;
}

void session_size_for(double rep_ns, double null_ns, double cost_ns, double prepare_ns, struct session_size *z)
{
	const struct session_class *c = &SESSION_CUDA;
	/* Three quarters of a window must be the kernel's: else a 3 % win reads as less than the margin. */
	double own = fmax(rep_ns - null_ns, 500);
	z->windows = rep_ns >= 4 * null_ns ? 1 : at_most(ceil(3 * null_ns / own), 2, 16);
	z->rep_ns = rep_ns + own * (z->windows - 1);
	z->cost_ns = cost_ns * (1 + 0.5 * (z->windows - 1)); /* two context switches serve all copies */
	z->fresh = prepare_ns <= SIZE_PREPARE_NS || z->windows > 1;
	z->ring = z->fresh ? c->ring : 8;
	if (!z->fresh)
		z->cost_ns = fmax(cost_ns - prepare_ns, rep_ns) + 1e6;
	double reps = 1e9 / fmax(z->cost_ns, 1);
	z->block_quads = c->block_quads;
	while (z->block_quads > 1 && c->blocks_min * 4 * z->block_quads > SIZE_LEAST_S * reps)
		z->block_quads /= 2;
	z->blocks_max = at_most(SIZE_MOST_S * reps / (4 * z->block_quads), c->blocks_min, c->blocks_max);
	z->solo_reps = at_most(SIZE_SIDE_S * reps, 6, c->solo_reps);
	z->anchor_quads = at_most(SIZE_SIDE_S * reps / 4, 5, c->anchor_quads);
}
