/* SPDX-License-Identifier: MIT
 * Carries out a launch plan on a real GPU and reports what the plan format, its parser and the emulated device must agree with.
 *
 * Reads kernel.cu and plan.json, compiles with NVRTC, encodes the tensor maps, launches through cuLaunchKernelEx, verifies against
 * a plain fp32 kernel, times with events. Writes a table and one JSON line to stdout. libcuda and libnvrtc are opened at run time
 * and their few prototypes are written out here: it builds with `cc -O2 -std=gnu11 run.c -ldl -lm` where no CUDA is installed.
 * It is a probe: it trusts its two input files and stops at the first surprise. No product code uses it.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
	"usage: run [-d DIR] [--no-cache] [--reps N] [--sections | --facts | --errors | --sweep] [--shape M,N,K]... [NAME=VALUE]...\n"
	"  (none)      verify and time DIR/plan.json for each shape\n"
	"  --sections  what compiled code brings (cubin sections, parameters); needs NVRTC, no GPU\n"
	"  --facts     device, function and occupancy figures\n"
	"  --errors    which wrong launches and tensor maps are refused, and how\n"
	"  --sweep     time every tunable configuration for the first shape\n"
	"              (a NAME=VALUE stays fixed)\n"
	"  --reps N    event windows per figure, 300 by default\n"
	"  --no-cache  pass NVRTC its option of that name\n"
	"  NAME=VALUE  another value for a tunable\n";

static void die(const char *fmt, ...)
{
	va_list ap;
	fflush(stdout);
	fputs("run: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(111);
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static char *read_file(const char *dir, const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "rb");
	if (!f)
		die("cannot open '%s'", path);
	char *s = malloc(1 << 20);
	size_t n = fread(s, 1, (1 << 20) - 1, f);
	fclose(f);
	s[n] = 0;
	return s;
}

/* ---- the driver and the compiler, opened at run time ---- */

typedef int CUresult;
typedef uint64_t CUdeviceptr;
typedef void *CUmodule, *CUfunction, *CUstream, *CUevent, *CUcontext, *nvrtcProgram;
typedef struct { _Alignas(64) uint64_t opaque[16]; } CUtensorMap;
typedef struct { uint32_t id, pad; union { uint32_t u[16]; uint64_t align; } value; } LaunchAttribute;
typedef struct {
	uint32_t grid[3], block[3], shared;
	CUstream stream;
	LaunchAttribute *attrs;
	uint32_t nattrs;
} LaunchConfig;
_Static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "layout of the driver's structs");
enum { ATTR_COOPERATIVE = 2, ATTR_CLUSTER = 4, ATTR_PDL = 6 };
enum { FUNC_MAX_DYNAMIC_SHARED = 8, FUNC_NON_PORTABLE_CLUSTER = 14 };

#define DRIVER(X) \
	X(cuInit, (unsigned)) X(cuDriverGetVersion, (int *)) X(cuDeviceGet, (int *, int)) X(cuDeviceGetName, (char *, int, int)) \
	X(cuDeviceGetAttribute, (int *, int, int)) X(cuDevicePrimaryCtxRetain, (CUcontext *, int)) X(cuCtxSetCurrent, (CUcontext)) \
	X(cuCtxSynchronize, (void)) X(cuGetErrorName, (CUresult, const char **)) X(cuModuleLoadData, (CUmodule *, const void *)) \
	X(cuModuleUnload, (CUmodule)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) \
	X(cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *)) \
	X(cuModuleGetFunctionCount, (unsigned *, CUmodule)) \
	X(cuFuncGetAttribute, (int *, int, CUfunction)) X(cuFuncSetAttribute, (CUfunction, int, int)) \
	X(cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *)) \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemFree_v2, (CUdeviceptr)) \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) \
	X(cuLaunchKernelEx, (const LaunchConfig *, CUfunction, void **, void **)) \
	X(cuEventCreate, (CUevent *, unsigned)) X(cuEventRecord, (CUevent, CUstream)) X(cuEventElapsedTime, (float *, CUevent, CUevent)) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t)) \
	X(cuOccupancyMaxActiveClusters, (int *, CUfunction, const LaunchConfig *)) \
	X(cuOccupancyMaxPotentialClusterSize, (int *, CUfunction, const LaunchConfig *)) \
	X(cuOccupancyAvailableDynamicSMemPerBlock, (size_t *, CUfunction, int, int)) \
	X(cuStreamCreate, (CUstream *, unsigned)) X(cuStreamBeginCapture_v2, (CUstream, int)) X(cuStreamEndCapture, (CUstream, void **)) \
	X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long)) X(cuGraphLaunch, (void *, CUstream)) \
	X(cuGraphExecUpdate_v2, (void *, void *, void *)) X(cuEventRecordWithFlags, (CUevent, CUstream, unsigned)) \
	X(cuTensorMapEncodeTiled, (CUtensorMap *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *, \
		const uint32_t *, int, int, int, int))
#define COMPILER(X) \
	X(nvrtcVersion, (int *, int *)) X(nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int, const char *const *, \
		const char *const *)) X(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *)) \
	X(nvrtcGetCUBINSize, (nvrtcProgram, size_t *)) X(nvrtcGetCUBIN, (nvrtcProgram, char *)) X(nvrtcGetPTXSize, (nvrtcProgram, size_t *)) \
	X(nvrtcGetPTX, (nvrtcProgram, char *)) X(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *)) \
	X(nvrtcGetProgramLog, (nvrtcProgram, char *)) X(nvrtcDestroyProgram, (nvrtcProgram *))
#define DECLARE(name, args) static CUresult (*name) args;
DRIVER(DECLARE)
COMPILER(DECLARE)

static void *open_library(const char *const *names)
{
	for (int i = 0; names[i]; i++) {
		void *h = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (h)
			return h;
	}
	return NULL;
}

#define LOAD(name, args) if (!(*(void **)&name = dlsym(lib, #name))) die("no symbol %s", #name);
static void open_compiler(void)
{
	static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so", NULL};
	void *lib = open_library(names);
	if (!lib)
		die("NVRTC is not installed");
	COMPILER(LOAD)
}

static const char *error_name(CUresult r)
{
	const char *s = NULL;
	if (cuGetErrorName)
		cuGetErrorName(r, &s);
	return s ? s : "?";
}

#define CU(call) do { CUresult r_ = (call); if (r_) die("%s:%d: %s: %d %s", __FILE__, __LINE__, #call, r_, error_name(r_)); } while (0)

static char device_name[128];
static int driver_version, sm_count, max_shared;

static int device_attr(int which)
{
	int v = -1;
	CU(cuDeviceGetAttribute(&v, which, 0));
	return v;
}

static void open_device(void)
{
	static const char *const names[] = {"libcuda.so.1", NULL};
	void *lib = open_library(names);
	CUcontext ctx;
	if (!lib)
		die("no driver");
	DRIVER(LOAD)
	CU(cuInit(0));
	CU(cuDriverGetVersion(&driver_version));
	CU(cuDeviceGetName(device_name, sizeof device_name, 0));
	CU(cuDevicePrimaryCtxRetain(&ctx, 0));
	CU(cuCtxSetCurrent(ctx));
	sm_count = device_attr(16);
	max_shared = device_attr(97);
}

static int reps = 300;
static int no_cache;	/* NVRTC keeps results of earlier processes where a driver is installed */

struct image { char *cubin, *ptx, *log; size_t ncubin; double ms; int rc; };

/* No include path is given: code that needs a header shows it here. */
static struct image compile(const char *source, const char *arch, const char *const *extra, int nextra)
{
	struct image im = {0};
	const char *opts[40];
	char archopt[64];
	int n = 0;
	size_t size;
	nvrtcProgram p;
	snprintf(archopt, sizeof archopt, "--gpu-architecture=%s", arch);
	opts[n++] = archopt;
	if (no_cache)
		opts[n++] = "--no-cache";
	for (int i = 0; i < nextra; i++)
		opts[n++] = extra[i];
	double t = now_ms();
	if (nvrtcCreateProgram(&p, source, "kernel.cu", 0, NULL, NULL))
		die("nvrtcCreateProgram");
	im.rc = nvrtcCompileProgram(p, n, opts);
	im.ms = now_ms() - t;
	nvrtcGetProgramLogSize(p, &size);
	im.log = calloc(1, size + 1);
	nvrtcGetProgramLog(p, im.log);
	if (!im.rc) {
		nvrtcGetCUBINSize(p, &im.ncubin);
		im.cubin = calloc(1, im.ncubin + 1);
		nvrtcGetCUBIN(p, im.cubin);
		nvrtcGetPTXSize(p, &size);
		im.ptx = calloc(1, size + 1);
		nvrtcGetPTX(p, im.ptx);
	}
	nvrtcDestroyProgram(&p);
	return im;
}

/* ---- JSON: enough to read a plan of our own ---- */

typedef struct node node;
struct node { char type; char *key, *text; double num; node *child, *next; };	/* type: { [ s n t f 0 */

static const char *json_at;

static void json_space(void) { while (isspace((unsigned char)*json_at)) json_at++; }

static char *json_string(void)
{
	const char *end = strchr(++json_at, '"');
	if (!end || memchr(json_at, '\\', (size_t)(end - json_at)))
		die("plan: string: %.20s", json_at);
	char *s = strndup(json_at, (size_t)(end - json_at));
	json_at = end + 1;
	return s;
}

static node *json_value(void)
{
	node *n = calloc(1, sizeof *n), **tail = &n->child;
	json_space();
	n->type = *json_at;
	if (*json_at == '{' || *json_at == '[') {
		char close = *json_at == '{' ? '}' : ']';
		json_at++;
		for (json_space(); *json_at != close; json_space()) {
			char *key = NULL;
			if (close == '}') {
				key = json_string();
				json_space();
				if (*json_at++ != ':')
					die("plan: ':' expected: %.20s", json_at);
			}
			*tail = json_value();
			(*tail)->key = key;
			tail = &(*tail)->next;
			json_space();
			if (*json_at == ',')
				json_at++;
			else if (*json_at != close)
				die("plan: ',' expected: %.20s", json_at);
		}
		json_at++;
	} else if (*json_at == '"') {
		n->type = 's';
		n->text = json_string();
	} else if (!strncmp(json_at, "true", 4) || !strncmp(json_at, "null", 4)) {
		json_at += 4;
	} else if (!strncmp(json_at, "false", 5)) {
		json_at += 5;
	} else {
		char *end;
		n->type = '0';
		n->num = strtod(json_at, &end);
		if (end == json_at)
			die("plan: value: %.20s", json_at);
		json_at = end;
	}
	return n;
}

static node *get(const node *n, const char *key)
{
	for (node *c = n ? n->child : NULL; c; c = c->next)
		if (c->key && !strcmp(c->key, key))
			return c;
	return NULL;
}

static node *must(const node *n, const char *key)
{
	node *c = get(n, key);
	if (!c)
		die("plan: '%s' is missing", key);
	return c;
}

/* ---- expressions ---- */

static struct { const char *name; int64_t value; } names[64];
static int nnames;
static const char *ex, *ex_whole;

static void bind(const char *name, int64_t value)
{
	for (int i = 0; i < nnames; i++)
		if (!strcmp(names[i].name, name)) {
			names[i].value = value;
			return;
		}
	names[nnames].name = name;
	names[nnames++].value = value;
}

static int64_t ex_cond(void);

static int eat(const char *op)
{
	while (*ex == ' ')
		ex++;
	size_t n = strlen(op);
	if (strncmp(ex, op, n))
		return 0;
	if (n == 1 && strchr("<>!", *op) && ex[1] == '=')
		return 0;
	ex += n;
	return 1;
}

static int64_t ex_call(const char *name, size_t n, const int64_t *v, int count)
{
	static const char *const fn[] = {"ceil_div", "align_up", "min", "max", "select"};
	int which = -1;
	for (int i = 0; i < 5; i++)
		if (strlen(fn[i]) == n && !strncmp(fn[i], name, n))
			which = i;
	if (which < 0 || count != (which == 4 ? 3 : 2) || (which < 2 && v[1] <= 0))
		die("expression '%s': call of %.*s", ex_whole, (int)n, name);
	switch (which) {
	case 0: return (v[0] + v[1] - 1) / v[1];
	case 1: return (v[0] + v[1] - 1) / v[1] * v[1];
	case 2: return v[0] < v[1] ? v[0] : v[1];
	case 3: return v[0] > v[1] ? v[0] : v[1];
	default: return v[0] ? v[1] : v[2];
	}
}

static int64_t ex_atom(void)
{
	if (eat("("))
	{
		int64_t v = ex_cond();
		if (!eat(")"))
			die("expression '%s': ')' expected", ex_whole);
		return v;
	}
	if (eat("!"))
		return !ex_atom();
	if (eat("-"))
		return -ex_atom();
	if (isdigit((unsigned char)*ex))
		return strtoll(ex, (char **)&ex, 10);
	const char *name = ex;
	while (isalnum((unsigned char)*ex) || *ex == '_')
		ex++;
	size_t n = (size_t)(ex - name);
	if (!n)
		die("expression '%s': '%.10s'", ex_whole, ex);
	if (eat("(")) {
		int64_t v[4] = {0};
		int count = 0;
		do
			v[count++] = ex_cond();
		while (count < 4 && eat(","));
		if (!eat(")"))
			die("expression '%s': ')' expected", ex_whole);
		return ex_call(name, n, v, count);
	}
	for (int i = 0; i < nnames; i++)
		if (strlen(names[i].name) == n && !strncmp(names[i].name, name, n))
			return names[i].value;
	die("expression '%s': unknown name %.*s", ex_whole, (int)n, name);
	return 0;
}

static int64_t ex_product(void)
{
	int64_t v = ex_atom(), w;
	for (;;) {
		if (eat("*"))
			v *= ex_atom();
		else if (eat("/") || eat("%")) {
			char op = ex[-1];
			if (!(w = ex_atom()))
				die("expression '%s': division by zero", ex_whole);
			v = op == '/' ? v / w : v % w;
		} else
			return v;
	}
}

static int64_t ex_sum(void)
{
	int64_t v = ex_product();
	for (;;) {
		if (eat("+"))
			v += ex_product();
		else if (eat("-"))
			v -= ex_product();
		else
			return v;
	}
}

static int64_t ex_relation(void)
{
	int64_t v = ex_sum();
	if (eat("==")) return v == ex_sum();
	if (eat("!=")) return v != ex_sum();
	if (eat("<=")) return v <= ex_sum();
	if (eat(">=")) return v >= ex_sum();
	if (eat("<")) return v < ex_sum();
	if (eat(">")) return v > ex_sum();
	return v;
}

static int64_t ex_and(void)
{
	int64_t v = ex_relation();
	while (eat("&&")) {
		int64_t w = ex_relation();
		v = v && w;
	}
	return v;
}

static int64_t ex_cond(void)
{
	int64_t v = ex_and();
	while (eat("||")) {
		int64_t w = ex_and();
		v = v || w;
	}
	return v;
}

static int64_t eval(const char *s)
{
	ex = ex_whole = s;
	int64_t v = ex_cond();
	while (*ex == ' ')
		ex++;
	if (*ex)
		die("expression '%s': left over '%s'", s, ex);
	return v;
}

static int64_t eval_node(const node *n) { return n->type == 's' ? eval(n->text) : (int64_t)n->num; }

static int vector(const node *list, int64_t *out, int max)
{
	int n = 0;
	for (const node *c = list ? list->child : NULL; c && n < max; c = c->next)
		out[n++] = eval_node(c);
	return n;
}

/* ---- a plan, made ready for one shape ---- */

static int64_t M, N, K;
static CUdeviceptr buf_a, buf_b, buf_c, buf_ref, buf_ws, buf_flush, buf_err;
static size_t ws_bytes, ws_capacity;

static CUdeviceptr buffer(const char *name)
{
	return !strcmp(name, "A") ? buf_a : !strcmp(name, "B") ? buf_b : !strcmp(name, "C") ? buf_c : (die("buffer %s", name), 0);
}

static int pick(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (*words[i] && !strcmp(word, words[i]))
			return i;
	die("plan: word '%s'", word);
	return -1;
}

static void encode(const node *t, CUtensorMap *map)
{
	static const char *const dtypes[] = {"uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
		"bfloat16", NULL};
	static const char *const swizzles[] = {"none", "32B", "64B", "128B", NULL};
	static const char *const interleaves[] = {"none", "16B", "32B", NULL};
	static const char *const promotions[] = {"none", "64B", "128B", "256B", NULL};
	static const char *const fills[] = {"zero", "nan", NULL};
	int64_t dims[5], strides[5], box[5], steps[5];
	int rank = vector(must(t, "dims"), dims, 5);
	if (vector(get(t, "byte_strides"), strides, 5) != rank - 1 || vector(must(t, "box"), box, 5) != rank ||
	    vector(must(t, "element_strides"), steps, 5) != rank)
		die("plan: tensor map ranks differ");
	uint64_t d[5] = {0}, s[5] = {0};
	uint32_t b[5] = {0}, e[5] = {0};
	for (int i = 0; i < rank; i++)
		d[i] = (uint64_t)dims[i], s[i] = i < rank - 1 ? (uint64_t)strides[i] : 0, b[i] = (uint32_t)box[i], e[i] = (uint32_t)steps[i];
	CUresult r = cuTensorMapEncodeTiled(map, pick(must(t, "dtype")->text, dtypes), (uint32_t)rank,
		(void *)(uintptr_t)buffer(must(t, "buffer")->text), d, s, b, e, pick(must(t, "interleave")->text, interleaves),
		pick(must(t, "swizzle")->text, swizzles), pick(must(t, "l2_promotion")->text, promotions), pick(must(t, "oob_fill")->text, fills));
	if (r)
		die("tensor map of %s: %d %s", must(t, "buffer")->text, r, error_name(r));
}

struct launch {
	const char *entry;
	CUfunction f;
	LaunchConfig config;
	LaunchAttribute attrs[3];
	void *args[16];
	union { CUtensorMap map; uint64_t u64; uint32_t u32; } value[16];
	int nargs;
};
static struct launch launches[8];
static int nlaunches;

static void prepare(const node *plan, CUmodule module)
{
	bind("M", M), bind("N", N), bind("K", K), bind("sm_count", sm_count), bind("max_shared", max_shared);
	node *ws = must(plan, "workspaces")->child;
	ws_bytes = (size_t)eval(must(ws, "bytes")->text);
	if (ws_bytes > ws_capacity)
		die("workspace too large for this probe");
	nlaunches = 0;
	for (node *l = must(plan, "launches")->child; l; l = l->next) {
		if (get(l, "when") && !eval(get(l, "when")->text))
			continue;
		struct launch *x = &launches[nlaunches++];
		int64_t v[3];
		memset(x, 0, sizeof *x);
		x->entry = must(l, "entry")->text;
		CU(cuModuleGetFunction(&x->f, module, x->entry));
		vector(must(l, "grid"), v, 3);
		for (int i = 0; i < 3; i++)
			x->config.grid[i] = (uint32_t)v[i];
		vector(must(l, "block"), v, 3);
		for (int i = 0; i < 3; i++)
			x->config.block[i] = (uint32_t)v[i];
		x->config.shared = (uint32_t)eval_node(must(l, "shared_bytes"));
		x->config.attrs = x->attrs;
		if (get(l, "cluster") && vector(get(l, "cluster"), v, 3) == 3) {
			LaunchAttribute *a = &x->attrs[x->config.nattrs++];
			a->id = ATTR_CLUSTER;
			for (int i = 0; i < 3; i++)
				a->value.u[i] = (uint32_t)v[i];
		}
		if (x->config.shared)
			CU(cuFuncSetAttribute(x->f, FUNC_MAX_DYNAMIC_SHARED, (int)x->config.shared));
		for (node *a = must(l, "args")->child; a; a = a->next, x->nargs++) {
			node *n;
			size_t size = 8, off, want;
			x->args[x->nargs] = &x->value[x->nargs];
			if ((n = get(a, "tensor_map")))
				encode(n, &x->value[x->nargs].map), size = 128;
			else if ((n = get(a, "in")) || (n = get(a, "out")))
				x->value[x->nargs].u64 = buffer(n->text);
			else if (get(a, "workspace"))
				x->value[x->nargs].u64 = buf_ws + (uint64_t)eval(must(a, "offset")->text);
			else if ((n = get(a, "axis")) || (n = get(a, "expr"))) {
				x->value[x->nargs].u64 = (uint64_t)eval(n->text);
				size = !strcmp(must(a, "type")->text, "i32") ? 4 : 8;
			}
			/* The driver copies as many bytes as the kernel declares: only this comparison sees a wrong type. */
			CU(cuFuncGetParamInfo(x->f, (size_t)x->nargs, &off, &want));
			if (want != size)
				die("%s: argument %d has %zu bytes, the kernel wants %zu", x->entry, x->nargs, size, want);
		}
		size_t off, want;
		if (!cuFuncGetParamInfo(x->f, (size_t)x->nargs, &off, &want))
			die("%s: too few arguments", x->entry);
	}
}

static void carry_out(void)
{
	if (ws_bytes)
		CU(cuMemsetD8Async(buf_ws, 0, ws_bytes, NULL));
	for (int i = 0; i < nlaunches; i++)
		CU(cuLaunchKernelEx(&launches[i].config, launches[i].f, launches[i].args, NULL));
}

/* ---- our own kernels: fill, reference, compare, flush ---- */

static const char helper_source[] =
	"typedef unsigned int u32; typedef unsigned long long u64; typedef unsigned short bf16;\n"
	"__device__ float up(bf16 x) { return __uint_as_float((u32)x << 16); }\n"
	"extern \"C\" __global__ void fill(bf16 *p, u64 n, u64 seed) {\n"	/* four uniforms summed: near normal, sd 1 */
	"  for (u64 i = blockIdx.x * 256ull + threadIdx.x; i < n; i += gridDim.x * 256ull) {\n"
	"    u64 x = (i + seed) * 0x9e3779b97f4a7c15ull; x ^= x >> 30; x *= 0xbf58476d1ce4e5b9ull; x ^= x >> 27;\n"
	"    x *= 0x94d049bb133111ebull; x ^= x >> 31;\n"
	"    float f = (float)((x & 65535) + (x >> 16 & 65535) + (x >> 32 & 65535) + (x >> 48)) * (1.f / 65536) - 2;\n"
	"    p[i] = (bf16)(__float_as_uint(f * 1.7320508f) >> 16); } }\n"
	"extern \"C\" __global__ void reference(const bf16 *A, const bf16 *B, float *C, int M, int N, int K) {\n"
	"  __shared__ float a[16][17], b[16][17];\n"
	"  int x = threadIdx.x % 16, y = threadIdx.x / 16, m = blockIdx.y * 16 + y, n = blockIdx.x * 16 + x, nb = blockIdx.x * 16 + y;\n"
	"  float s = 0;\n"
	"  for (int k = 0; k < K; k += 16) {\n"
	"    a[y][x] = m < M && k + x < K ? up(A[(u64)m * K + k + x]) : 0; b[y][x] = nb < N && k + x < K ? up(B[(u64)nb * K + k + x]) : 0;\n"
	"    __syncthreads(); for (int i = 0; i < 16; i++) s += a[y][i] * b[x][i]; __syncthreads(); }\n"
	"  if (m < M && n < N) C[(u64)m * N + n] = s; }\n"
	"extern \"C\" __global__ void compare(const bf16 *C, const float *R, u64 n, double *err) {\n"	/* err: sum d^2, sum r^2, max d, bad */
	"  double d2 = 0, r2 = 0; float worst = 0; u64 bad = 0;\n"
	"  for (u64 i = blockIdx.x * 256ull + threadIdx.x; i < n; i += gridDim.x * 256ull) {\n"
	"    float c = up(C[i]), d = fabsf(c - R[i]); if (!(d <= 1e30f)) { bad++; continue; }\n"
	"    d2 += (double)d * d; r2 += (double)R[i] * R[i]; worst = fmaxf(worst, d); }\n"
	"  atomicAdd(err, d2); atomicAdd(err + 1, r2); atomicMax((u64 *)err + 2, (u64)__double_as_longlong((double)worst));\n"
	"  if (bad) atomicAdd((u64 *)err + 3, bad); }\n"
	"extern \"C\" __global__ void flush(const uint4 *p, u64 n, u32 *out) {\n"
	"  u32 s = 0; for (u64 i = blockIdx.x * 256ull + threadIdx.x; i < n; i += gridDim.x * 256ull) { uint4 v = p[i]; s += v.x ^ v.y ^ v.z ^ v.w; }\n"
	"  if (s == 0x12345678) *out = s; }\n"
	"extern \"C\" __global__ void wild(int *p) { *p = 1; }\n";
static CUmodule helpers;

static void run_helper(const char *name, unsigned gx, unsigned gy, void **args)
{
	CUfunction f;
	LaunchConfig c = {.grid = {gx, gy, 1}, .block = {256, 1, 1}};
	CU(cuModuleGetFunction(&f, helpers, name));
	CU(cuLaunchKernelEx(&c, f, args, NULL));
}

enum { FLUSH_BYTES = 256 << 20 };

static void flush_l2(void)
{
	uint64_t n = FLUSH_BYTES / 16;
	run_helper("flush", 1056, 1, (void *[]){&buf_flush, &n, &buf_err});
}

static void reserve(int64_t m, int64_t n, int64_t k)
{
	size_t slack = 1 << 20;
	CU(cuMemAlloc_v2(&buf_a, (size_t)(m * k * 2) + slack));
	CU(cuMemAlloc_v2(&buf_b, (size_t)(n * k * 2) + slack));
	CU(cuMemAlloc_v2(&buf_c, (size_t)(m * n * 2) + slack));
	CU(cuMemAlloc_v2(&buf_ref, (size_t)(m * n * 4) + slack));
	CU(cuMemAlloc_v2(&buf_ws, ws_capacity = (size_t)(m * n * 4) + slack));
	CU(cuMemAlloc_v2(&buf_flush, FLUSH_BYTES));
	CU(cuMemAlloc_v2(&buf_err, 64));
	CU(cuMemsetD8Async(buf_flush, 1, FLUSH_BYTES, NULL));
	struct image im = compile(helper_source, "sm_90", NULL, 0);
	if (im.rc)
		die("helpers: %s", im.log);
	CU(cuModuleLoadData(&helpers, im.cubin));
}

struct check { double rel_l2, worst; uint64_t bad, past; };

static void make_inputs(void)
{
	uint64_t na = (uint64_t)(M * K), nb = (uint64_t)(N * K), sa = 1, sb = 1ull << 40;
	int m = (int)M, n = (int)N, k = (int)K;
	run_helper("fill", 528, 1, (void *[]){&buf_a, &na, &sa});
	run_helper("fill", 528, 1, (void *[]){&buf_b, &nb, &sb});
	run_helper("reference", (unsigned)((N + 15) / 16), (unsigned)((M + 15) / 16), (void *[]){&buf_a, &buf_b, &buf_ref, &m, &n, &k});
	CU(cuCtxSynchronize());
}

/* One run over NaN-poisoned output; the 64 KiB past the output must keep the poison. */
static struct check verify(void)
{
	struct check c = {0};
	uint64_t n = (uint64_t)(M * N);
	double err[4];
	unsigned char tail[65536];
	CU(cuMemsetD8Async(buf_c, 0xff, n * 2 + sizeof tail, NULL));
	CU(cuMemsetD8Async(buf_err, 0, 64, NULL));
	carry_out();
	run_helper("compare", 528, 1, (void *[]){&buf_c, &buf_ref, &n, &buf_err});
	CU(cuMemcpyDtoH_v2(err, buf_err, sizeof err));
	CU(cuMemcpyDtoH_v2(tail, buf_c + n * 2, sizeof tail));
	c.rel_l2 = sqrt(err[0] / err[1]);
	c.worst = err[2];
	memcpy(&c.bad, &err[3], 8);
	for (size_t i = 0; i < sizeof tail; i++)
		c.past += tail[i] != 0xff;
	return c;
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

struct times { double median, low, high, best; };	/* us: median, 5 %, 95 %, min */

static struct times measure(int cold, int warm, int count)
{
	static CUevent start[1000], stop[1000];
	float ms[1000];
	for (int i = 0; i < count; i++)
		if (!start[i]) {
			CU(cuEventCreate(&start[i], 0));
			CU(cuEventCreate(&stop[i], 0));
		}
	for (int i = 0; i < warm; i++)
		carry_out();
	for (int i = 0; i < count; i++) {
		if (cold)
			flush_l2();
		CU(cuEventRecord(start[i], NULL));
		carry_out();
		CU(cuEventRecord(stop[i], NULL));
	}
	CU(cuCtxSynchronize());
	for (int i = 0; i < count; i++)
		CU(cuEventElapsedTime(&ms[i], start[i], stop[i]));
	qsort(ms, (size_t)count, sizeof *ms, by_value);
	return (struct times){ms[count / 2] * 1e3, ms[count / 20] * 1e3, ms[count - 1 - count / 20] * 1e3, ms[0] * 1e3};
}

/* ---- modes ---- */

static const node *tunable(const node *plan, int i)
{
	const node *t = must(plan, "tunables")->child;
	while (t && i--)
		t = t->next;
	return t;
}

static struct image build(const node *plan, const char *source)
{
	static char text[16][48];
	const char *opts[16];
	int n = 0;
	for (const node *t = must(plan, "tunables")->child; t; t = t->next) {
		snprintf(text[n], sizeof text[n], "-D%s=%lld", t->key, (long long)eval(t->key));
		opts[n] = text[n];
		n++;
	}
	struct image im = compile(source, "sm_90a", opts, n);
	if (im.rc)
		die("kernel.cu does not compile (%d):\n%s", im.rc, im.log);
	if (strlen(im.log) > 1)
		printf("# NVRTC log: %s\n", im.log);
	return im;
}

static int allowed(const node *plan)
{
	bind("max_shared", max_shared ? max_shared : 232448);
	for (const node *c = must(plan, "constraints")->child; c; c = c->next)
		if (!eval(c->text))
			return 0;
	return 1;
}

static void describe(char *out, size_t size, const node *plan)
{
	size_t n = 0;
	for (const node *t = must(plan, "tunables")->child; t; t = t->next)
		n += (size_t)snprintf(out + n, size - n, "%s%s=%lld", n ? " " : "", t->key, (long long)eval(t->key));
}

static void sections(const struct image *im)
{
	const Elf64_Ehdr *h = (const void *)im->cubin;
	const Elf64_Shdr *s = (const void *)(im->cubin + h->e_shoff);
	const char *strings = im->cubin + s[h->e_shstrndx].sh_offset;
	printf("  cubin %zu bytes, e_machine %u, e_flags %#x, ABI %u.%u\n", im->ncubin, h->e_machine, h->e_flags, h->e_ident[7], h->e_ident[8]);
	for (int i = 1; i < h->e_shnum; i++) {
		static const char *const common[] = {".shstrtab", ".strtab", ".symtab", ".debug_frame", ".note.nv.tkinfo", ".note.nv.cuinfo", ".nv.info",
			".nv.compat", ".nv.callgraph", ".rela.debug_frame", ".nv.shared.reserved.0"};
		const char *name = strings + s[i].sh_name;
		int skip = 0;	/* every cubin has these */
		for (size_t c = 0; c < sizeof common / sizeof *common; c++)
			skip |= !strcmp(name, common[c]);
		if (skip)
			continue;
		printf("  %-34s type %#10x flags %#5llx size %6llu align %3llu\n", name, s[i].sh_type, (unsigned long long)s[i].sh_flags,
			(unsigned long long)s[i].sh_size, (unsigned long long)s[i].sh_addralign);
		if (strncmp(name, ".nv.info.", 9))
			continue;
		/* Records: format byte, attribute byte, 16-bit size or value, payload if the format is 4. 0x17 is KPARAM_INFO. */
		const unsigned char *p = (const unsigned char *)im->cubin + s[i].sh_offset, *end = p + s[i].sh_size;
		printf("    records:");
		while (p + 4 <= end) {
			unsigned len = p[0] == 4 ? p[2] | p[3] << 8 : 0;
			if (p[1] == 0x17 && len == 12) {
				uint32_t w[3];
				memcpy(w, p + 4, 12);
				printf(" [param %u offset %u size %u]", w[1] & 0xffff, w[1] >> 16, w[2] >> 18);
			} else {
				printf(" %02x/%02x", p[0], p[1]);
				if (p[0] == 4 && len == 4) {
					uint32_t w;
					memcpy(&w, p + 4, 4);
					printf("=%#x", w);
				} else if (p[0] != 4)
					printf("=%#x", p[2] | p[3] << 8);
				else
					printf("(%u)", len);
			}
			p += 4 + len;
		}
		printf("\n");
	}
}

static void print_sections(const node *plan, const char *source)
{
	static const struct { const char *what, *arch, *source; } snippets[] = {
		{"arguments of many sizes", "sm_90a",
			"struct __align__(64) map { unsigned long long q[16]; }; struct __align__(128) map128 { unsigned long long q[16]; };\n"
			"extern \"C\" __global__ void k(int a, const __grid_constant__ map m, char c, double d, short s, const float *p, float f,\n"
			"  const __grid_constant__ map128 n, long long z) { *(double *)p = a + c + d + s + f + z + m.q[3] + n.q[5]; }\n"},
		{"a __device__ variable", "sm_90", "__device__ int g; extern \"C\" __global__ void k(int *p) { *p = g++; }\n"},
		{"an initialised __device__ variable", "sm_90", "__device__ int g = 7; extern \"C\" __global__ void k(int *p) { *p = g++; }\n"},
		{"an unused __device__ variable", "sm_90", "__device__ int g = 7; extern \"C\" __global__ void k(int *p) { *p = 1; }\n"},
		{"a static in a kernel", "sm_90", "extern \"C\" __global__ void k(int *p) { static int n; *p = n++; }\n"},
		{"a __constant__ table", "sm_90", "__constant__ int t[4] = {1, 2, 3, 5}; extern \"C\" __global__ void k(int *p, int i) { *p = t[i]; }\n"},
		{"a const local table, run-time index", "sm_90",
			"extern \"C\" __global__ void k(int *p, int i) { const int t[8] = {1, 2, 3, 5, 8, 13, 21, 34}; *p = t[i]; }\n"},
		{"a static const local table", "sm_90",
			"extern \"C\" __global__ void k(int *p, int i) { static const int t[8] = {1, 2, 3, 5, 8, 13, 21, 34}; *p = t[i]; }\n"},
		{"a file-scope constexpr table", "sm_90",
			"constexpr int t[8] = {1, 2, 3, 5, 8, 13, 21, 34}; extern \"C\" __global__ void k(int *p, int i) { *p = t[i]; }\n"},
		{"a dense switch", "sm_90",
			"extern \"C\" __global__ void k(float *p, int i) { float x = *p; switch (i) { case 0: x = sinf(x); break; case 1: x = expf(x);"
			" break; case 2: x = logf(x); break; case 3: x = x * x; break; case 4: x = rsqrtf(x); break; case 5: x = tanf(x); break;"
			" case 6: x = cosf(x); break; case 7: x = x / 3; break; } *p = x; }\n"},
		{"double arithmetic and sin", "sm_90", "extern \"C\" __global__ void k(double *p) { *p = sin(*p) * 1.2345678901; }\n"},
		{"printf", "sm_90", "extern \"C\" __global__ void k(int *p) { printf(\"%d\\n\", *p); }\n"},
		{"trap", "sm_90", "extern \"C\" __global__ void k(int *p) { if (*p) __trap(); }\n"},
		{"a device function call", "sm_90",
			"__device__ __noinline__ int f(int x) { return x * x + 1; } extern \"C\" __global__ void k(int *p) { *p = f(*p); }\n"},
		{"a function pointer table", "sm_90",
			"__device__ __noinline__ int f(int x) { return x + 1; } __device__ __noinline__ int g(int x) { return x * 3; }\n"
			"extern \"C\" __global__ void k(int *p, int i) { int (*t[2])(int) = {f, g}; *p = t[i](*p); }\n"},
		{"static and dynamic shared memory", "sm_90",
			"extern \"C\" __global__ void k(int *p) { __shared__ int s[32]; extern __shared__ int d[]; s[threadIdx.x] = *p; d[threadIdx.x] = 1;"
			" __syncthreads(); *p = s[31 - threadIdx.x] + d[31 - threadIdx.x]; }\n"},
		{"a cluster size in the source", "sm_90", "extern \"C\" __global__ void __cluster_dims__(2, 1, 1) k(int *p) { *p = 1; }\n"},
		{"clock, smid, globaltimer", "sm_90",
			"extern \"C\" __global__ void k(long long *p) { unsigned s; asm volatile(\"mov.u32 %0, %%smid;\" : \"=r\"(s)); long long g;"
			" asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(g)); *p = clock64() + s + g; }\n"},
		{"parameters of 4 KiB + 4", "sm_90", "struct s { int v[1025]; }; extern \"C\" __global__ void k(s a, int *p) { *p = a.v[3]; }\n"},
		{"parameters of 32,768 bytes", "sm_90", "struct s { int v[8190]; }; extern \"C\" __global__ void k(s a, int *p) { *p = a.v[3]; }\n"},
		{"wgmma for plain sm_90", "sm_90", "extern \"C\" __global__ void k(int *p) { asm volatile(\"wgmma.fence.sync.aligned;\"); *p = 1; }\n"},
		{"#include <cuda_bf16.h> with no include path", "sm_90", "#include <cuda_bf16.h>\nextern \"C\" __global__ void k(int *p) { *p = 1; }\n"},
		{"#include <cuda/std/cstdint>", "sm_90", "#include <cuda/std/cstdint>\nextern \"C\" __global__ void k(int *p) { *p = 1; }\n"},
		{"#include <cuda.h>", "sm_90", "#include <cuda.h>\nextern \"C\" __global__ void k(int *p) { *p = 1; }\n"},
		{"CUtensorMap with no include", "sm_90", "extern \"C\" __global__ void k(const __grid_constant__ CUtensorMap m) { }\n"},
		{"uint32_t with no include", "sm_90", "extern \"C\" __global__ void k(uint32_t *p) { *p = 1; }\n"},
		{"wgmma results read too early", "sm_90a",
			"extern \"C\" __global__ void __launch_bounds__(128) k(float *p, unsigned long long a, unsigned long long b) { float d[4] = {0, 0, 0, 0};\n"
			"#pragma unroll\nfor (int i = 0; i < 2; i++) { asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"
			" {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;\" : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"l\"(a), \"l\"(b)); d[0] *= 2; }\n"
			"p[threadIdx.x] = d[0] + d[1] + d[2] + d[3]; }\n"},
	};
	int major, minor;
	nvrtcVersion(&major, &minor);
	printf("NVRTC %d.%d; options: --gpu-architecture and -D only, no include path\n", major, minor);
	struct image im = build(plan, source);
	printf("kernel.cu: rc 0, %.0f ms\n", im.ms);
	sections(&im);
	printf("  PTX: %zu bytes, special registers:", strlen(im.ptx));
	const char *seen[32];
	int nseen = 0;
	for (const char *p = im.ptx; (p = strchr(p, '%')); p++) {	/* named registers, not %r12 */
		size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
		if (n < 3 || isdigit((unsigned char)p[n + 1]))
			continue;
		int known = 0;
		for (int i = 0; i < nseen; i++)
			known |= !strncmp(seen[i], p, n + 1);
		if (!known && nseen < 32) {
			seen[nseen++] = p;
			printf(" %.*s", (int)n + 1, p);
		}
	}
	printf("\n");
	for (size_t i = 0; i < sizeof snippets / sizeof *snippets; i++) {
		struct image s = compile(snippets[i].source, snippets[i].arch, NULL, 0);
		printf("%s (%s): rc %d, %.0f ms%s%s\n", snippets[i].what, snippets[i].arch, s.rc, s.ms, strlen(s.log) > 1 ? "\n  log: " : "", s.log);
		if (!s.rc)
			sections(&s);
	}
}

/* The first launch as a graph [event, kernel, event]; then the same executable graph updated to other launch shapes. */
static void print_graph(void)
{
	struct launch x = launches[0];
	CUstream stream;
	CUevent a, b;
	void *graph[3], *exec;
	struct { int result; void *node, *from; } info;
	float ms[100];
	x.config.attrs = x.attrs;
	CU(cuStreamCreate(&stream, 1));
	CU(cuEventCreate(&a, 0));
	CU(cuEventCreate(&b, 0));
	x.config.stream = stream;
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			x.config.grid[0] = 66;
		if (i == 2)
			x.attrs[0].value.u[0] = 1;	/* wrong for this kernel if CLUSTER=2: captured, never run */
		CU(cuStreamBeginCapture_v2(stream, 1));
		CU(cuEventRecordWithFlags(a, stream, 1));
		CU(cuLaunchKernelEx(&x.config, x.f, launches[0].args, NULL));
		CU(cuEventRecordWithFlags(b, stream, 1));
		CU(cuStreamEndCapture(stream, &graph[i]));
	}
	CU(cuGraphInstantiateWithFlags(&exec, graph[0], 0));
	for (int i = 0; i < 3; i++) {
		CUresult r = i ? cuGraphExecUpdate_v2(exec, graph[i], &info) : 0;
		printf("graph: %s: rc %d result %d", i == 0 ? "captured and instantiated" : i == 1 ? "updated to half the grid" : "updated to cluster 1", r,
			i ? info.result : 0);
		for (int k = 0; k < 100 && !r && i < 2; k++) {
			CU(cuGraphLaunch(exec, stream));
			CU(cuCtxSynchronize());
			CU(cuEventElapsedTime(&ms[k], a, b));
		}
		if (!r && i < 2) {
			qsort(ms, 100, sizeof *ms, by_value);
			printf(", median %.2f us", (double)ms[50] * 1e3);
		}
		printf("\n");
	}
}

static void print_facts(const node *plan, CUmodule module)
{
	static const struct { int id; const char *name; } attrs[] = {{1, "max threads per block"}, {2, "max block x"}, {3, "max block y"},
		{4, "max block z"}, {5, "max grid x"}, {6, "max grid y"}, {7, "max grid z"}, {8, "shared per block"}, {97, "shared per block, opt-in"},
		{81, "shared per SM"}, {111, "shared reserved per block"}, {12, "registers per block"}, {82, "registers per SM"}, {10, "warp size"},
		{16, "SMs"}, {39, "max threads per SM"}, {106, "max blocks per SM"}, {38, "L2 bytes"}, {75, "compute capability, major"},
		{76, "compute capability, minor"}, {95, "cooperative launch"}, {120, "cluster launch"}, {127, "tensor map"}, {9, "constant bytes"},
		{13, "clock kHz"}, {36, "memory clock kHz"}, {37, "memory bus bits"}, {14, "texture alignment"}};
	static const char *const fattrs[] = {"max_threads_per_block", "shared_size_bytes", "const_size_bytes", "local_size_bytes", "num_regs",
		"ptx_version", "binary_version", "cache_mode_ca", "max_dynamic_shared_size_bytes", "preferred_shared_memory_carveout",
		"cluster_size_must_be_set", "required_cluster_width", "required_cluster_height", "required_cluster_depth",
		"non_portable_cluster_size_allowed", "cluster_scheduling_policy_preference"};
	for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
		printf("device attribute %3d %-26s %d\n", attrs[i].id, attrs[i].name, device_attr(attrs[i].id));
	unsigned count = 0;
	CU(cuModuleGetFunctionCount(&count, module));
	printf("functions in the module: %u\n", count);
	for (const node *e = must(plan, "entries")->child; e; e = e->next) {
		CUfunction f;
		CU(cuModuleGetFunction(&f, module, e->text));
		printf("%s\n", e->text);
		for (int i = 0; i < 16; i++) {
			int v = -1;
			CUresult r = cuFuncGetAttribute(&v, i, f);
			if (r)
				printf("  function attribute %2d %-38s error %d %s\n", i, fattrs[i], r, error_name(r));
			else
				printf("  function attribute %2d %-38s %d\n", i, fattrs[i], v);
		}
		size_t off, size;
		for (size_t i = 0;; i++) {
			CUresult r = cuFuncGetParamInfo(f, i, &off, &size);
			if (r) {
				printf("  parameter %zu: %d %s (one past the last)\n", i, r, error_name(r));
				break;
			}
			printf("  parameter %zu: offset %zu size %zu\n", i, off, size);
		}
	}
	for (int i = 0; i < nlaunches; i++) {
		struct launch copy = launches[i], *x = &copy;
		int blocks = -1, clusters = -1, widest = -1;
		size_t room = 0;
		int threads = (int)x->config.block[0];
		x->config.attrs = x->attrs;
		CUresult r0 = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, x->f, threads, x->config.shared);
		CUresult r1 = cuOccupancyMaxActiveClusters(&clusters, x->f, &x->config);
		CUresult r2 = cuOccupancyMaxPotentialClusterSize(&widest, x->f, &x->config);
		CUresult r3 = cuOccupancyAvailableDynamicSMemPerBlock(&room, x->f, 1, threads);
		printf("occupancy %s: grid %u,%u,%u block %d shared %u: blocks per SM %d (rc %d), clusters on the device %d (rc %d), "
			"widest portable cluster %d (rc %d), dynamic shared free at 1 block per SM %zu (rc %d)\n", x->entry, x->config.grid[0],
			x->config.grid[1], x->config.grid[2], threads, x->config.shared, blocks, r0, clusters, r1, widest, r2, room, r3);
		if (x->config.nattrs)
			for (uint32_t c = 1; c <= 16; c *= 2) {
				x->attrs[0].value.u[0] = c;
				x->config.grid[0] = 16 * 66;
				if (c == 16)
					cuFuncSetAttribute(x->f, FUNC_NON_PORTABLE_CLUSTER, 1);
				r1 = cuOccupancyMaxActiveClusters(&clusters, x->f, &x->config);
				printf("  clusters of %2u: %d on the device (rc %d %s)\n", c, clusters, r1, error_name(r1));
			}
	}
	print_graph();
	CUfunction f;
	CU(cuModuleGetFunction(&f, helpers, "wild"));
	for (int shared = 0; shared <= 233472; shared += shared < 49152 ? 49152 : 1024)
		if (shared == 0 || shared == 49152 || shared >= 231424) {
			int b = -1;
			CUresult rs = cuFuncSetAttribute(f, FUNC_MAX_DYNAMIC_SHARED, shared);
			CUresult r = cuOccupancyMaxActiveBlocksPerMultiprocessor(&b, f, 256, (size_t)shared);
			printf("occupancy wild: shared %d: set attribute rc %d, blocks per SM %d (rc %d)\n", shared, rs, b, r);
		}
}

static void attempt(const char *what, CUfunction f, LaunchConfig c, void **args)
{
	CUresult r = cuLaunchKernelEx(&c, f, args, NULL), s = cuCtxSynchronize();
	printf("launch: %-62s -> %d %s%s%s\n", what, r, error_name(r), s ? ", then at synchronise " : "", s ? error_name(s) : "");
}

static void print_errors(CUmodule module)
{
	CUfunction f, wild, round;
	CU(cuModuleGetFunction(&f, module, "gemm"));
	CU(cuModuleGetFunction(&round, module, "round_any"));
	CU(cuModuleGetFunction(&wild, helpers, "wild"));
	struct launch *x = &launches[0];
	LaunchConfig good = x->config, c;
	LaunchAttribute at[3];
	uint64_t ok = buf_err, zero = 0;
	void *wargs[] = {&ok};
	LaunchConfig w = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .attrs = at};

	printf("set max dynamic shared 232448 on gemm (static part is in use too) -> %d\n", cuFuncSetAttribute(f, 8, 232448));
	printf("set max dynamic shared 232384 on gemm -> %d\n", cuFuncSetAttribute(f, 8, 232384));
	printf("set max dynamic shared 232448 on wild (no static) -> %d, 232449 -> %d, -1 -> %d\n", cuFuncSetAttribute(wild, 8, 232448),
		cuFuncSetAttribute(wild, 8, 232449), cuFuncSetAttribute(wild, 8, -1));
	CU(cuFuncSetAttribute(wild, 8, 49152));
	attempt("as planned", f, good, x->args);
	c = good, c.shared = 232449;
	attempt("gemm, shared 232449", f, c, x->args);
	c = w, c.shared = 49152;
	attempt("wild, shared 49152, attribute not raised", wild, c, wargs);
	c.shared = 49153;
	attempt("wild, shared 49153, attribute not raised", wild, c, wargs);
	c.shared = 65536;
	attempt("wild, shared 65536, attribute not raised", wild, c, wargs);
	CU(cuFuncSetAttribute(wild, 8, 0));
	c.shared = 4096;
	attempt("wild, shared 4096, attribute lowered to 0", wild, c, wargs);
	CU(cuFuncSetAttribute(wild, 8, 49152));
	c = w, c.grid[0] = 0;
	attempt("grid x 0", wild, c, wargs);
	c = w, c.grid[1] = 65535;
	attempt("grid y 65535", wild, c, wargs);
	c = w, c.grid[1] = 65536;
	attempt("grid y 65536", wild, c, wargs);
	c = w, c.grid[2] = 65536;
	attempt("grid z 65536", wild, c, wargs);
	c = w, c.grid[0] = 0x80000000u;
	attempt("grid x 2^31", wild, c, wargs);
	c = w, c.block[0] = 0;
	attempt("block x 0", wild, c, wargs);
	c = w, c.block[0] = 1025;
	attempt("block x 1025", wild, c, wargs);
	c = w, c.block[0] = 64, c.block[1] = 32;
	attempt("block 64,32 (2048 threads)", wild, c, wargs);
	c = w, c.block[2] = 65;
	attempt("block z 65", wild, c, wargs);
	c = w, c.block[0] = 512;
	uint64_t n64 = 0;
	attempt("round_any (launch bounds 256) with 512 threads", round, c, (void *[]){&buf_ws, &buf_c, &n64});
	c = w, at[0] = (LaunchAttribute){.id = ATTR_CLUSTER, .value.u = {2, 1, 1}}, c.nattrs = 1, c.grid[0] = 3;
	attempt("cluster 2, grid 3", wild, c, wargs);
	c.grid[0] = 4, at[0].value.u[0] = 0;
	attempt("cluster 0", wild, c, wargs);
	c.grid[0] = 9, at[0].value.u[0] = 9;
	attempt("cluster 9, grid 9", wild, c, wargs);
	c.grid[0] = 16, at[0].value.u[0] = 16;
	attempt("cluster 16, not allowed first", wild, c, wargs);
	CU(cuFuncSetAttribute(wild, FUNC_NON_PORTABLE_CLUSTER, 1));
	attempt("cluster 16, allowed", wild, c, wargs);
	c.grid[0] = 12, at[0].value.u[0] = 12;
	attempt("cluster 12, allowed", wild, c, wargs);
	c.grid[0] = 24, at[0].value.u[0] = 3;
	attempt("cluster 3, grid 24", wild, c, wargs);
	c.grid[0] = 8, c.grid[1] = 4, at[0].value.u[0] = 4, at[0].value.u[1] = 4;
	attempt("cluster 4x4, allowed", wild, c, wargs);
	c = w, at[0] = (LaunchAttribute){.id = ATTR_COOPERATIVE, .value.u = {1}}, c.nattrs = 1, c.grid[0] = (uint32_t)sm_count * 32;
	attempt("cooperative, 32 blocks per SM of 1 thread", wild, c, wargs);
	c.grid[0]++;
	attempt("cooperative, one block more", wild, c, wargs);
	c.grid[0] = 132, at[1] = (LaunchAttribute){.id = ATTR_CLUSTER, .value.u = {2, 1, 1}}, c.nattrs = 2;
	attempt("cooperative with cluster 2", wild, c, wargs);
	at[0] = (LaunchAttribute){.id = ATTR_PDL, .value.u = {1}};
	attempt("programmatic stream serialization with cluster 2", wild, c, wargs);
	at[1] = (LaunchAttribute){.id = ATTR_COOPERATIVE, .value.u = {1}};
	attempt("programmatic stream serialization with cooperative", wild, c, wargs);
	at[0] = (LaunchAttribute){.id = ATTR_CLUSTER, .value.u = {1, 1, 1}}, c.nattrs = 1;
	attempt("cluster 1,1,1", wild, c, wargs);
	attempt("cluster 1,1,1 twice", wild, (at[1] = at[0], c.nattrs = 2, c), wargs);
	attempt("no parameter array", wild, w, NULL);

	CUtensorMap room[2], *map = room;
	static const uint64_t dims0[5] = {4096, 4096, 2, 2, 2}, str0[5] = {8192, 8192 * 4096, 8192 * 4096, 8192 * 4096, 0};
	static const struct { const char *what; int dtype, rank, swizzle, interleave, fill, field, index; uint64_t value; int map_off, ptr_off; } t[] = {
		{"as planned (bf16, box 64x128, 128B)", 9, 2, 3, 0, 0, 0, 0, 0, 0, 0},
		{"map at 64 mod 128", 9, 2, 3, 0, 0, 0, 0, 0, 64, 0}, {"map at 32 mod 64", 9, 2, 3, 0, 0, 0, 0, 0, 32, 0},
		{"buffer at 16 mod 32", 9, 2, 3, 0, 0, 0, 0, 0, 0, 16}, {"buffer at 8 mod 16", 9, 2, 3, 0, 0, 0, 0, 0, 0, 8},
		{"stride 8200 (8 mod 16)", 9, 2, 3, 0, 0, 's', 0, 8200, 0, 0}, {"stride 8208 (16 mod 32)", 9, 2, 3, 0, 0, 's', 0, 8208, 0, 0},
		{"stride smaller than the row", 9, 2, 3, 0, 0, 's', 0, 4096, 0, 0}, {"stride 0", 9, 2, 3, 0, 0, 's', 0, 0, 0, 0},
		{"stride 2^40", 9, 2, 3, 0, 0, 's', 0, 1ull << 40, 0, 0}, {"stride 2^40 - 16", 9, 2, 3, 0, 0, 's', 0, (1ull << 40) - 16, 0, 0},
		{"dim 0", 9, 2, 3, 0, 0, 'd', 0, 0, 0, 0}, {"dim 3 (smaller than the box)", 9, 2, 3, 0, 0, 'd', 1, 3, 0, 0},
		{"dim 2^32", 9, 2, 3, 0, 0, 'd', 1, 1ull << 32, 0, 0}, {"dim 2^32 + 1", 9, 2, 3, 0, 0, 'd', 1, (1ull << 32) + 1, 0, 0},
		{"box 0", 9, 2, 3, 0, 0, 'b', 1, 0, 0, 0}, {"box 256", 9, 2, 3, 0, 0, 'b', 1, 256, 0, 0}, {"box 257", 9, 2, 3, 0, 0, 'b', 1, 257, 0, 0},
		{"inner box 72 (144 bytes, 128B swizzle)", 9, 2, 3, 0, 0, 'b', 0, 72, 0, 0},
		{"inner box 60 (120 bytes, 128B swizzle)", 9, 2, 3, 0, 0, 'b', 0, 60, 0, 0},
		{"inner box 32 (64 bytes, 128B swizzle)", 9, 2, 3, 0, 0, 'b', 0, 32, 0, 0},
		{"inner box 72, no swizzle", 9, 2, 0, 0, 0, 'b', 0, 72, 0, 0}, {"inner box 256, no swizzle", 9, 2, 0, 0, 0, 'b', 0, 256, 0, 0},
		{"inner box 4 (8 bytes), no swizzle", 9, 2, 0, 0, 0, 'b', 0, 4, 0, 0},
		{"box 256x256 (128 KiB), no swizzle", 9, 3, 0, 0, 0, 'B', 0, 256, 0, 0},
		{"element stride 0", 9, 2, 3, 0, 0, 'e', 1, 0, 0, 0}, {"element stride 8", 9, 2, 3, 0, 0, 'e', 1, 8, 0, 0},
		{"element stride 9", 9, 2, 3, 0, 0, 'e', 1, 9, 0, 0}, {"inner element stride 2", 9, 2, 3, 0, 0, 'e', 0, 2, 0, 0},
		{"rank 0", 9, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {"rank 1", 9, 1, 3, 0, 0, 0, 0, 0, 0, 0}, {"rank 5", 9, 5, 3, 0, 0, 0, 0, 0, 0, 0},
		{"rank 6", 9, 6, 3, 0, 0, 0, 0, 0, 0, 0}, {"interleave 16B, rank 2", 9, 2, 0, 1, 0, 0, 0, 0, 0, 0},
		{"interleave 16B, rank 3, no swizzle", 9, 3, 0, 1, 0, 0, 0, 0, 0, 0}, {"interleave 32B, rank 3, 32B swizzle", 9, 3, 1, 2, 0, 0, 0, 0, 0, 0},
		{"interleave 32B, rank 3, 128B swizzle", 9, 3, 3, 2, 0, 0, 0, 0, 0, 0},
		{"NaN fill, bf16", 9, 2, 3, 0, 1, 0, 0, 0, 0, 0}, {"NaN fill, int32", 3, 2, 0, 0, 1, 0, 0, 0, 0, 0},
		{"fill 2", 9, 2, 3, 0, 2, 0, 0, 0, 0, 0}, {"swizzle 7", 9, 2, 7, 0, 0, 0, 0, 0, 0, 0}, {"dtype 16", 16, 2, 3, 0, 0, 0, 0, 0, 0, 0},
		{"null buffer", 9, 2, 3, 0, 0, 0, 0, 0, 0, 1 << 30}, {"no such address (16)", 9, 2, 3, 0, 0, 0, 0, 0, 0, (1 << 30) + 16},
	};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		uint64_t d[6], s[6] = {0};
		uint32_t b[6] = {64, 128, 1, 1, 1, 1}, e[6] = {1, 1, 1, 1, 1, 1};
		memcpy(d, dims0, sizeof dims0), memcpy(s, str0, sizeof str0);
		d[5] = 2;
		if (t[i].field == 'd') d[t[i].index] = t[i].value;
		if (t[i].field == 's') s[t[i].index] = t[i].value;
		if (t[i].field == 'b') b[t[i].index] = (uint32_t)t[i].value;
		if (t[i].field == 'B') b[0] = b[1] = (uint32_t)t[i].value;
		if (t[i].field == 'e') e[t[i].index] = (uint32_t)t[i].value;
		if (t[i].interleave) b[0] = t[i].interleave == 1 ? 8 : 16;
		CUdeviceptr p = t[i].ptr_off >= 1 << 30 ? (CUdeviceptr)(t[i].ptr_off - (1 << 30)) : buf_a + (CUdeviceptr)t[i].ptr_off;
		CUresult r = cuTensorMapEncodeTiled((CUtensorMap *)((char *)map + t[i].map_off), t[i].dtype, (uint32_t)t[i].rank, (void *)(uintptr_t)p, d, s,
			b, e, t[i].interleave, t[i].swizzle, 2, t[i].fill);
		printf("tensor map: %-44s -> %d %s\n", t[i].what, r, error_name(r));
	}

	/* Argument types that lie: nothing checks them but the comparison in prepare(). */
	printf("argument stored in 4 bytes where the kernel declares 8: the driver reads 8 (no error is possible)\n");
	/* Last: these leave the context dead. */
	attempt("store to address 0", wild, w, (void *[]){&zero});
	attempt("a good launch after it", wild, w, wargs);
}

static void print_times(const node *plan, const struct image *im, int64_t (*shapes)[3], int nshapes)
{
	char config[128];
	describe(config, sizeof config, plan);
	printf("%s, driver %d; NVRTC %.0f ms; %s\n", device_name, driver_version, im->ms, config);
	printf("%-18s %-10s %10s %8s %8s %10s %10s %10s %8s\n", "shape M,N,K", "launches", "rel L2", "max|d|", "bad/past", "hot us", "cold us",
		"cold p5-p95", "TFLOP/s");
	for (int i = 0; i < nshapes; i++) {
		char shape[64];
		M = shapes[i][0], N = shapes[i][1], K = shapes[i][2];
		CUmodule module;
		CU(cuModuleLoadData(&module, im->cubin));
		prepare(plan, module);
		make_inputs();
		struct check c = verify();
		struct times hot = measure(0, 20, reps), cold = measure(1, 20, reps);
		struct check again = verify();
		snprintf(shape, sizeof shape, "%lld,%lld,%lld", (long long)M, (long long)N, (long long)K);
		double tflops = 2e-6 * (double)M * (double)N * (double)K;
		printf("%-18s %d:%-8s %10.2e %8.3f %4llu/%-3llu %10.2f %10.2f %5.1f-%5.1f %8.1f\n", shape, nlaunches, launches[0].entry, c.rel_l2, c.worst,
			(unsigned long long)(c.bad + again.bad), (unsigned long long)(c.past + again.past), hot.median, cold.median, cold.low, cold.high,
			tflops / cold.median);
		printf("{\"device\":\"%s\",\"driver\":%d,\"tunables\":\"%s\",\"M\":%lld,\"N\":%lld,\"K\":%lld,\"launches\":%d,\"entry\":\"%s\","
			"\"rel_l2\":%.3e,\"max_abs\":%.4f,\"nonfinite\":%llu,\"written_past_end\":%llu,\"hot_us\":{\"median\":%.3f,\"p5\":%.3f,\"p95\":%.3f,\"min\":%.3f},"
			"\"cold_us\":{\"median\":%.3f,\"p5\":%.3f,\"p95\":%.3f,\"min\":%.3f},\"hot_tflops\":%.1f,\"cold_tflops\":%.1f,\"nvrtc_ms\":%.1f}\n",
			device_name, driver_version, config, (long long)M, (long long)N, (long long)K, nlaunches, launches[0].entry, c.rel_l2, c.worst,
			(unsigned long long)(c.bad + again.bad), (unsigned long long)(c.past + again.past), hot.median, hot.low, hot.high, hot.best,
			cold.median, cold.low, cold.high, cold.best, tflops / hot.median, tflops / cold.median, im->ms);
		fflush(stdout);
		CU(cuModuleUnload(module));
	}
}

static const char *given[16];
static int ngiven;

static int is_given(const char *key)
{
	for (int i = 0; i < ngiven; i++)
		if (!strcmp(given[i], key))
			return 1;
	return 0;
}

static void sweep(const node *plan, const char *source, int level)
{
	const node *t = tunable(plan, level);
	if (t && is_given(t->key)) {
		sweep(plan, source, level + 1);
		return;
	}
	if (t) {
		for (const node *v = must(t, "values")->child; v; v = v->next) {
			bind(t->key, (int64_t)v->num);
			sweep(plan, source, level + 1);
		}
		return;
	}
	char config[128];
	describe(config, sizeof config, plan);
	if (!allowed(plan))
		return;
	struct image im = build(plan, source);
	CUmodule module;
	CU(cuModuleLoadData(&module, im.cubin));
	prepare(plan, module);
	struct check c = verify();
	struct times hot = measure(0, 5, 40), cold = measure(1, 5, 40);
	printf("%-48s rel L2 %.2e bad %llu  hot %8.2f us  cold %8.2f us  %6.1f TFLOP/s  NVRTC %4.0f ms\n", config, c.rel_l2, (unsigned long long)c.bad,
		hot.median, cold.median, 2e-6 * (double)M * (double)N * (double)K / cold.median, im.ms);
	fflush(stdout);
	CU(cuModuleUnload(module));
	free(im.cubin), free(im.ptx), free(im.log);
}

int main(int argc, char **argv)
{
	const char *dir = ".", *mode = "";
	int64_t shapes[8][3] = {{4096, 4096, 4096}, {8192, 8192, 8192}, {2048, 2048, 2048}, {1000, 1016, 520}, {300, 72, 40}, {333, 517, 129}};
	int nshapes = 0;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-d") && i + 1 < argc)
			dir = argv[++i];
		else if (!strcmp(argv[i], "--shape") && i + 1 < argc && nshapes < 8) {
			long long m, n, k;
			if (sscanf(argv[++i], "%lld,%lld,%lld", &m, &n, &k) != 3)
				die("shape is M,N,K");
			shapes[nshapes][0] = m, shapes[nshapes][1] = n, shapes[nshapes++][2] = k;
		} else if (!strcmp(argv[i], "--reps") && i + 1 < argc) {
			reps = atoi(argv[++i]);
			if (reps < 1 || reps > 1000)
				die("--reps is 1 to 1000");
		} else if (!strcmp(argv[i], "--no-cache"))
			no_cache = 1;
		else if (!strcmp(argv[i], "--sections") || !strcmp(argv[i], "--facts") || !strcmp(argv[i], "--errors") || !strcmp(argv[i], "--sweep"))
			mode = argv[i];
		else if (strchr(argv[i], '=') && ngiven < 16)
			given[ngiven++] = argv[i];
		else {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!nshapes)
		nshapes = 6;

	char *source = read_file(dir, "kernel.cu");
	json_at = read_file(dir, "plan.json");
	node *plan = json_value();
	for (const node *t = must(plan, "tunables")->child; t; t = t->next)
		bind(t->key, (int64_t)must(t, "value")->num);
	for (int i = 0; i < ngiven; i++) {
		char *eq = strchr(given[i], '=');
		*eq = 0;
		bind(given[i], atoll(eq + 1));
	}
	open_compiler();
	if (!strcmp(mode, "--sections")) {
		print_sections(plan, source);
		return 0;
	}
	open_device();
	if (!allowed(plan))
		die("the constraints refuse this configuration");
	int64_t m = 0, n = 0, k = 0;
	for (int i = 0; i < nshapes; i++) {
		m = shapes[i][0] > m ? shapes[i][0] : m;
		n = shapes[i][1] > n ? shapes[i][1] : n;
		k = shapes[i][2] > k ? shapes[i][2] : k;
	}
	reserve(m, n, k);
	M = shapes[0][0], N = shapes[0][1], K = shapes[0][2];
	if (!strcmp(mode, "--sweep")) {
		bind("M", M), bind("N", N), bind("K", K), bind("sm_count", sm_count);
		make_inputs();
		sweep(plan, source, 0);
		return 0;
	}
	struct image im = build(plan, source);
	if (!strcmp(mode, "--facts") || !strcmp(mode, "--errors")) {
		CUmodule module;
		CU(cuModuleLoadData(&module, im.cubin));
		prepare(plan, module);
		if (!strcmp(mode, "--facts"))
			print_facts(plan, module);
		else
			print_errors(module);
		return 0;
	}
	print_times(plan, &im, shapes, nshapes);
	return 0;
}
