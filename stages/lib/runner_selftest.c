/*
 * runner_selftest.c - see runner.h: the judge's self-test, where a runner leads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "runner.h"

#include "json.h"
#include "jsonw.h"

#include <stdio.h>
#include <string.h>

enum { SELFTEST_WALL_S = 600 };

static int ask(const char *device, struct buf *out, struct err *e)
{
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "schema", RUNNER_SCHEMA);
	jw_str(&w, "do", "selftest");
	jw_str(&w, "device", device);
	jw_end(&w);
	int rc = tar_add(out, RUNNER_REQUEST, w.out.data, w.out.len, 0644, e);
	jw_free(&w);
	tar_end(out);
	return rc;
}

int runner_selftest(const char *command, const char *device, struct buf *record, struct err *e)
{
	struct buf out = BUF_INIT, in = BUF_INIT;
	struct tar tar = {0};
	int code = 0;
	int rc = ask(device, &out, e) || runner_call(command, &out, SELFTEST_WALL_S, &in, &code, e) ? -1 : 0;
	if (!rc && code != EX_DONE && !in.len)
		rc = err_set(e, code, "the runner '%.80s' says no (its message stands above)", command);
	if (!rc)
		rc = tar_parse(in.data, in.len, &tar, e);
	const struct tar_file *f = rc ? NULL : tar_find(&tar, code == EX_DONE ? RUNNER_SELFTEST : RUNNER_FAILURE);
	if (f && code == EX_DONE) {
		buf_add(record, f->data, f->len);
	} else if (!rc) {
		cJSON *j = f ? json_parse(f->data, f->len, &JSON_OURS, RUNNER_FAILURE, NULL) : NULL;
		rc = err_set(e, code ? code : EX_BADINPUT, "by '%.60s': %.380s", command,
			     json_get_str(j, "message", "no record of a self-test was sent"));
		cJSON_Delete(j);
	}
	tar_free(&tar);
	buf_free(&out);
	buf_free(&in);
	return rc;
}
