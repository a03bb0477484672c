/*
 * oracle_gpu_kit.c - what the checker has once per process on a GPU: driver, our kernels, images of
 * reference and baseline. See oracle_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "oracle_gpu.h"
#include "box_call.h"
#include "facts_cuda.h"
#include "file.h"
#include "spawn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTR_MAJOR = 75, ATTR_MINOR = 76, BLOCKS_PER_SM = 8 };

static int launch(void *ctx, enum check_kernel k, const void *job, uint64_t work, struct err *e)
{
	const struct oracle_gpu_kit *kit = ctx;
	uint64_t blocks = (work + CK_THREADS - 1) / CK_THREADS;
	uint64_t most = (uint64_t)kit->facts.sm_count * BLOCKS_PER_SM;
	CUlaunch c = {.grid = {(uint32_t)(blocks < most ? blocks : most), 1, 1}, .block = {CK_THREADS, 1, 1},
		      .stream = kit->stream};
	void *args[1];

	memcpy(args, &job, sizeof job); /* the driver only reads it */
	if (!blocks)
		return 0;
	CUresult r = cu.LaunchKernelEx(&c, kit->kernel[k], args, NULL);
	return r == CUDA_OK ? 0 : cuda_fail(e, check_kernel_name(k), r);
}

/* Our own text, near our own program. */
static int source_add(struct buf *text, const char *name, struct err *e)
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

static int kernels_build(const char *arch, struct buf *cubin, struct err *e)
{
	/* Without contraction: the host's build of the same text gives the same bits. */
	struct plan_compile knobs = {.ftz = 0, .prec_div = 1, .prec_sqrt = 1, .fmad = 0, .opt_level = 3,
				     .std = 17};
	struct buf text = BUF_INIT;
	struct box_result r = {0};
	int rc = source_add(&text, "check.h", e) < 0 || source_add(&text, "check_base.h", e) < 0 ||
				 source_add(&text, "check.cu", e) < 0
			 ? -1
			 : 0;
	struct box_request q = {.mode = "cuda", .source = buf_str(&text), .source_len = text.len, .arch = arch,
				.knobs = &knobs, .trusted = 1};

	if (rc == 0)
		rc = box_compile(&q, &r, e);
	if (rc == 0 && !r.ok)
		rc = err_set(e, EX_HARNESS, "stages/gpu/check.cu does not compile for %s: %.300s", arch,
			     r.message);
	if (rc == 0)
		rc = file_read(r.path, 64 << 20, cubin, e);
	box_result_free(&r);
	buf_free(&text);
	return rc;
}

static int kernels_load(struct oracle_gpu_kit *k, struct err *e)
{
	struct buf cubin = BUF_INIT;
	int rc = kernels_build(k->arch, &cubin, e);
	CUresult r = rc == 0 ? cu.ModuleLoadData(&k->module, cubin.data) : CUDA_OK;

	if (r != CUDA_OK)
		rc = cuda_fail(e, "cuModuleLoadData", r);
	for (int i = 0; rc == 0 && i < CHECK_KERNELS; i++) {
		r = cu.ModuleGetFunction(&k->kernel[i], k->module, check_kernel_name((enum check_kernel)i));
		if (r != CUDA_OK)
			rc = cuda_fail(e, check_kernel_name((enum check_kernel)i), r);
	}
	buf_free(&cubin);
	return rc;
}

int oracle_gpu_start(struct oracle_gpu_kit *k, struct err *e)
{
	int major = 0, minor = 0;

	if (k->started)
		return 0;
	if (cuda_start(&k->dev, e) < 0 || facts_cuda(k->dev, &k->facts, e) < 0 ||
	    gpu_granule(k->dev, &k->granule, e) < 0)
		return -1;
	facts_cuda_clusters(&k->facts);
	CUresult r = cu.DeviceGetAttribute(&major, ATTR_MAJOR, k->dev);
	if (r == CUDA_OK)
		r = cu.DeviceGetAttribute(&minor, ATTR_MINOR, k->dev);
	if (r == CUDA_OK)
		r = cu.StreamCreate(&k->stream, CU_STREAM_NON_BLOCKING);
	if (r != CUDA_OK)
		return cuda_fail(e, "start of the checker", r);
	snprintf(k->arch, sizeof k->arch, "sm_%d%d%s", major % 100, minor % 10, major >= 9 ? "a" : "");
	k->runner = (struct check_runner){launch, k};
	if (kernels_load(k, e) < 0)
		return -1;
	k->started = 1;
	return 0;
}

static int kit_read(const struct oracle_gpu_kit *k, const char *file, size_t max, struct buf *out,
		    struct err *e)
{
	if (k->run)
		return run_spec_read(k->run, file, max, out, NULL, e);
	char *path = xasprintf("%s/%s", k->dir, file);
	int r = file_read(path, max, out, e);
	free(path);
	return r;
}

static int image_make(struct oracle_gpu_kit *k, struct oracle_gpu_image *m, const struct spec *s,
		      const char *source, const char *plan, struct err *e)
{
	struct buf text = BUF_INIT, json = BUF_INIT;
	int r = kit_read(k, source, 1 << 20, &text, e);

	if (r == 0)
		r = kit_read(k, plan, PLAN_MAX_BYTES, &json, e);
	if (r == 0)
		r = image_text(&m->image, s, &text, &json, plan, e);
	buf_free(&text);
	buf_free(&json);
	if (r < 0)
		return -1;
	m->has = 1;
	if (image_build_gpu(&m->image, s, k->dir, k->arch, NULL, e) < 0)
		return -1;
	if (!m->image.ok)
		return err_set(e, EX_BADINPUT, "'%s' does not compile for this GPU: %s", source,
			       m->image.box.message);
	return 0;
}

int oracle_gpu_image_for(struct oracle_gpu_kit *k, struct oracle_gpu_image *m, const struct spec *s,
			 const struct axes *a, const char *source, const char *plan, struct gpu_module **out,
			 struct err *e)
{
	struct buf cubin = BUF_INIT;
	char text[GPU_TEXT] = "";

	if (!m->has && image_make(k, m, s, source, plan, e) < 0)
		return -1;
	if (!m->image.ok)
		return err_set(e, EX_BADINPUT, "no image of '%s'", source);
	int i = image_pick(&m->image.set, m->image.plan, s, a, &k->facts, e);
	if (i < 0)
		return -1;
	*out = &m->module[i];
	if (m->loaded[i])
		return 0;
	int r = file_read(m->image.set.path[i], 256 << 20, &cubin, e);
	char sha[HASH_HEX];
	hash_hex(cubin.data, cubin.len, sha);
	if (r == 0 && strcmp(sha, m->image.set.sha[i]))
		r = err_set(e, EX_AGAIN, "the artefact of '%s' changed", source);
	if (r == 0)
		r = gpu_module_load(&m->module[i], cubin.data, cubin.len, text, e);
	if (r > 0)
		r = err_set(e, EX_BADINPUT, "'%s': %s", source, text);
	m->loaded[i] = r == 0;
	buf_free(&cubin);
	return r;
}

static void image_drop(struct oracle_gpu_image *m)
{
	for (int i = 0; i < PLAN_MAX_CONFIGS; i++)
		if (m->loaded[i])
			gpu_module_unload(&m->module[i]);
	if (m->has)
		image_free(&m->image);
	memset(m, 0, sizeof *m);
}

void oracle_gpu_kit_free(struct oracle_gpu_kit *k)
{
	image_drop(&k->ref);
	image_drop(&k->base);
	if (k->module)
		cu.ModuleUnload(k->module);
	k->module = NULL;
	k->started = 0;
}
