/*
 * model.c - a "model" for pipeline tests: a legal proposal made from the hash of the prompt.
 *
 * Finds the champion's plan and kernel in the prompt and answers with another legal configuration
 * of the tunables, or, for one prompt in four and for plans without tunables, with the whole
 * kernel and a macro more in it. Same prompt, same answer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "script.h"

#include "../../stages/lib/facts.h"
#include "../../stages/lib/hash.h"
#include "../../stages/lib/json.h"
#include "../../stages/lib/plan.h"
#include "../../stages/lib/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct json_limits LIMITS = {.bytes = (size_t)64 << 20, .depth = 64};

/* The data between BEGIN label nonce and END label nonce. */
static int section(const char *prompt, const char *label, struct buf *out)
{
	char open[64], close[128];
	const char *p, *nl, *end;

	snprintf(open, sizeof open, "BEGIN %s ", label);
	p = strstr(prompt, open);
	nl = p ? strchr(p, '\n') : NULL;
	if (!nl)
		return -1;
	snprintf(close, sizeof close, "\nEND %.*s\n", (int)(nl - p) - 6, p + 6);
	end = strstr(nl, close);
	if (!end)
		return -1;
	buf_add(out, nl + 1, (size_t)(end - nl));
	return 0;
}

static int pick(struct plan *p, uint64_t h)
{
	struct spec *none = xcalloc(1, sizeof *none);
	struct plan_config now, c;
	struct facts f;
	int64_t size = 0;
	int legal = 0;

	plan_config_current(p, &now);
	if (!plan_space(p, &size, NULL) && size > 1 && !facts_find("emu", &f, NULL))
		for (int64_t i = 0; i < size && i < 10000 && !legal; i++) {
			plan_config_at(p, (int64_t)((h + (uint64_t)i) % (uint64_t)size), &c);
			if (plan_config_equal(&c, &now) ||
			    plan_config_legal(p, none, NULL, &f, &c, &legal, NULL))
				legal = 0;
		}
	if (legal && plan_config_set(p, &c, NULL))
		legal = 0;
	free(none);
	return legal;
}

static void header(struct buf *out, const char *file, const char *hex)
{
	buf_addf(out, "Here is one change.\n\n```json\n{\"item\": \"scripted change %.8s\", "
		 "\"hypothesis\": \"another choice may suit the device\", \"expected_effect\": \"unknown\", "
		 "\"files\": [\"%s\"], \"risk\": \"none\", \"reasoning\": \"made from the prompt's hash\"}\n```\n\n",
		 hex, file);
}

static int answer(const char *prompt, struct buf *text, struct err *e)
{
	struct buf plan = BUF_INIT, kernel = BUF_INIT, made = BUF_INIT;
	struct plan *p = NULL;
	char hex[HASH_HEX];
	uint64_t h;
	int rc = 0;

	hash_hex(prompt, strlen(prompt), hex);
	h = strtoull((char[]){hex[0], hex[1], hex[2], hex[3], hex[4], hex[5], hex[6], hex[7], 0}, NULL, 16);
	if (section(prompt, "plan.json", &plan) || section(prompt, "kernel.cu", &kernel)) {
		rc = err_set(e, EX_BADINPUT, "the prompt has no plan.json or kernel.cu");
	} else if (plan_parse(plan.data, plan.len, "prompt's plan.json", &p, e)) {
		rc = -1;
	} else if (h % 4 && pick(p, h / 4)) {
		sweep_plan_text(p, &made);
		header(text, "plan.json", hex);
		buf_addf(text, "```json plan.json\n%s```\n", buf_str(&made));
	} else {
		header(text, "kernel.cu", hex);
		buf_addf(text, "```cuda kernel.cu\n#define VARIANT_%.8s 1\n%s```\n", hex, buf_str(&kernel));
	}
	plan_free(p);
	buf_free(&plan);
	buf_free(&kernel);
	buf_free(&made);
	return rc;
}

int model_reply(const struct buf *request, struct buf *text, struct err *e)
{
	cJSON *j = json_parse(buf_str(request), request->len, &LIMITS, "request", e);
	const cJSON *list = json_get(j, "messages"), *m;
	const char *user = "";
	int rc;

	if (!j)
		return -1;
	cJSON_ArrayForEach(m, list) {
		if (!strcmp(json_get_str(m, "role", ""), "user"))
			user = json_get_str(m, "content", "");
	}
	rc = answer(user, text, e);
	cJSON_Delete(j);
	return rc;
}
