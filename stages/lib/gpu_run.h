/*
 * gpu_run.h - carry out the launches of a resolved plan on the GPU of this process.
 *
 * The one place that turns struct launches into driver calls; worker uses it for candidates, checker
 * for references and baselines. Needs a current context (cuda_start).
 *
 *   gpu_module_load     a cubin, and where its globals lie
 *   gpu_prepare         plan numbers + addresses -> argument arrays, tensor maps, function attributes
 *     gpu_scalar          a scalar input changed
 *     gpu_restore         globals back to their image (a plan's state never survives a rep)
 *     gpu_enqueue         workspaces zeroed, launches in order, on a stream (may be capturing)
 *   gpu_prepared_free, gpu_module_unload
 *
 * Return 0; 1 with a text when the device refuses this launch as it is (the plan's fault: sizes,
 * cluster, argument count or size); -1 with the error for trouble of ours or a dead context.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_RUN_H
#define TS_GPU_RUN_H

#include "cuda_api.h"
#include "plan.h"

struct cubin;

enum { GPU_GLOBALS = 64, GPU_TEXT = 256 };

struct gpu_module {
	CUmodule module;
	int nglobals;
	struct gpu_global {
		CUdeviceptr at, image; /* image: our copy of the first content, where kernels cannot write */
		size_t bytes;
	} global[GPU_GLOBALS];
	CUdeviceptr images;  /* a mapping of their own */
	size_t images_len;
	CUmemHandle images_handle;
	int reload;  /* a writable global cannot be reached by name: restore by loading the module anew */
	int loads;   /* how often that was done: functions of an earlier load are gone */
	void *bytes; /* cubin, kept for that */
	size_t len;
	struct cubin *cubin; /* what is in it */
};

/* The symbol of a plan's entry: C++ names are mangled. */
const char *gpu_symbol(const struct gpu_module *m, const char *entry);

int gpu_module_load(struct gpu_module *m, const void *cubin, size_t len, char text[GPU_TEXT], struct err *e);
void gpu_module_unload(struct gpu_module *m);
int gpu_module_again(struct gpu_module *m, struct err *e); /* for gpu_reload */

/* Address of a buffer in this process. */
typedef uint64_t (*gpu_at)(void *ctx, enum buffer_role role, int index, uint64_t *bytes);

struct gpu_prepared; /* opaque */

int gpu_prepare(struct gpu_prepared **out, const struct launches *l, struct gpu_module *m, gpu_at at,
		void *ctx, char text[GPU_TEXT], struct err *e);
void gpu_scalar(struct gpu_prepared *p, int index, const void *data, int n);
/* Copies only, so a stream may be capturing, unless the module has `reload` set: then call
 * gpu_reload before (it does nothing for others). */
int gpu_restore(struct gpu_prepared *p, CUstream s, struct err *e);
int gpu_reload(struct gpu_prepared *p, struct err *e);
int gpu_enqueue(struct gpu_prepared *p, CUstream s, char text[GPU_TEXT], struct err *e);
void gpu_prepared_free(struct gpu_prepared *p);

/* Words that tell apart what an executable graph cannot be updated to: cluster, cooperative and
 * dependent launches, memory nodes. An update reports success and keeps the old cluster. */
uint64_t gpu_shape(const struct gpu_prepared *p);
/* Local memory of a thread, the largest of its kernels, bytes. */
uint64_t gpu_local(const struct gpu_prepared *p);

/* Does a tensor map lie within `room` bytes? The driver never looks. */
int gpu_map_fits(const struct tensor_map *m, uint64_t room);
/* Do the arguments of a launch have the sizes that its kernel declares? 1 with a text when not. */
int gpu_args_fit(const struct launch *l, const size_t *size, int n, char text[GPU_TEXT]);

#endif
