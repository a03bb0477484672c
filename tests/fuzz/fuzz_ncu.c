/*
 * fuzz_ncu.c - any bytes as the table of Nsight Compute.
 *
 * What is accepted has launches, clean names, and figures that are finite or missing; it can be written and told.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "json.h"
#include "ncu.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ncu_report r;
	struct err e = {0};
	struct jsonw w = {0};
	struct buf out = BUF_INIT;
	if (ncu_parse((const char *)data, size, &r, &e)) {
		MUST(e.code == EX_BADINPUT && e.text[0] && !strchr(e.text, '\n'));
		return 0;
	}
	MUST(r.n > 0 && r.n <= NCU_LAUNCHES);
	for (int i = 0; i < r.n; i++) {
		MUST(strlen(r.launch[i].kernel) < NCU_NAME && r.launch[i].kernel[0]);
		for (const char *p = r.launch[i].kernel; *p; p++)
			MUST(*p >= ' ' && *p < 127);
		for (int k = 0; k < NCU_METRICS; k++)
			MUST(isnan(r.launch[i].value[k]) || (r.launch[i].value[k] >= 0 && isfinite(r.launch[i].value[k])));
	}
	jw_obj(&w, NULL);
	ncu_write(&r, &w, "launches");
	jw_end(&w);
	cJSON *j = json_parse(w.out.data, w.out.len, &JSON_OURS, "again", &e);
	MUST(j && cJSON_GetArraySize(json_get(j, "launches")) == r.n);
	ncu_tell(json_get(j, "launches"), &out);
	MUST(out.len > 0);
	cJSON_Delete(j);
	jw_free(&w);
	buf_free(&out);
	return 0;
}
