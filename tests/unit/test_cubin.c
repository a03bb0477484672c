/*
 * test_cubin.c - modules for a GPU: compiled by real NVRTC where there is a toolkit, read, gated, fitted.
 *
 * Without a toolkit those tests are skipped and say so; the rules on PTX and the reader of broken bytes
 * need none.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_call.h"
#include "cubin.h"
#include "file.h"
#include "image.h"
#include "toolkit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const k_only[] = {"k"};

static void need_toolkit(void)
{
	struct toolkit t;
	struct err e = {0};
	if (!toolkit_find(&t, &e))
		return;
	print_message("skipped: %s\n", e.text);
	skip();
}

static struct box_result compile(struct box_request q)
{
	struct box_result r;
	struct err e = {0};
	q.mode = "cuda";
	q.arch = q.arch ? q.arch : "sm_90a";
	q.source_len = strlen(q.source);
	if (!q.entries) {
		q.entries = k_only;
		q.entry_count = 1;
	}
	if (box_compile(&q, &r, &e))
		fail_msg("%d %s", e.code, e.text);
	return r;
}

static void read_module(const struct box_result *r, struct buf *data, struct cubin *c)
{
	struct err e = {0};
	if (file_read(r->path, 64 << 20, data, &e) || cubin_parse(data->data, data->len, c, &e))
		fail_msg("%s", e.text);
}

/* ---- what passes and what does not ---- */

struct sample {
	const char *name, *code, *source;
};

#define K "__global__ void k"

static const struct sample HONEST[] = {
	{"barrier", "ok", "#include <cuda/barrier>\n" K "(float *z) { __shared__ cuda::barrier<cuda::thread_scope_block> b; "
	 "if (threadIdx.x == 0) init(&b, blockDim.x); __syncthreads(); b.arrive_and_wait(); z[0] = 1; }"},
	{"pipeline", "ok", "#include <cuda/pipeline>\n#include <cooperative_groups.h>\n" K "(float *z, const float *a) {"
	 "__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st; __shared__ float buf[256];"
	 "auto g = cooperative_groups::this_thread_block(); auto p = cuda::make_pipeline(g, &st); p.producer_acquire();"
	 "cuda::memcpy_async(g, buf, a, sizeof buf, p); p.producer_commit(); p.consumer_wait();"
	 "z[threadIdx.x] = buf[threadIdx.x]; p.consumer_release(); }"},
	{"groups", "ok", "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
	 "#include <cooperative_groups/scan.h>\nnamespace cg = cooperative_groups;\n" K "(float *z) {"
	 "auto t = cg::tiled_partition<32>(cg::this_thread_block()); float v = cg::reduce(t, z[threadIdx.x], "
	 "cg::plus<float>()); v += cg::inclusive_scan(t, v); cg::this_grid().sync(); z[threadIdx.x] = v; }"},
	{"cub", "ok", "#include <cub/block/block_reduce.cuh>\n#include <cub/block/block_scan.cuh>\n"
	 "#include <cub/block/block_radix_sort.cuh>\n" K "(int *z) { typedef cub::BlockReduce<int, 128> R;"
	 "typedef cub::BlockScan<int, 128> C; typedef cub::BlockRadixSort<int, 128, 4> Q; __shared__ union {"
	 "R::TempStorage r; C::TempStorage c; Q::TempStorage q; } t; int v = R(t.r).Sum(z[threadIdx.x]);"
	 "__syncthreads(); C(t.c).ExclusiveSum(v, v); __syncthreads(); int x[4] = {v, 1, 2, 3}; Q(t.q).Sort(x);"
	 "z[threadIdx.x] = x[0]; }"},
	{"atomic_ref", "ok", "#include <cuda/atomic>\n" K "(int *z) { cuda::atomic_ref<int, cuda::thread_scope_device> a(*z);"
	 "a.fetch_add(1, cuda::memory_order_relaxed); a.wait(3); }"},
	{"wmma", "ok", "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\nusing namespace nvcuda;\n"
	 K "(const __half *a, float *z) { wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;"
	 "wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y; wmma::fragment<wmma::accumulator, 16, 16, 16,"
	 " float> c; wmma::fill_fragment(c, 0.f); wmma::load_matrix_sync(x, a, 16); wmma::load_matrix_sync(y, a, 16);"
	 "wmma::mma_sync(c, x, y, c); wmma::store_matrix_sync(z, c, 16, wmma::mem_row_major); }"},
	{"cp.async and mma.sync", "ok", K "(const float *a, float *z) { __shared__ float s[32]; unsigned at = (unsigned)"
	 "__cvta_generic_to_shared(s + threadIdx.x); asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" :: \"r\"(at),"
	 " \"l\"(a)); asm volatile(\"cp.async.commit_group;\\n cp.async.wait_group 0;\"); __syncthreads(); float d[4] = {};"
	 "unsigned q = __float_as_uint(s[0]); asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
	 "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};\" : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) :"
	 " \"r\"(q)); z[0] = d[0] + d[3]; }"},
	{"standard headers", "ok", "#include <cstdint>\n#include <stdint.h>\n#include <cmath>\n#include <cfloat>\n"
	 "#include <cassert>\n#include <stdio.h>\n#include <cuda_runtime.h>\n#include <type_traits>\n" K
	 "(float *z) { assert(z); uint32_t u = 3; z[0] = std::sqrt(z[1]) + FLT_MAX + INFINITY + u;"
	 "static_assert(std::is_same<int, int>::value, \"\"); }"},
	{"tables", "ok", "__constant__ float t[16] = {1}; static const int q[4] = {1, 2, 3, 4};\n" K
	 "(float *z, int i) { z[0] = t[i] + q[i & 3] + sinf(z[3]); }"},
	{"tables everywhere", "ok", "static const float q[4] = {1, 2, 3, 4}; __device__ const int d[3] = {1, 2, 3};\n"
	 "__constant__ float c[4] = {5, 6, 7, 8};\n" K "(float *z, int i) { static const float f[4] = {4, 3, 2, 1};"
	 "const float *t = i > 4 ? q : f; z[0] = t[i & 3] + d[i % 3] + c[i & 3] + cosf(z[1]); for (const float *p = q; i-- > 0;)"
	 "z[1] += *p++; }"},
	{"a parameter by its address", "ok", "struct P { int a[32]; };\n" K "(const __grid_constant__ P p, int *z) {"
	 "const int *at = z[0] ? p.a : p.a + 3; z[1] = at[z[2] & 7]; }"},
};

static const struct sample DISHONEST[] = {
	{"clock64", "guard.opcode", K "(long long *z) { *z = clock64(); }"},
	{"globaltimer", "guard.opcode", K "(unsigned long long *z) { asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(*z)); }"},
	{"chrono", "guard.opcode", "#include <cuda/std/chrono>\n" K
	 "(long *z) { *z = cuda::std::chrono::high_resolution_clock::now().time_since_epoch().count(); }"},
	{"a clock in a callback of a wait", "guard.opcode", "#include <cuda/barrier>\n" K "(unsigned long long *z) {"
	 "cuda::std::__cccl_thread_poll_with_backoff([=] { z[0] = cuda::std::chrono::high_resolution_clock::now()"
	 ".time_since_epoch().count(); return true; }); }"},
	{"line information by hand", "guard.opcode", "#include <cuda/barrier>\n" K "(unsigned long long *z) {"
	 "asm volatile(\".loc 2 41 3\\n mov.u64 %0, %%globaltimer;\" : \"=l\"(*z)); }"},
	{"gridid in pieces", "guard.opcode", "#define S(x) #x\n" K "(unsigned long long *z) {"
	 "asm volatile(\"mov.u64 %0, %%gri\" S(did) \";\" : \"=l\"(*z)); }"},
	{"discard", "guard.opcode", K "(float *z) { asm volatile(\"discard.global.L2 [%0], 128;\" :: \"l\"(z)); }"},
	{"discard, unless", "guard.opcode", K "(float *z) { asm volatile(\"{ .reg .pred q; setp.eq.u64 q, %0, 0;\""
	 "\" @!q discard.global.L2 [%0], 128; }\" :: \"l\"(z)); }"},
	{"printf", "guard.undefined_symbol", K "(int *z) { printf(\"%d\", *z); }"},
	{"malloc", "guard.undefined_symbol", K "(int **z) { *z = (int *)malloc(4); }"},
	{"a function of nobody", "compile.error", "extern \"C\" __device__ int f(int);\n" K "(int *z) { *z = f(1); }"},
	{"an entry in assembly", "guard.entry_extra", K "(int *z) { asm volatile(\"ret; } .visible .entry evil() { ret;\"); }"},
	{"a second kernel", "guard.entry_extra", K "(int *z) { *z = 1; } __global__ void other(int *z) { *z = 2; }"},
	{"a constructor", "compile.error", "struct A { int v; __device__ A() { v = 5; } }; __device__ A a;\n" K
	 "(int *z) { *z = a.v++; }"},
	{"a large stash", "guard.module_state", "__device__ int n[20000];\n" K "(int *z, int i) { *z = n[i]++; }"},
	{"a counter", "guard.module_state", "__device__ int n;\n" K "(int *z) { *z = atomicAdd(&n, 1); }"},
	{"a store to a table", "guard.module_state", "__device__ const int n[4] = {1};\n" K "(int *z) { ((volatile int *)n)[*z] = 1; }"},
	{"a store past a constant", "guard.module_state", "__constant__ int n[4];\n" K "(int *z) {"
	 "asm volatile(\"{ .reg .u64 t; mov.u64 t, n; cvta.const.u64 t, t; st.u32 [t], %0; }\" :: \"r\"(*z + n[*z & 3])); }"},
	{"a store past a parameter", "guard.module_state", K "(const __grid_constant__ int p, int *z) {"
	 "((volatile int *)&p)[*z] = 1; }"},
	{"an address as a number", "guard.module_state", "__device__ int n;\n" K "(int *z) { *z = (int)((size_t)&n >> 4); }"},
	{"an address in memory", "guard.module_state", "__device__ int n;\n" K "(int **z) { *z = &n; }"},
	{"an address in shared memory", "guard.module_state", "__device__ int n;\n" K "(int *z) { __shared__ int *p; p = &n;"
	 "__syncthreads(); *(volatile int *)*(int *volatile *)&p = *z; }"},
	{"an address in a table", "guard.module_state", "__device__ int n; __constant__ int *t[2] = {&n, &n};\n" K
	 "(int *z) { *(volatile int *)t[*z & 1] = 3; }"},
	{"an address through a call", "guard.module_state", "__device__ int n;\n"
	 "__device__ __noinline__ void f(int *p, int v) { *(volatile int *)p = v; }\n" K "(int *z) { f(z[1] ? z : &n, *z); }"},
	{"a variable that assembly declares", "guard.module_state", K "(int *z) {"
	 "asm volatile(\"{ .global .u32 a, b; atom.global.add.u32 %0, [b], 1; }\" : \"=r\"(*z)); }"},
	{"an address by its bits", "guard.module_state", "__device__ int n; __device__ const int two[2] = {0, 1};\n" K
	 "(int *z) { *z = two[(size_t)&n >> *z & 1]; }"},
	{"a copy into a variable", "guard.module_state", "__device__ int n[4];\n" K "(int *z) { __shared__ int s[4]; s[0] = *z;"
	 "asm volatile(\"cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;\" :: \"l\"(n),"
	 "\"r\"((unsigned)__cvta_generic_to_shared(s))); }"},
	{"a variable that the host maps", "guard.module_state", "__managed__ int m[4];\n" K "(int *z) { m[0] = *z; *z = m[1]; }"},
	{"memory from the stack", "guard.opcode", K "(int *z) { unsigned long long p;"
	 "asm volatile(\"{ .reg .u64 t; alloca.u64 t, 512, 16; cvta.local.u64 %0, t; }\" : \"=l\"(p)); *z = *(int *)p; }"},
	{"a large table", "guard.constant", "__constant__ int n[5000] = {1};\n" K "(int *z, int i) { *z = n[i]; }"},
};

static void expect(const struct sample *s)
{
	struct box_result r = compile((struct box_request){.source = s->source});
	if (strcmp(r.code, s->code))
		fail_msg("%s: %s instead of %s: %s\n%s", s->name, r.code, s->code, r.message, r.log);
	box_result_free(&r);
}

static void honest_code_passes(void **state)
{
	(void)state;
	need_toolkit();
	for (size_t i = 0; i < sizeof HONEST / sizeof *HONEST; i++)
		expect(&HONEST[i]);
}

static void dishonest_code_does_not(void **state)
{
	(void)state;
	need_toolkit();
	for (size_t i = 0; i < sizeof DISHONEST / sizeof *DISHONEST; i++)
		expect(&DISHONEST[i]);
}

static void our_own_code_is_not_gated(void **state)
{
	(void)state;
	need_toolkit();
	struct box_result r = compile((struct box_request){.source = DISHONEST[0].source, .trusted = 1});
	assert_string_equal(r.code, "ok");
	box_result_free(&r);
}

/* ---- what a module says ---- */

static const char STATE[] = "__device__ int seen; static __device__ int hidden;\n"
			    "template <int N> __global__ void t(int *z) { *z = N + seen + hidden++; }\n"
			    "struct P { int a[5]; };\n"
			    "__global__ void __launch_bounds__(256) k(const float *a, P p, char c, double d) {\n"
			    "__shared__ float s[64]; s[threadIdx.x] = a[0] * d + p.a[c]; seen = (int)s[3]; }\n";

static void facts_are_read(void **state)
{
	static const char *const names[] = {"k", "t<7>"};
	static struct cubin c;
	struct buf data = BUF_INIT;
	(void)state;
	need_toolkit();
	struct box_result r = compile((struct box_request){.source = STATE, .entries = names, .entry_count = 2,
							     .trusted = 1});
	assert_string_equal(r.code, "ok");
	assert_non_null(strstr(r.compiler, "NVRTC"));
	assert_true(hash_is_hex(r.ptx_sha256));
	read_module(&r, &data, &c);
	assert_int_equal(c.sm, 90);
	assert_int_equal(c.nentries, 2);
	const struct cubin_entry *k = cubin_find(&c, "k"), *t = cubin_find(&c, "t<7>");
	assert_non_null(k);
	assert_non_null(t);
	assert_string_equal(t->name, "_Z1tILi7EEvPi"); /* what the driver wants to hear */
	assert_int_equal(k->nparams, 4);
	static const uint32_t sizes[] = {8, 20, 1, 8};
	for (int i = 0; i < 4; i++)
		assert_int_equal(k->param[i].size, sizes[i]);
	assert_int_equal(k->shared, 256);
	assert_int_equal(k->max_threads, 256);
	assert_true(k->regs >= 8 && k->regs <= 64);
	assert_int_equal(c.nglobals, 2);
	assert_int_equal(c.reload, 1); /* `hidden` has no name to reach it by */
	assert_null(cubin_find(&c, "nobody"));
	buf_free(&data);
	box_result_free(&r);
}

/* Library headers bring a thousand variables that no code reads: none of them needs to be put back. */
static void unread_variables_do_not_count(void **state)
{
	static struct cubin c;
	struct buf data = BUF_INIT;
	(void)state;
	need_toolkit();
	struct box_result r = compile((struct box_request){.source = HONEST[3].source});
	read_module(&r, &data, &c);
	assert_int_equal(c.nglobals, 0);
	assert_int_equal(c.reload, 0);
	assert_true(c.global_bytes > 1000);
	buf_free(&data);
	box_result_free(&r);
}

/* A function that calls itself leaves its stack behind, and no record says how much. */
static void calls_are_seen(void **state)
{
	static const char *const source[] = {
		"__device__ __noinline__ int f(int *z, int n) { volatile int a[16]; for (int i = 0; i < 16; i++) a[i] = z[i];"
		"return n > 0 ? f(z, n - 1) + a[n & 15] : a[0]; }\n" K "(int *z) { *z = f(z, *z); }",
		K "(int *z) { *z = 1; }"};
	static struct cubin c;
	(void)state;
	need_toolkit();
	for (int i = 0; i < 2; i++) {
		struct buf data = BUF_INIT;
		struct box_result r = compile((struct box_request){.source = source[i]});
		read_module(&r, &data, &c);
		assert_int_equal(c.calls, i == 0);
		buf_free(&data);
		box_result_free(&r);
	}
}

/* A kernel can write to a constant, by its address. */
static void constants_are_put_back(void **state)
{
	static struct cubin c;
	struct buf data = BUF_INIT;
	(void)state;
	need_toolkit();
	struct box_result r = compile((struct box_request){.source = "__constant__ float t[16] = {1};\n" K
							   "(float *z, int i) { z[0] = t[i]; }"});
	read_module(&r, &data, &c);
	assert_int_equal(c.nglobals, 1);
	assert_string_equal(c.global[0].name, "t");
	assert_int_equal(c.global[0].bytes, 64);
	assert_int_equal(c.const_bytes, 64);
	buf_free(&data);
	box_result_free(&r);
}

/* A variable that the list has no room for is still known to be there. */
static void long_names_do_not_hide(void **state)
{
	static struct cubin c;
	struct buf data = BUF_INIT, source = BUF_INIT;
	(void)state;
	need_toolkit();
	buf_adds(&source, "__device__ int n");
	for (int i = 0; i < 300; i++)
		buf_addc(&source, 'x');
	char *name = xstrdup(buf_str(&source) + strlen("__device__ int "));
	buf_addf(&source, ";\n" K "(int *z) { *z = %s++; }", name);
	struct box_result r = compile((struct box_request){.source = buf_str(&source), .trusted = 1});
	assert_string_equal(r.code, "ok");
	read_module(&r, &data, &c);
	assert_int_equal(c.hidden, 1);
	assert_int_equal(c.reload, 1);
	box_result_free(&r);
	/* and a kernel of such a name is refused, not an error of ours */
	buf_clear(&source);
	buf_addf(&source, "__global__ void %s(int *z) { *z = 1; }\n" K "(int *z) { *z = 2; }", name);
	r = compile((struct box_request){.source = buf_str(&source)});
	assert_string_equal(r.code, "guard.limits");
	box_result_free(&r);
	free(name);
	buf_free(&data);
	buf_free(&source);
}

static void same_text_same_bytes(void **state)
{
	(void)state;
	need_toolkit();
	struct box_request q = {.source = HONEST[0].source, .no_cache = 1};
	struct box_result a = compile(q), b = compile(q);
	assert_false(a.cached || b.cached);
	assert_string_equal(a.sha256, b.sha256);
	assert_string_equal(a.ptx_sha256, b.ptx_sha256);
	q.no_cache = 0;
	struct box_result c = compile(q);
	assert_true(c.cached);
	assert_string_equal(a.sha256, c.sha256);
	assert_string_equal(a.ptx_sha256, c.ptx_sha256);
	/* no path of this machine is in either */
	struct buf text = BUF_INIT;
	struct err e;
	assert_int_equal(file_read(c.ptx, 64 << 20, &text, &e), 0);
	assert_null(strstr(buf_str(&text), "/usr"));
	buf_clear(&text);
	assert_int_equal(file_read(c.path, 64 << 20, &text, &e), 0);
	assert_null(memmem(text.data, text.len, "/usr", 4));
	buf_free(&text);
	box_result_free(&a);
	box_result_free(&b);
	box_result_free(&c);
}

static int ptx_has(struct plan_compile k, const char *word)
{
	struct buf text = BUF_INIT;
	struct err e;
	struct box_result r = compile((struct box_request){
		.source = K "(float *z) { z[0] = z[1] / z[2] + z[3] * z[4] + sqrtf(z[5]); }", .knobs = &k});
	assert_string_equal(r.code, "ok");
	assert_int_equal(file_read(r.ptx, 64 << 20, &text, &e), 0);
	int has = strstr(buf_str(&text), word) != NULL;
	buf_free(&text);
	box_result_free(&r);
	return has;
}

static void knobs_act(void **state)
{
	const struct plan_compile d = {.ftz = -1, .prec_div = -1, .prec_sqrt = -1, .fmad = 1, .opt_level = 3, .std = 17};
	struct plan_compile k = d;
	(void)state;
	need_toolkit();
	assert_true(ptx_has(d, "div.rn.f32") && ptx_has(d, "sqrt.rn.f32") && ptx_has(d, "fma.rn.f32"));
	k.fast_math = 1;
	assert_true(ptx_has(k, "sqrt.approx.ftz.f32"));
	k.ftz = 0;
	assert_true(ptx_has(k, "sqrt.approx.f32"));
	k = d;
	k.prec_div = 0;
	assert_true(ptx_has(k, "div.full.f32"));
	k = d;
	k.fmad = 0;
	assert_false(ptx_has(k, "fma.rn.f32"));
	k = d;
	k.std = 20;
	k.max_registers = 32;
	k.opt_level = 1;
	assert_true(ptx_has(k, "div.rn.f32"));
}

static void errors_are_told_without_paths(void **state)
{
	(void)state;
	need_toolkit();
	struct box_result r = compile((struct box_request){.source = "#include <cuda_fp16.h>\n" K "(int *z) { *z = nosuch; __half2float(z); }"});
	assert_string_equal(r.code, "compile.error");
	assert_non_null(strstr(r.log, "nosuch"));
	assert_null(strstr(r.log, "/usr"));
	box_result_free(&r);
	/* nothing but the toolkit can be read */
	r = compile((struct box_request){.source = "#include \"/etc/passwd\"\n" K "(int *z) { *z = 1; }"});
	assert_string_equal(r.code, "compile.error");
	assert_null(strstr(r.log, "root:"));
	box_result_free(&r);
}

static int has(const char *path, const char *word)
{
	struct buf b = BUF_INIT;
	struct err e = {0};
	int found = path[0] && file_read(path, 64 << 20, &b, &e) == 0 && memmem(b.data, b.len, word, strlen(word)) != NULL;
	buf_free(&b);
	return found;
}

/* Neither a file of ours nor of the system reaches module, PTX or log (threats.md P01, P02, X03). */
static void nothing_leaks(void **state)
{
	static const char *const lines[] = {
		"#include \"%s\"\n", "#include <%s>\n", "#define F \"%s\"\n#include F\n", "#inc\\\nlude \"%s\"\n",
		"#include_next \"%s\"\n", "#include \"../../../../../..%s\"\n", "#import \"%s\"\n",
		"__device__ const unsigned char x[] = {\n#embed \"%s\"\n};\n",
		"#if __has_include(\"%s\")\n#error it is there\n#else\n#error it is not\n#endif\n",
		"#pragma push_macro(\"%s\")\n#error stop\n", "__global__ void h() { asm(\".include \\\"%s\\\";\"); }\n",
		"__global__ void h() { asm(\".file 1 \\\"%s\\\"\"); }\n#error stop\n", "#line 1 \"%s\"\n#error stop\n",
		"#pragma nv_include \"%s\"\n#error stop\n",
	};
	char path[] = "/tmp/cubin-secret.XXXXXX", source[4096], env[64];
	(void)state;
	need_toolkit();
	int fd = mkstemp(path);
	assert_true(fd >= 0 && fchmod(fd, 0644) == 0 && write(fd, "int xyzzy77 = 42;\n", 18) == 18);
	close(fd);
	snprintf(env, sizeof env, "/proc/%d/environ", (int)getpid());
	const char *files[] = {path, "/proc/self/environ", env};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		for (size_t k = 0; k < (i ? 1 : sizeof files / sizeof *files); k++) {
			size_t n = (size_t)snprintf(source, sizeof source, lines[i], files[k]);
			snprintf(source + n, sizeof source - n, K "(int *z) { *z = 1; }");
			struct box_result r = compile((struct box_request){.source = source});
			if (r.ok || strstr(r.log, "xyzzy77") || strstr(r.log, "PATH=") || strstr(r.log, "it is there") ||
			    has(r.path, "xyzzy77") || has(r.ptx, "xyzzy77"))
				fail_msg("%s: %s\n%s", r.code, source, r.log);
			box_result_free(&r);
		}
	unlink(path);
}

static void bombs_end(void **state)
{
	(void)state;
	need_toolkit();
	const char *bomb = "template <int N, int M> struct X { static const int v = X<N - 1, 2 * M>::v + X<N - 1, 2 * M + 1>::v; };\n"
			   "template <int M> struct X<0, M> { static const int v = M; };\n" K "(int *z) { *z = X<27, 0>::v; }";
	struct box_result r = compile((struct box_request){.source = bomb, .wall_s = 4});
	if (strcmp(r.code, "compile.timeout") && strcmp(r.code, "compile.limit"))
		fail_msg("%s: %s", r.code, r.log);
	box_result_free(&r);
}

/* ---- fit ---- */

static void arguments_are_compared(void **state)
{
	static struct cubin c;
	char text[256] = "";
	(void)state;
	c.nentries = 1;
	snprintf(c.entry[0].name, sizeof c.entry[0].name, "k");
	c.entry[0].nparams = 2;
	c.entry[0].param[0].size = 8;
	c.entry[0].param[1].size = 8;
	struct launch_arg arg[2] = {{.kind = ARG_BUFFER}, {.kind = ARG_BYTES, .n = 4}};
	struct launch l = {.entry = "k", .nargs = 2, .arg = arg, .block = {1, 1, 1}};
	const struct launches all = {.n = 1, .launch = &l};
	assert_int_equal(cubin_args(&c, &all, text), 1);
	assert_non_null(strstr(text, "parameter 1 of 'k' has 8 bytes, the plan gives 4"));
	arg[1].n = 8;
	assert_int_equal(cubin_args(&c, &all, text), 0);
	l.nargs = 1;
	assert_int_equal(cubin_args(&c, &all, text), 1);
	l.nargs = 2;
	c.entry[0].max_threads = 128;
	l.block[0] = 256;
	assert_int_equal(cubin_args(&c, &all, text), 1);
}

/* An H200: figures of cuOccupancyMaxActiveBlocksPerMultiprocessor for a kernel of that many registers. */
static void occupancy_counts_registers(void **state)
{
	static struct cubin c;
	static const struct {
		int64_t regs, fixed, threads, shared, blocks;
	} want[] = {
		/* the first ones as the driver said (tests/gpu/truth/evidence-h200.txt) */
		{168, 64, 384, 230400, 1}, {20, 0, 256, 0, 8}, {20, 0, 256, 49152, 4}, {20, 0, 256, 231424, 1},
		{20, 0, 256, 232448, 1}, {20, 0, 256, 233472, 0}, {31, 2176, 256, 0, 8},
		{32, 0, 1024, 0, 2}, {33, 0, 1024, 0, 1}, {64, 0, 256, 0, 4}, {65, 0, 256, 0, 3},
		{128, 0, 128, 0, 4}, {255, 0, 128, 0, 2}, {16, 0, 32, 0, 32}, {16, 0, 64, 100000, 2},
	};
	struct facts f = {.class = DEVICE_CUDA, .sm_count = 132, .max_shared = 232448, .max_shared_sm = 233472,
			  .shared_reserved = 1024, .max_threads = 1024, .max_threads_sm = 2048, .max_blocks_sm = 32,
			  .max_registers = 255, .max_registers_sm = 65536, .warp_size = 32};
	struct err e = {0};
	(void)state;
	c.nentries = 1;
	snprintf(c.entry[0].name, sizeof c.entry[0].name, "k");
	cubin_facts(&c, &f);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		int64_t blocks = -1;
		c.entry[0].regs = want[i].regs;
		c.entry[0].shared = want[i].fixed;
		assert_int_equal(facts_occupancy(&f, "k", want[i].threads, want[i].shared, &blocks, &e), 0);
		if (blocks != want[i].blocks)
			fail_msg("case %zu: %lld instead of %lld", i, (long long)blocks, (long long)want[i].blocks);
	}
}

/* ---- rules on PTX, and broken bytes ---- */

static int gate(const char *ptx, const char *code)
{
	char got[48] = "ok", text[256] = "";
	ptx_gate(ptx, strlen(ptx), k_only, 1, got, text);
	if (strcmp(got, code))
		print_message("%s (%s) instead of %s: %s\n", got, text, code, ptx);
	return !strcmp(got, code);
}

static void ptx_rules(void **state)
{
	(void)state;
	assert_true(gate(".visible .entry k(.param .u64 a) { ret; }", "ok"));
	assert_true(gate(".entry other() { ret; }", "guard.entry_extra"));
	assert_true(gate(".extern .shared .align 16 .b8 s[];", "ok"));
	assert_true(gate(".extern .func (.param .b32 r) vprintf (.param .b64 a);", "guard.undefined_symbol"));
	assert_true(gate("{ @%p1 discard.global.L2 [%rd1], 128; }", "guard.opcode"));
	assert_true(gate("{ @p discard.global.L2 [%rd1], 128; }", "guard.opcode"));
	assert_true(gate("{ @!%p1 discard.global.L2 [%rd1], 128; }", "guard.opcode"));
	assert_true(gate("{ @!p discard.global.L2 [%rd1], 128; }", "guard.opcode"));
	assert_true(gate("{ @ ! p discard.global.L2 [%rd1], 128; }", "guard.opcode"));
	assert_true(gate("{ @!%p1 bra discard; }", "ok")); /* a label */
	assert_true(gate("{ mov.u32 %discard, discard; }", "ok")); /* a name, no instruction */
	assert_true(gate("{ mov.u64 %rd1, %gridid; }", "guard.opcode"));
	assert_true(gate("{ alloca.u64 %rd1, 512, 16; }", "guard.opcode"));
	/* an address may be moved, offset and read from */
#define G ".global .u32 n; .visible .entry k(.param .u64 a) { .reg .u64 t, u; "
	assert_true(gate(G "mov.u64 t, n; add.s64 t, t, u; @!u ld.global.u32 %r1, [t+4]; st.global.u32 [u], %r1; }", "ok"));
	assert_true(gate(G "mov.u64 t, n; x: { mad.wide.u32 u, %r1, 4, t; } ld.global.v2.u32 {%r1, %r2}, [u]; }", "ok"));
	assert_true(gate(G "st.global.u32 [u], 1; add.s64 u, t, 4; mov.u64 t, n; }", "guard.module_state"));
	assert_true(gate(G "st.global.u32 [n], 1; }", "guard.module_state"));
	assert_true(gate(G "x: st.global.u32 [n+4], 1; }", "guard.module_state"));
	assert_true(gate(G "@%p1 red.global.add.u32 [n], 1; }", "guard.module_state"));
	assert_true(gate(G "add.s64 t, n, n; }", "guard.module_state"));
	assert_true(gate(G "sub.s64 t, u, n; }", "guard.module_state"));
	assert_true(gate(G "mov.b64 {%r1, %r2}, n; }", "guard.module_state"));
	assert_true(gate(G "mov.u64 t, n; setp.gt.u64 %p1, t, u; }", "guard.module_state"));
	assert_true(gate(G "ld.shared.u32 %r1, [n]; }", "guard.module_state"));
	assert_true(gate(G "mov.u64 t, a; cvta.param.u64 t, t; st.u32 [t], 1; }", "guard.module_state"));
	assert_true(gate(G "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [a, {%r1}], [%r2]; }", "ok"));
	assert_true(gate(G "cp.async.ca.shared.global [n], [u], 4; }", "guard.module_state"));
	assert_true(gate(G "cp.async.ca.shared.global [%r1], [n], 4; }", "ok"));
	assert_true(gate(".visible .entry k() { .visible.global .u32 m; st.u32 [m], 1; }", "guard.module_state"));
	assert_true(gate(".visible .entry k() { x:.global .u32 l, m; st.u32 [m], 1; }", "guard.module_state"));
	assert_true(gate(".const .u64 p[2] = {generic(n), 0};", "guard.module_state"));
	assert_true(gate(".const .f32 p[2] = {0f3F800000, -1.0}; " G "}", "ok"));
#undef G
	assert_true(gate(".visible .global .attribute(.managed) .align 4 .u32 m;", "guard.module_state"));
	assert_true(gate("{ mov.u64 %rd1, %/**/gridid; }", "ok")); /* no such register: ptxas refuses it */
	assert_true(gate("{ // mov.u64 %rd1, %gridid;\n /* %pm0 */ }", "ok"));
	assert_true(gate("{ mov.u32 %r1, %pm3; }", "guard.opcode"));
	assert_true(gate(" .loc 1 2 3", "guard.opcode"));
	assert_int_equal(ptx_clocks("mov.u64 %rd1, %clock64; // %clock", 33), 1);
}

static void broken_bytes_are_refused(void **state)
{
	static struct cubin c;
	struct buf data = BUF_INIT;
	(void)state;
	need_toolkit();
	struct box_result r = compile((struct box_request){.source = HONEST[8].source});
	read_module(&r, &data, &c);
	struct err e;
	size_t note = 16 + (uint8_t)data.data[data.len - 8] + 256 * (size_t)(uint8_t)data.data[data.len - 7];
	assert_true(note < data.len);
	for (size_t n = 0; n < data.len - note; n += n < 4096 ? 1 : 97) {
		uint8_t *part = xmalloc(n + 1);
		memcpy(part, data.data, n);
		int rc = cubin_parse(part, n, &c, &e);
		assert_true(rc == -1 || n + 1024 > data.len - note); /* only the program headers come after the sections */
		free(part);
	}
	for (size_t i = 0; i < data.len; i++) {
		data.data[i] = (char)(data.data[i] ^ 0xff);
		cubin_parse(data.data, data.len, &c, &e); /* whatever it says, it ends */
		data.data[i] = (char)(data.data[i] ^ 0xff);
	}
	buf_free(&data);
	box_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_code_passes),
		cmocka_unit_test(dishonest_code_does_not),
		cmocka_unit_test(our_own_code_is_not_gated),
		cmocka_unit_test(facts_are_read),
		cmocka_unit_test(unread_variables_do_not_count),
		cmocka_unit_test(calls_are_seen),
		cmocka_unit_test(constants_are_put_back),
		cmocka_unit_test(long_names_do_not_hide),
		cmocka_unit_test(same_text_same_bytes),
		cmocka_unit_test(knobs_act),
		cmocka_unit_test(errors_are_told_without_paths),
		cmocka_unit_test(nothing_leaks),
		cmocka_unit_test(bombs_end),
		cmocka_unit_test(arguments_are_compared),
		cmocka_unit_test(occupancy_counts_registers),
		cmocka_unit_test(ptx_rules),
		cmocka_unit_test(broken_bytes_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
