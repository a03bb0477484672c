/* The exact compile and link commands of the emu device, as argv arrays.
 *
 * SPDX-License-Identifier: MIT
 *
 * Three modes: fast (timing and judging), sanitize (bounds, undefined behaviour), race. All
 * are static, fixed-address executables without any library of their own at run time.
 * The box does, in order, with a private empty directory as working directory:
 *     1. write the wrapper (emu_plan_wrapper) as wrapper.cu.cc
 *     2. run emu_plan_compile: wrapper.cu.cc -> kernel.o
 *     3. run `elfscan --patch kernel.o`, keep the JSON (in fast mode guard gates on it)
 *     4. run emu_plan_link: kernel.o + runtime of the same mode -> image
 * The runtime of a mode is built once: emu_plan_runtime for each of its sources.
 * argv arrays end with NULL; strings are borrowed, nothing is allocated. A plan that does not
 * fit returns 0, else the number of arguments.
 */
#ifndef EMU_BUILD_PLAN_H
#define EMU_BUILD_PLAN_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum emu_mode { EMU_MODE_FAST, EMU_MODE_SANITIZE, EMU_MODE_RACE, EMU_MODES };
enum { EMU_PLAN_MAX = 96 };

struct emu_plan {
	const char *cxx; /* "g++" */
	const char *cc;	 /* "gcc" */
	enum emu_mode mode;
	const char *march;	    /* NULL: EMU_PLAN_MARCH; never "native" */
	int fast_math;		    /* the plan's compile knob */
	const char *include_dir;    /* stages/emu/include */
	const char *extra_include;  /* declared header tree of the spec, or NULL */
	const char *const *defines; /* "-DNAME=VALUE" of the tunables, NULL-terminated, or NULL */
	const char *runtime_dir;    /* where the mode's runtime objects lie */
	const char *source, *object, *image;
};

/* SSE4.2 level: every x86-64 machine since 2009 gives the same bits. aarch64: the baseline. */
#if defined(__x86_64__)
#define EMU_PLAN_MARCH "-march=x86-64-v2"
#else
#define EMU_PLAN_MARCH "-march=armv8-a"
#endif

static const char *const emu_mode_names[EMU_MODES] = {"fast", "sanitize", "race"};

static const char *const emu_runtime_common[] = {"main",  "script", "sched",  "block",	"shared",
						 "warp",  "stack",  "switch", "report", "lines",
						 "print", "tick",   "wipe",   NULL};
static const char *const emu_runtime_mode[EMU_MODES][4] = {
    {"nohooks", NULL}, {"check", "ubsan", NULL}, {"race", NULL}};

static inline int emu_plan_add(const char **argv, int n, const char *const *list)
{
	for (; *list; list++) {
		if (n < 0 || n + 1 >= EMU_PLAN_MAX)
			return -1;
		argv[n++] = *list;
	}
	return n;
}

static inline int emu_plan_end(const char **argv, int n)
{
	if (n < 0)
		return 0;
	argv[n] = NULL;
	return n;
}

/* wrapper.cu.cc -> kernel.o */
static inline int emu_plan_compile(const struct emu_plan *p, const char **argv)
{
	static const char *const common[] = {"-std=c++17",
					     "-nostdinc",
					     "-nostdinc++",
					     "-fno-exceptions",
					     "-fno-rtti",
					     "-fno-pie",
					     "-ftls-model=local-exec",
					     "-fno-extern-tls-init",
					     "-fno-threadsafe-statics",
					     "-fno-math-errno",
					     "-fno-trapping-math",
					     "-fno-stack-protector",
					     "-fno-asynchronous-unwind-tables",
					     "-fno-strict-aliasing",
					     "-fcf-protection=none",
					     "-fno-lto",
					     "-g1",
					     "-gdwarf-4",
					     "-gno-as-locview-support",
					     "-fno-diagnostics-color",
					     "-fmax-errors=20",
					     "-w",
					     NULL};
	static const char *const common_arm[] = {"-std=c++17",
						 "-nostdinc",
						 "-nostdinc++",
						 "-fno-exceptions",
						 "-fno-rtti",
						 "-fno-pie",
						 "-ftls-model=local-exec",
						 "-fno-extern-tls-init",
						 "-fno-threadsafe-statics",
						 "-fno-math-errno",
						 "-fno-trapping-math",
						 "-fno-stack-protector",
						 "-fno-asynchronous-unwind-tables",
						 "-fno-strict-aliasing",
						 "-fsigned-char",
						 "-fno-lto",
						 "-g1",
						 "-gdwarf-4",
						 "-gno-as-locview-support",
						 "-fno-diagnostics-color",
						 "-fmax-errors=20",
						 "-w",
						 NULL};
	/* GCC 12 at -O1 and above turns `c ? as_float(as_uint(s) & 0xffff0000u) : s` (a truncation
	 * to bfloat16 under a condition) into s when the temporary is expanded in place. */
	static const char *const fast[] = {"-O2", "-fno-tree-ter", NULL};
	/* every access becomes a call to our own check.c, undefined behaviour one to ubsan.c */
	static const char *const sanitize[] = {"-O1",
					       "-fno-tree-ter",
					       "-fsanitize=kernel-address,undefined",
					       "-fno-sanitize=vptr,return",
					       "--param=asan-instrumentation-with-call-threshold=0",
					       "--param=asan-globals=0",
					       "--param=asan-stack=1",
					       "-fasan-shadow-offset=0x1000000000",
					       "-fno-sanitize-address-use-after-scope",
					       "-ftrivial-auto-var-init=pattern",
					       NULL};
	static const char *const race[] = {"-Og",
					   "-fno-tree-ter",
					   "-fsanitize=thread",
					   "--param=tsan-distinguish-volatile=1",
					   "--param=tsan-instrument-func-entry-exit=0",
					   NULL};
	static const char *const exact[] = {"-ffp-contract=off", NULL};
	static const char *const loose[] = {"-ffp-contract=fast", "-fno-signed-zeros",
					    "-freciprocal-math", "-fassociative-math", NULL};
	const char *first[] = {p->cxx, p->march ? p->march : EMU_PLAN_MARCH, NULL};
	const char *last[] = {"-isystem", p->include_dir, "-c", "-o", p->object, p->source, NULL};
	const char *extra[] = {"-isystem", p->extra_include, NULL};
	int n = emu_plan_add(argv, 0, first);
#if defined(__x86_64__)
	n = emu_plan_add(argv, n, common);
	(void)common_arm;
#else
	n = emu_plan_add(argv, n, common_arm);
	(void)common;
#endif
	n = emu_plan_add(argv, n,
			 p->mode == EMU_MODE_FAST	? fast
			 : p->mode == EMU_MODE_SANITIZE ? sanitize
							: race);
	n = emu_plan_add(argv, n, p->fast_math ? loose : exact);
	if (p->defines)
		n = emu_plan_add(argv, n, p->defines);
	if (p->extra_include)
		n = emu_plan_add(argv, n, extra);
	return emu_plan_end(argv, emu_plan_add(argv, n, last));
}

/* kernel.o (patched) -> image. `paths` holds the names that argv points to. */
static inline int emu_plan_link(const struct emu_plan *p, const char **argv, char paths[][512],
				size_t n_paths)
{
	const char *first[] = {p->cc,
			       "-static",
			       "-no-pie",
			       "-Wl,-z,noexecstack",
			       "-Wl,-z,relro",
			       "-Wl,--build-id=none",
			       "-o",
			       p->image,
			       NULL};
	int n = emu_plan_add(argv, 0, first);
	size_t k = 0;
	const char *one[2] = {NULL, NULL};
	const char *const *lists[2] = {emu_runtime_common, emu_runtime_mode[p->mode]};
	if (n_paths < 20)
		return 0;
	/* the order is the layout of the thread-local block: begin, candidate, end */
	snprintf(paths[k], 512, "%s/tls_begin.o", p->runtime_dir);
	one[0] = paths[k++];
	n = emu_plan_add(argv, n, one);
	one[0] = p->object;
	n = emu_plan_add(argv, n, one);
	snprintf(paths[k], 512, "%s/tls_end.o", p->runtime_dir);
	one[0] = paths[k++];
	n = emu_plan_add(argv, n, one);
	for (int l = 0; l < 2; l++)
		for (const char *const *s = lists[l]; *s && k < n_paths; s++) {
			snprintf(paths[k], 512, "%s/%s.o", p->runtime_dir, *s);
			one[0] = paths[k++];
			n = emu_plan_add(argv, n, one);
		}
	one[0] = "-lm";
	return emu_plan_end(argv, emu_plan_add(argv, n, one));
}

/* one source of the runtime -> object; `object` and `source` of the plan name them */
static inline int emu_plan_runtime(const struct emu_plan *p, const char **argv)
{
	static const char *const flags[] = {"-std=gnu11",
					    "-D_GNU_SOURCE",
					    "-O2",
					    "-fno-pie",
					    "-ftls-model=local-exec",
					    "-fno-stack-protector",
					    "-Wall",
					    "-Wextra",
					    "-Wshadow",
					    "-Wconversion",
					    "-c",
					    NULL};
	static const char *const check[] = {"-DEMU_CHECK", NULL};
	const char *first[] = {p->cc, NULL};
	const char *last[] = {"-o", p->object, p->source, NULL};
	int n = emu_plan_add(argv, emu_plan_add(argv, 0, first), flags);
	if (p->mode != EMU_MODE_FAST)
		n = emu_plan_add(argv, n, check);
	return emu_plan_end(argv, emu_plan_add(argv, n, last));
}

/* Writes the translation unit: prefix, the candidate's text, entries, suffix. Entries are C++
 * names of __global__ functions, template arguments included. Returns 0, or -1. */
static inline int emu_plan_wrapper(FILE *out, const char *text, size_t bytes,
				   const char *const *entries, size_t n)
{
	fputs("#include \"emu_prefix.h\"\n#line 1 \"kernel.cu\"\n", out);
	fwrite(text, 1, bytes, out);
	fputs("\n#define EMU_ENTRIES", out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, " EMU_ENTRY(%s)", entries[i]);
	fputs("\n#include \"emu_suffix.h\"\n", out);
	return ferror(out) ? -1 : 0;
}

#endif
