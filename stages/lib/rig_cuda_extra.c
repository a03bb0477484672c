/*
 * rig_cuda_extra.c - reps on a GPU that no count sees: closer looks, and company for the champion alone. See rig.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rig_cuda_part.h"

#include "defence.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Before one counted rep in this many, drawn when it is due, the arm makes one that is not counted and is looked at
 * more closely: see look. */
#define LOOK_EVERY 16
#define LOOK_REP (1ull << 43)

/* A kernel may find out that it is timed, if only from the windows around it, and be exact in the judge and
 * cheap here; or have one launch do the work of all windows. Neither knows that this rep is not timed: its inputs
 * are of any regime that the judge has, its errors are compared with the baseline's, its windows cannot serve one
 * another. For the rival it is only made, so that both arms find the GPU alike. */
int rig_cuda_look(struct rig *r, struct shot *s, struct err *e)
{
	struct rig_cuda *c = r->cuda;
	struct shot hidden = *s;
	uint8_t drawn[2] = {1, 0};
	if (s->phase != RAW_MEASURE || !c->looks || !DEFENCE("bench.look"))
		return 0;
	if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
		return err_sys(e, "cannot read the system's entropy");
	if (drawn[0] % LOOK_EVERY)
		return 0;
	for (int left = drawn[1]; c->looks == 1 && left >= 0;) {
		c->regime = (enum fill_regime)((c->regime + 1) % REGIME_COUNT);
		left -= c->work[0].regimes >> c->regime & 1 ? 1 : 0;
	}
	struct worker_result *res = xcalloc(1, sizeof *res);
	hidden.rep = LOOK_REP + c->looked++;
	c->looking = 1;
	int rc = rig_cuda_prepare(r, &hidden, e);
	if (rc == 0)
		rc = rig_cuda_run(r, &hidden, c->copies, hidden.rep, res, e);
	if (rc == 0 && hidden.outcome == SHOT_OK && s->arm == RAW_CANDIDATE)
		rc = rig_cuda_verify(r, &hidden, e);
	c->looking = 0;
	c->regime = REGIME_SPEC;
	s->outcome = hidden.outcome;
	if (hidden.check == RAW_WRONG) /* the ticks of the rep that does not follow say so */
		s->check = RAW_WRONG;
	memcpy(s->text, hidden.text, sizeof s->text);
	free(res);
	return rc;
}

/* A kernel that runs again and again finds the chip as it left it. Measured on an H200: windows of 4 to 10 us were 3 to 7 %
 * shorter alone than in company (five contests, every session alike), those above 30 us less than 0.6 %. So the champion
 * alone has a copy of itself for company, in the candidate's place, which makes a rep that counts nowhere before each. */
int rig_cuda_company(struct rig *r, struct shot *s, struct err *e)
{
	struct rig_cuda *c = r->cuda;
	struct shot copy = {.session = s->session, .workload = s->workload, .arm = RAW_CANDIDATE, .phase = RAW_WARM,
			    .set = s->set, .rep = s->rep};
	int rc = 0;
	if (s->phase != RAW_SOLO && !(s->phase == RAW_WARM && s->block == SESSION_SOLO_WARM))
		return 0;
	if (!c->arm[RAW_CANDIDATE].loaded)
		rc = rig_cuda_load(r, RAW_CANDIDATE, RAW_CHAMPION, c->copies, &s->outcome, s->text, e);
	struct worker_result *res = xcalloc(1, sizeof *res);
	if (rc == 0 && s->outcome == SHOT_OK)
		rc = rig_cuda_prepare(r, &copy, e);
	if (rc == 0 && s->outcome == SHOT_OK)
		rc = rig_cuda_run(r, &copy, c->copies, s->rep, res, e);
	if (rc == 0 && s->outcome == SHOT_OK && copy.outcome != SHOT_OK) {
		s->outcome = copy.outcome;
		memcpy(s->text, copy.text, sizeof s->text);
	}
	free(res);
	return rc;
}
