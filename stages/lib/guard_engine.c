/*
 * guard_engine.c - see guard_engine.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "guard_engine.h"

#include "defence.h"
#include "duplicate.h"
#include "engine_files.h"
#include "engine_problem.h"
#include "facts.h"
#include "gpu.h"
#include "file.h"
#include "lexer.h"
#include "reason.h"
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PROGRAM_MOST = 64 << 20 };

struct guarding {
	struct stage *s;
	struct engine_spec *spec;
	struct engine_files f;
	struct engine_built built;
	struct buf log;
	int closed;
};

static int reject(struct guarding *g, const char *code, const char *file, int line, const char *message)
{
	char where[96] = "";
	if (file && line > 0)
		snprintf(where, sizeof where, "%.64s:%d: ", file, line);
	else if (file)
		snprintf(where, sizeof where, "%.64s: ", file);
	g->closed = 1;
	verdict_set(&g->s->v, V_REJECT, code, "%s%s", where, message);
	buf_addf(&g->log, "FAIL %s\n%s%s\n", code, where, message);
	return 0;
}

/* An include of the candidate's own: engine_protocol.h, or a header of kernels/. */
static int own_header(struct guarding *g, const char *name, size_t len)
{
	char text[ENGINE_FILE_NAME + 16];
	if (len == strlen("engine_protocol.h") && !memcmp(name, "engine_protocol.h", len))
		return 1;
	if (len >= ENGINE_FILE_NAME)
		return 0;
	snprintf(text, sizeof text, "%.*s", (int)len, name);
	if (engine_files_find(&g->f, text))
		return 1;
	snprintf(text, sizeof text, "kernels/%.*s", (int)len, name);
	return engine_files_find(&g->f, text) != NULL;
}

/* <stdio.h>, <sys/mman.h>, <immintrin.h>: letters, digits, _ - and /, no way up or out; in CUDA also <vector>, <cuda/barrier>. */
static int system_header(const char *name, size_t len, int cuda)
{
	static const char *const never[] = {"dlfcn.h", "sys/socket.h", "sys/ptrace.h", "netinet/in.h", "netdb.h", "spawn.h",
					    "sys/syscall.h", "syscall.h", "linux/seccomp.h", NULL};
	const size_t tail = len >= 3 && memcmp(name + len - 2, ".h", 2) == 0		    ? 2
			    : cuda && len >= 5 && memcmp(name + len - 4, ".cuh", 4) == 0 ? 4 : 0;
	if (len < 3 || name[0] == '/' || (!tail && !cuda))
		return 0;
	for (size_t i = 0; i < len - tail; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/+", name[i]))
			return 0;
	for (int i = 0; never[i]; i++)
		if (strlen(never[i]) == len && !memcmp(never[i], name, len))
			return 0;
	return 1;
}

static int check_include(struct guarding *g, const char *file, const struct lex_token *t)
{
	const size_t n = t->len > 2 ? t->len - 2 : 0;
	const int ok = t->text[0] == '<' ? system_header(t->text + 1, n, g->spec->cuda) : own_header(g, t->text + 1, n);
	return ok || !DEFENCE("guard.include") ? 0 : reject(g, "guard.include", file, t->line,
		"a header that is neither of C's own <...> nor one of the candidate's own \"...\"");
}

/* What an engine has no use for, and could not do where it runs. */
static const char *const CALLS[] = {
	"fork", "vfork", "clone", "execve", "execv", "execl", "execvp", "execlp", "execle", "fexecve", "posix_spawn", "system",
	"popen", "socket", "connect", "bind", "listen", "accept", "ptrace", "process_vm_readv", "process_vm_writev", "dlopen",
	"dlsym", "syscall", "kill", "setsid", "prctl", "constructor", "destructor", "ifunc", NULL,
};

static int check_name(struct guarding *g, const char *file, const struct lex_token *t)
{
	char text[160];
	for (int i = 0; CALLS[i]; i++) {
		if (!lex_is(t, CALLS[i]) || !DEFENCE("guard.reserved"))
			continue;
		snprintf(text, sizeof text, "'%s' is nothing an engine may use: no other process, no network, no code before main",
			 CALLS[i]);
		return reject(g, "guard.reserved", file, t->line, text);
	}
	/* PTX of its own is what tensor cores are for; the wall is where it runs. */
	if (!g->spec->cuda && (lex_is(t, "asm") || lex_is(t, "__asm__") || lex_is(t, "__asm")) && DEFENCE("guard.asm"))
		return reject(g, "guard.asm", file, t->line, "inline assembly: use intrinsics");
	return 0;
}

static void check_tokens(struct guarding *g, const char *file, const struct buf *text)
{
	struct lexer *x = lex_open(buf_str(text), text->len, 0);
	struct lex_token t, before = {0};
	int line = 0;
	while (!g->closed && lex_next(x, &t)) {
		if (t.kind == LEX_HEADER)
			check_include(g, file, &t);
		else if (t.kind == LEX_NAME)
			check_name(g, file, &t);
		if (t.directive == 1 && before.directive == 2 && lex_is(&t, "embed") && DEFENCE("guard.directive"))
			reject(g, "guard.directive", file, t.line, "#embed");
		/* a computed include names no header here */
		if (before.directive && (lex_is(&before, "include") || lex_is(&before, "include_next")) && t.kind != LEX_HEADER &&
		    DEFENCE("guard.directive"))
			reject(g, "guard.directive", file, t.line, "an #include whose header is made by macros");
		before = t;
	}
	if (!g->closed && lex_odd(x, &line) && DEFENCE("guard.lexical"))
		reject(g, "guard.lexical", file, line, "text that compilers read in different ways");
	lex_close(x);
}

static void check_text(struct guarding *g)
{
	int64_t all = 0;
	if (g->f.n > g->spec->files) {
		reject(g, "guard.size", NULL, 0, "more files than the problem allows");
		return;
	}
	for (int i = 0; i < g->f.n && !g->closed; i++) {
		const struct engine_file *x = &g->f.file[i];
		struct source_finding f = {0};
		all += (int64_t)x->text.len;
		if (source_ascii(x->name, buf_str(&x->text), x->text.len, (size_t)g->spec->source_bytes, &f) ||
		    source_credential(x->name, buf_str(&x->text), x->text.len, &f))
			reject(g, f.code, NULL, 0, f.message);
		else
			check_tokens(g, x->name, &x->text);
	}
	if (!g->closed && all > g->spec->source_bytes)
		reject(g, "guard.size", NULL, 0, "all files together are larger than the problem allows");
	if (!g->closed)
		buf_adds(&g->log, "ok   files, alphabet, sizes, no credentials, source rules\n");
}

static int check_tried(struct guarding *g, struct err *e)
{
	const char *code;
	char text[160];
	const int found = duplicate_find_sha(g->s, g->f.sha, &code, text, e);
	if (found > 0 && DEFENCE("guard.duplicate"))
		return reject(g, code, NULL, 0, text);
	return found < 0 ? -1 : 0;
}

static int compile(struct guarding *g, struct err *e)
{
	struct buf program = BUF_INIT;
	char file[64], dir[TRIAL_PATH];
	const char *at = stage_candidate_dir(g->s);
	snprintf(file, sizeof file, "%s/artefact", at);
	trial_path(dir, g->s->id, file);
	if (dir_make(dir, e))
		return -1;
	if (device_class_of(g->s->trial.device) == DEVICE_SIM) {
		buf_addf(&program, "simulated: nothing was compiled\ncandidate %s\n", g->f.sha);
		snprintf(file, sizeof file, "%s/artefact/sim", at);
	} else {
		struct gpu gpu;
		if ((g->spec->cuda && gpu_of_run(&g->s->run, &gpu, e)) ||
		    engine_build(g->f.file, g->f.n, g->spec->cuda ? gpu.arch : NULL, &g->built, e))
			return -1;
		if (g->built.log.len)
			buf_addf(&g->log, "\n%s\n", buf_str(&g->built.log));
		if (!g->built.ok)
			return reject(g, reason_find(g->built.code) ? g->built.code : "compile.error", NULL, 0, g->built.message);
		if (file_read(g->built.path, PROGRAM_MOST, &program, e))
			return -1;
		snprintf(file, sizeof file, "%s/artefact/engine", at);
	}
	int rc = stage_side(g->s, file, buf_str(&program), program.len, e);
	trial_path(dir, g->s->id, file);
	if (rc == 0 && g->built.ok && chmod(dir, 0755))
		rc = err_sys(e, "cannot make '%s' a program", dir);
	buf_free(&program);
	return rc;
}

static int work(struct guarding *g, struct err *e)
{
	check_text(g);
	if (!g->closed && check_tried(g, e))
		return -1;
	if (!g->closed && compile(g, e))
		return -1;
	if (!g->closed) {
		const int sim = !g->built.ok;
		buf_adds(&g->log, sim ? "ok   simulated\n" : "ok   compiled\n");
		verdict_set(&g->s->v, V_PASS, "ok", sim ? "simulated: nothing was compiled" : "compiled");
		if (!sim)
			verdict_isolation_list(&g->s->v, g->built.isolation);
	}
	jw_int(&g->s->v.data, "files", g->f.n);
	jw_str(&g->s->v.data, "options", g->spec->cuda ? ENGINE_CUDA_OPTIONS : ENGINE_BUILD_OPTIONS);
	return 0;
}

int guard_engine(struct stage *s, const char *text, size_t len, struct err *e)
{
	static struct guarding g; /* the verdict keeps pointers to isolation names */
	struct err why;
	char log[TRIAL_PATH];
	g.s = s;
	engine_on_host(s);
	if (engine_spec_parse(text, len, "spec.json", &g.spec, e))
		return -1;
	int rc = 0;
	if (engine_device(s, g.spec, e))
		rc = -1;
	else if (engine_files_stage(s, &g.f, &why) == 0)
		rc = engine_files_cuda(&g.f) == g.spec->cuda ? work(&g, e)
			: reject(&g, "guard.scope", NULL, 0, "an engine in another language than the problem's");
	else if (why.code == EX_BADINPUT && !strstr(why.text, "is not the file that was recorded"))
		reject(&g, "guard.scope", NULL, 0, why.text);
	else
		rc = err_set(e, why.code, "%s", why.text);
	snprintf(log, sizeof log, "%s/guard.log", stage_candidate_dir(s));
	if (rc == 0)
		rc = stage_side(s, log, buf_str(&g.log), g.log.len, e);
	engine_built_free(&g.built);
	engine_files_free(&g.f);
	engine_spec_free(g.spec);
	buf_free(&g.log);
	return rc;
}
