/*
 * cuda_api.c - see cuda_api.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_api cu;

enum { OLDEST = 12040 }; /* cuFuncGetParamInfo */

/* Where containers put a driver that the loader's cache does not know. */
static const char *const places[] = {
	"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1",
	"/usr/lib/wsl/lib/libcuda.so.1",
};

static void *driver_open(void)
{
	void *lib = NULL;

	for (size_t i = 0; !lib && i < sizeof places / sizeof *places; i++)
		lib = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
	return lib;
}

/* dlsym returns an object pointer; ISO C has no cast from it to a function. */
static int take(void *lib, const char *symbol, void *to)
{
	void *f = dlsym(lib, symbol);

	memcpy(to, &f, sizeof f);
	return f != NULL;
}

int cuda_open(struct err *e)
{
	static int open;

	if (open)
		return 0;
	void *lib = driver_open();
	if (!lib)
		return err_set(e, EX_NOENV, "no CUDA driver here: libcuda.so.1 cannot be opened");
#define X(name, symbol, args) \
	if (!take(lib, #symbol, &cu.name)) \
		return err_set(e, EX_NOENV, "the CUDA driver is too old: it has no %s (12.4 is needed)", #symbol);
	CUDA_CALLS(X)
#undef X
	open = 1;
	return 0;
}

static int start(CUdevice *dev, const char *loading, struct err *e)
{
	CUcontext ctx;
	int version = 0, n = 0;

	if (cuda_open(e) < 0)
		return -1;
	/* The cache would be a state that outlives the process. */
	setenv("CUDA_MODULE_LOADING", loading, 1);
	setenv("CUDA_CACHE_DISABLE", "1", 1);
	CUresult r = cu.Init(0);
	if (r)
		return err_set(e, EX_NOENV, "the CUDA driver does not start: %s", cuda_error(r));
	if ((r = cu.DriverGetVersion(&version)) != 0)
		return cuda_fail(e, "cuDriverGetVersion", r);
	if (version < OLDEST)
		return err_set(e, EX_NOENV, "the CUDA driver is version %d.%d, 12.4 is needed", version / 1000,
			       version % 1000 / 10);
	if ((r = cu.DeviceGetCount(&n)) != 0 || n < 1)
		return err_set(e, EX_NOENV, "the CUDA driver sees no GPU: %s", cuda_error(r));
	if ((r = cu.DeviceGet(dev, 0)) != 0)
		return cuda_fail(e, "cuDeviceGet", r);
	if ((r = cu.PrimaryCtxRetain(&ctx, *dev)) != 0)
		return cuda_fail(e, "cuDevicePrimaryCtxRetain", r);
	return (r = cu.CtxSetCurrent(ctx)) != 0 ? cuda_fail(e, "cuCtxSetCurrent", r) : 0;
}

int cuda_start(CUdevice *dev, struct err *e)
{
	/* Lazy loading would move code to the GPU inside the first timed window. */
	return start(dev, "EAGER", e);
}

int cuda_start_lazy(CUdevice *dev, struct err *e)
{
	return start(dev, "LAZY", e);
}

const char *cuda_error(CUresult r)
{
	static char number[32];
	const char *name = NULL;

	if (cu.GetErrorName && cu.GetErrorName(r, &name) == CUDA_OK && name)
		return name;
	snprintf(number, sizeof number, "CUDA error %d", r);
	return number;
}

int cuda_fail(struct err *e, const char *call, CUresult r)
{
	/* Somebody else holds the GPU, or its memory: later it may work. */
	int busy = r == CUDA_OUT_OF_MEMORY || r == 46 /* devices unavailable */;

	return err_set(e, busy ? EX_AGAIN : EX_HARNESS, "%s: %s", call, cuda_error(r));
}

int cuda_sticky(CUresult r)
{
	switch (r) {
	case CUDA_ILLEGAL_ADDRESS:
	case 702: /* launch timeout: a display's watchdog */
	case 709: /* context destroyed */
	case 710: /* assert */
	case 714: /* hardware stack error */
	case 715: /* illegal instruction */
	case 716: /* misaligned address */
	case 717: /* invalid address space */
	case 718: /* invalid program counter */
	case 719: /* launch failed: trap, stack overflow */
	case 721: /* tensor memory leak */
		return 1;
	default:
		return 0;
	}
}
