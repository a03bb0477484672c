/*
 * engine_sanitize.h - an engine in C once more, built with ASan and UBSan: does it touch what is not its own?
 *
 * The engine has passed its tiny workloads before (report); the build with sanitizers is asked the first batch of each again,
 * confined like any engine but for the limit of its memory, which shadow memory does not bear: the runtime ends it at 4 GiB. Only what a sanitizer
 * reports counts: an engine that is merely slower there, or a machine on which they do not start, is noted.
 *
 *   engine_sanitize -> o.ran, o.clean, o.words, o.log -> engine_sanitized_free
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_ENGINE_SANITIZE_H
#define TS_ENGINE_SANITIZE_H

#include "engine_files.h"
#include "engine_rig.h"

#define ENGINE_SANITIZE_MOST_S 2.0 /* all tiny workloads took longer without: not tried */

struct engine_sanitized {
	int ran;          /* every workload was answered, or a report came */
	int clean;
	char words[256];  /* the report's first line; or why it was not run */
	struct buf log;   /* the report, places of this machine left out: untrusted */
};

int engine_sanitize(struct engine_files *f, const struct engine_rig *g, const struct engine_report *r,
		    struct engine_sanitized *o, struct err *e);
void engine_sanitized_free(struct engine_sanitized *o);

#endif
