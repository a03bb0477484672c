/*
 * oracle_gpu_kit.c - what the checker has once per process on a GPU: driver, our kernels, images of
 * reference and baseline. See oracle_gpu.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "oracle_gpu.h"
#include "facts_cuda.h"
#include "file.h"
#include "gpu_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_PER_SM = 8 };

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

static int kernels_load(struct oracle_gpu_kit *k, struct err *e)
{
	static const char *const text[] = {"check.h", "check_base.h", "check.cu"};
	struct buf cubin = BUF_INIT;
	int rc = gpu_source_build(text, sizeof text / sizeof *text, k->arch, &cubin, e);
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
	if (k->started)
		return 0;
	if (cuda_start(&k->dev, e) < 0 || facts_cuda(k->dev, &k->facts, e) < 0 ||
	    gpu_granule(k->dev, &k->granule, e) < 0)
		return -1;
	facts_cuda_clusters(&k->facts);
	CUresult r = cu.StreamCreate(&k->stream, CU_STREAM_NON_BLOCKING);
	if (r != CUDA_OK)
		return cuda_fail(e, "start of the checker", r);
	if (gpu_source_arch(k->dev, k->arch, e) < 0)
		return -1;
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
