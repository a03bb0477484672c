/*
 * gpu_source.c - see gpu_source.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "gpu_source.h"

#include "box_call.h"
#include "file.h"
#include "plan.h"
#include "spawn.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ATTR_MAJOR = 75, ATTR_MINOR = 76 };

int gpu_source_arch(CUdevice dev, char arch[16], struct err *e)
{
	int major = 0, minor = 0;
	CUresult r = cu.DeviceGetAttribute(&major, ATTR_MAJOR, dev);
	if (r == CUDA_OK)
		r = cu.DeviceGetAttribute(&minor, ATTR_MINOR, dev);
	if (r != CUDA_OK)
		return cuda_fail(e, "cuDeviceGetAttribute", r);
	snprintf(arch, 16, "sm_%d%d%s", major % 100, minor % 10, major >= 9 ? "a" : "");
	return 0;
}

static int add(struct buf *text, const char *name, struct err *e)
{
	static const char *const up[] = {"/../../stages/gpu/", "/../../../stages/gpu/"};
	char self[PATH_MAX], path[PATH_MAX];
	if (spawn_tool("checker", self, sizeof self, e) < 0)
		return -1;
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof up / sizeof *up; i++)
		if (snprintf(path, sizeof path, "%s%s%s", self, up[i], name) < PATH_MAX && file_exists(path)) {
			struct buf one = BUF_INIT;
			int r = file_read(path, 1 << 20, &one, e);
			buf_add(text, one.data, one.len);
			buf_free(&one);
			return r;
		}
	return err_set(e, EX_NOENV, "cannot find stages/gpu/%s near '%s'", name, self);
}

int gpu_source_build(const char *const *name, int n, const char *arch, struct buf *cubin, struct err *e)
{
	struct plan_compile knobs = {.ftz = 0, .prec_div = 1, .prec_sqrt = 1, .fmad = 0, .opt_level = 3, .std = 17};
	struct buf text = BUF_INIT;
	struct box_result r = {0};
	int rc = 0;
	for (int i = 0; i < n && rc == 0; i++)
		rc = add(&text, name[i], e);
	struct box_request q = {.mode = "cuda", .source = buf_str(&text), .source_len = text.len, .arch = arch,
				.knobs = &knobs, .trusted = 1};
	if (rc == 0)
		rc = box_compile(&q, &r, e);
	if (rc == 0 && !r.ok)
		rc = err_set(e, EX_HARNESS, "stages/gpu/%s does not compile for %s: %.300s", name[n - 1], arch, r.message);
	if (rc == 0)
		rc = file_read(r.path, 64 << 20, cubin, e);
	box_result_free(&r);
	buf_free(&text);
	return rc;
}
