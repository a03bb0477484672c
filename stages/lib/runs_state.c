/*
 * runs_state.c - see runs_part.h: the trial that a new run starts from.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runs_part.h"

#include "defence.h"
#include "file.h"
#include "json.h"
#include "trial.h"
#include "verdict.h"

#include <stdio.h>
#include <string.h>

static int state_damaged(struct err *e)
{
	return err_set(e, EX_BADINPUT, "'trials/index.tsv' is damaged; delete it: it is derived");
}

/* A line of the index is no evidence: the trial itself says what it is of. One class never seeds another. */
static int state_class(const char *spec, const char *device, const char *id, struct err *e)
{
	struct trial t;
	if (!*id || !DEFENCE("state.class"))
		return 0;
	if (trial_read(id, &t, e))
		return -1;
	int same = strcmp(t.spec, spec) == 0 && strcmp(t.device, device) == 0;
	trial_free(&t);
	return same ? 0 : state_damaged(e);
}

/* The newest closed trial of this spec and device, from the index; "" when none. */
static int state_from(const char *spec, const char *device, char id[TRIAL_ID], struct err *e)
{
	struct buf text = BUF_INIT;
	char want[160];
	id[0] = '\0';
	if (!file_exists("trials/index.tsv"))
		return 0;
	if (file_read("trials/index.tsv", (size_t)256 << 20, &text, e)) {
		buf_free(&text);
		return -1;
	}
	int n = snprintf(want, sizeof want, "\t%s\t%s\t", spec, device);
	char *line = text.data, *end;
	for (; line && (end = strchr(line, '\n')); line = end + 1) {
		size_t k = strcspn(line, "\t");
		if (k < TRIAL_ID && strncmp(line + k, want, (size_t)n) == 0) {
			memcpy(id, line, k);
			id[k] = '\0';
		}
	}
	buf_free(&text);
	return trial_id_ok(id) || !*id ? state_class(spec, device, id, e) : state_damaged(e);
}

int runs_put_state(struct jsonw *w, const struct run_plan *p, struct err *e)
{
	char id[TRIAL_ID];
	struct verdict_in in = {0};
	if (state_from(p->spec, p->device, id, e))
		return -1;
	if (*id && verdict_read(id, STEP_PROMOTE, &in, e))
		return -1;
	const cJSON *after = *id ? json_get(in.data, "after") : NULL;
	const cJSON *champion = after ? json_get(after, "champion") : NULL;
	if (champion)
		jw_item(w, "champion", champion);
	else
		jw_null(w, "champion");
	jw_str(w, "state_from", *id ? id : NULL);
	verdict_in_free(&in);
	return 0;
}
