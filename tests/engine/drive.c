/*
 * drive.c - one engine through the rig of the stages (engine_rig.h), on one workload.
 *
 *   drive ENGINE MODEL_DIR BATCH PROMPT STEPS [LIMIT_S]   one JSON line: verdict, why, figures, isolation
 *
 * LIMIT_S is what one batch may take. The key is fixed: the same prompts every time.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_rig.h"

#include "buf.h"
#include "jsonw.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct engine_rig_work w = {.name = "drive"};
	struct engine_model model;
	struct engine_report r;
	struct buf why = BUF_INIT;
	struct jsonw out = {0};
	struct err e;
	char program[PATH_MAX];
	prog_name(argv[0]);
	if (argc < 6 || !realpath(argv[1], program))
		die(EX_BADUSE, "usage: drive ENGINE MODEL_DIR BATCH PROMPT STEPS [LIMIT_S]");
	w.batch = atoi(argv[3]), w.prompt = atoi(argv[4]), w.steps = atoi(argv[5]);
	if (engine_model_open(&model, argv[2], "any", 1, NULL, &e))
		die_err(&e);
	const struct engine_rig g = {.program = program, .model = &model, .key = {7}, .load_s = 20,
				     .step_s = (argc > 6 ? atof(argv[6]) : 60) / (w.steps + 1), .memory = UINT64_C(2) << 30};
	if (engine_rig_run(&g, &w, 1, &r, &e) || (strcmp(r.word, "ok") && engine_rig_explain(&g, &r, 1, &why, &e)))
		die_err(&e);
	jw_obj(&out, NULL);
	jw_str(&out, "verdict", r.word);
	jw_str(&out, "why", buf_str(&why));
	jw_str(&out, "isolation", r.isolation);
	engine_rig_write(&r, &out);
	jw_end(&out);
	puts(out.out.data);
	jw_free(&out);
	buf_free(&why);
	engine_report_free(&r);
	engine_model_close(&model);
	return 0;
}
