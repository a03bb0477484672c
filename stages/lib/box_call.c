/*
 * box_call.c - see box_call.h. Looks into the cache, else prepares a folder, runs the box on it
 * and takes the artefact through a descriptor.
 *
 * SPDX-License-Identifier: MIT
 */
#include "box_call.h"

#include "box_part.h"
#include "defence.h"
#include "file.h"
#include "jsonw.h"
#include "spawn.h"
#include "toolkit.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "ts-box-"

void box_result_free(struct box_result *r)
{
	cJSON_Delete(r->facts);
	r->facts = NULL;
}

/* --- the folder of one compile --- */

static const char *tmp_root(void)
{
	const char *t = getenv("TMPDIR");
	return t && t[0] == '/' ? t : "/tmp";
}

/* A killed caller leaves its folder; whoever compiles next removes it. */
static void stale_remove(void)
{
	DIR *d = opendir(tmp_root());
	for (struct dirent *x; d && (x = readdir(d));) {
		char path[PATH_MAX];
		struct stat st;
		struct err ignored;
		if (strncmp(x->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		long pid = strtol(x->d_name + strlen(PREFIX), NULL, 10);
		if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
			continue;
		snprintf(path, sizeof path, "%s/%s", tmp_root(), x->d_name);
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
			dir_remove(path, &ignored);
	}
	if (d)
		closedir(d);
}

/* DIR/kit: ours, read-only for the box. DIR/tmp: the box's, where it cannot have a tmpfs. */
static int folder_make(const struct box_kit *k, char dir[PATH_MAX], struct err *e)
{
	char path[PATH_MAX];
	stale_remove();
	if (snprintf(dir, PATH_MAX - 8, "%s/" PREFIX "%ld-XXXXXX", tmp_root(), (long)getpid()) >= PATH_MAX - 8)
		return err_set(e, EX_BADUSE, "TMPDIR is too long");
	if (!mkdtemp(dir)) {
		err_sys(e, "cannot make a folder in '%s'", tmp_root());
		dir[0] = '\0';
		return -1;
	}
	chmod(dir, 0711); /* the box may be another user and has to pass through */
	snprintf(path, sizeof path, "%.*s/kit", PATH_MAX - 8, dir);
	if (mkdir(path, 0755) || chmod(path, 0755))
		return err_sys(e, "cannot make '%s'", path);
	if (box_kit_write(k, path, e))
		return -1;
	snprintf(path, sizeof path, "%.*s/tmp", PATH_MAX - 8, dir);
	if (mkdir(path, 0700))
		return err_sys(e, "cannot make '%s'", path);
	if (geteuid() == 0 && DEFENCE("confine.uid") && chown(path, CONFINE_UID, CONFINE_UID) && errno != EPERM)
		return err_sys(e, "cannot give '%s' to another user", path);
	return 0;
}

/* --- talking to the box --- */

/* How long one compile may take, in seconds. */
static double wall_of(const struct box_request *q)
{
	if (!DEFENCE("compile.timeout"))
		return 600;
	return q->wall_s > 0 ? q->wall_s : BOX_WALL_S;
}

static void request_json(const struct box_request *q, const struct toolkit *t, struct buf *out)
{
	struct jsonw w = {0};
	jw_obj(&w, NULL);
	jw_str(&w, "mode", q->mode);
	jw_bool(&w, "fast_math", q->fast_math);
	jw_int(&w, "memory", (int64_t)(q->memory ? q->memory : BOX_MEMORY));
	double wall = wall_of(q);
	jw_int(&w, "cpu_s", wall < 2 ? 2 : (int64_t)wall);
	jw_arr(&w, "entries");
	for (size_t i = 0; i < q->entry_count; i++)
		jw_str(&w, NULL, q->entries[i]);
	jw_end(&w);
	jw_arr(&w, "macros");
	for (size_t i = 0; i < q->macro_count; i++) {
		char text[256];
		snprintf(text, sizeof text, "%s=%lld", q->macros[i].name, (long long)q->macros[i].value);
		jw_str(&w, NULL, text);
	}
	jw_end(&w);
	if (t)
		box_cuda_request(q, t, &w);
	jw_end(&w);
	buf_add(out, w.out.data, w.out.len);
	jw_free(&w);
}

static int memory_file(const void *data, size_t len, struct err *e)
{
	int fd = memfd_create("box", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "cannot make a memory file");
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)data + done, len - done);
		if (n <= 0) {
			close(fd);
			return err_sys(e, "cannot fill a memory file");
		}
		done += (size_t)n;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int memory_read(int fd, size_t max, struct buf *out, const char *what, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) || st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(e, EX_HARNESS, "the box gave back too much: %s", what);
	size_t size = (size_t)st.st_size;
	buf_room(out, size);
	ssize_t n = size ? pread(fd, out->data, size, 0) : 0;
	if (n != (ssize_t)size)
		return err_sys(e, "cannot read the box's %s", what);
	out->len = size;
	out->data[size] = '\0';
	return 0;
}

struct talk {
	int source, result, artefact, ptx;
};

static int talk_open(const struct box_request *q, struct talk *t, struct err *e)
{
	t->source = memory_file(q->source, q->source_len, e);
	t->result = t->source < 0 ? -1 : memory_file(NULL, 0, e);
	t->artefact = t->result < 0 ? -1 : memory_file(NULL, 0, e);
	t->ptx = t->artefact < 0 ? -1 : memory_file(NULL, 0, e);
	return t->ptx < 0 ? -1 : 0;
}

static void talk_close(struct talk *t)
{
	int *all[] = {&t->source, &t->result, &t->artefact, &t->ptx};
	for (size_t i = 0; i < 4; i++)
		if (*all[i] >= 0)
			close(*all[i]);
}

static void refuse(struct box_result *r, const char *code, const char *message)
{
	r->ok = 0;
	snprintf(r->code, sizeof r->code, "%s", code);
	snprintf(r->message, sizeof r->message, "%s", message);
}

/* The box ended: take its answer, or say why there is none. A box that the kernel killed for want
 * of memory ran out of it on the source's account; one that somebody killed says nothing about the
 * source; one that stopped by itself is our fault. */
static int answer(const struct talk *t, const struct spawn_result *s, struct box_result *r,
		  struct box_made *m, struct err *e)
{
	struct buf text = BUF_INIT;
	char words[96];
	if (s->timed_out) {
		refuse(r, "compile.timeout", "the compiler did not finish in time");
		r->seconds = s->wall_s;
		return 0;
	}
	if (s->outside)
		return err_set(e, EX_AGAIN, "box was killed");
	if (s->signal == SIGKILL) {
		refuse(r, "compile.limit", "the compiler was killed: out of memory");
		r->seconds = s->wall_s;
		return 0;
	}
	if (s->code != 0)
		return err_set(e, s->code > 0 ? s->code : EX_HARNESS, "box: %s: %.200s", spawn_words(s, words),
			       buf_str(&s->err));
	int rc = memory_read(t->result, BOX_RESULT_MAX, &text, "result", e);
	if (rc == 0)
		rc = box_result_parse(text.data, text.len, "the box's result", r, e);
	buf_free(&text);
	if (rc)
		return rc;
	if (r->ok && (memory_read(t->artefact, BOX_ARTEFACT_MAX, &m->artefact, "artefact", e) ||
		      memory_read(t->ptx, BOX_ARTEFACT_MAX, &m->ptx, "PTX", e)))
		return -1;
	/* what counts is the hash of the bytes we hold, not what the box says of them */
	r->sha256[0] = r->ptx_sha256[0] = '\0';
	if (r->ok)
		hash_hex(m->artefact.data, m->artefact.len, r->sha256);
	if (r->ok && m->ptx.len)
		hash_hex(m->ptx.data, m->ptx.len, r->ptx_sha256);
	return 0;
}

/* Everything that one compile is made with. */
struct way {
	const struct box_request *q;
	const struct box_kit *kit;
	const struct toolkit *toolkit; /* NULL: emu */
	const char *box;
};

static int box_run(const struct way *y, const char *dir, struct box_result *r, struct box_made *m, struct err *e)
{
	struct talk t = {-1, -1, -1, -1};
	struct buf request = BUF_INIT;
	struct spawn_result s;
	double wall = wall_of(y->q);
	request_json(y->q, y->toolkit, &request);
	int rc = talk_open(y->q, &t, e);
	if (rc == 0) {
		struct spawn_fd fds[] = {{t.source, BOX_FD_SOURCE}, {t.result, BOX_FD_RESULT},
					 {t.artefact, BOX_FD_ARTEFACT}, {t.ptx, BOX_FD_PTX}};
		struct spawn_request p = {
			.argv = (const char *const[]){y->box, dir, NULL}, .cwd = "/", .fds = fds, .fd_count = 4,
			.in = request.data, .in_len = request.len, .err = SPAWN_CAPTURE, .err_cap = 4096,
			.wall_s = wall, .namespaces = CONFINE_NS_ALL};
		rc = spawn_run(&p, &s, e);
	}
	if (rc == 0) {
		rc = answer(&t, &s, r, m, e);
		spawn_result_free(&s);
	}
	buf_free(&request);
	talk_close(&t);
	return rc;
}

static int out_write(const struct box_request *q, struct box_result *r, const struct box_made *m, struct err *e)
{
	const char *name = q->out_name ? q->out_name : q->mode;
	if (!r->ok || !q->out_dir)
		return 0;
	if (snprintf(r->path, sizeof r->path, "%s/%s", q->out_dir, name) >= (int)sizeof r->path - 8)
		return err_set(e, EX_BADUSE, "path too long: '%s'", q->out_dir);
	if (dir_make(q->out_dir, e) || file_write(r->path, m->artefact.data, m->artefact.len, 0644, e))
		return -1;
	if (!m->ptx.len)
		return 0;
	snprintf(r->ptx, sizeof r->ptx, "%.4088s.ptx", r->path);
	return file_write(r->ptx, m->ptx.data, m->ptx.len, 0644, e);
}

static int is_code(const struct box_result *r, const char *code)
{
	return !r->ok && strcmp(r->code, code) == 0;
}

static int box_once(const struct way *y, struct box_result *r, struct box_made *m, struct err *e)
{
	char dir[PATH_MAX] = "";
	struct err ignored;
	memset(r, 0, sizeof *r);
	buf_clear(&m->artefact);
	buf_clear(&m->ptx);
	int rc = folder_make(y->kit, dir, e);
	if (rc == 0)
		rc = box_run(y, dir, r, m, e);
	if (dir[0])
		dir_remove(dir, &ignored);
	return rc;
}

/* A compiler that somebody killed looks like one that refuses or crashes, and what it printed is no
 * witness: only what happens twice is a verdict on the text. */
static int box_twice(const struct way *y, struct box_result *r, struct box_made *m, struct err *e)
{
	int rc = box_once(y, r, m, e);
	if (rc || (!is_code(r, "compile.error") && !is_code(r, "compile.crash")))
		return rc;
	box_result_free(r);
	return box_once(y, r, m, e);
}

/* From the cache, or by running the box and keeping what it made. */
static int compile(const struct way *y, struct box_result *r, struct box_made *m, struct err *e)
{
	const struct box_request *q = y->q;
	struct box_entry entry;
	if (box_entry_key(q, y->kit, y->toolkit, y->box, &entry, e))
		return -1;
	if (!q->no_cache && box_entry_get(&entry, r, m))
		return 0;
	if (box_twice(y, r, m, e))
		return -1;
	/* a limit may have been the machine's mood: only verdicts on the text itself are kept, and none
	 * against our own run time, which would end every trial from now on */
	if (!r->ok && (!is_code(r, "compile.error") || strncmp(q->mode, BOX_RUNTIME, sizeof BOX_RUNTIME - 1) == 0))
		return 0;
	if (box_entry_put(&entry, r, m, e))
		return -1;
	box_entry_paths(&entry, r);
	return 0;
}

static void made_free(struct box_made *m)
{
	buf_free(&m->artefact);
	buf_free(&m->ptx);
}

/* The emulator's run time of this mode: our own source, compiled once, linked to every image. */
static int runtime_add(const struct box_request *q, const char *box, struct box_kit *k, struct err *e)
{
	char mode[32];
	struct box_made made = {0};
	struct box_result r;
	snprintf(mode, sizeof mode, BOX_RUNTIME "%s", q->mode + 4);
	struct box_request own = {.mode = mode, .source = ""};
	int rc = compile(&(struct way){&own, k, NULL, box}, &r, &made, e);
	if (rc == 0 && !r.ok)
		rc = err_set(e, EX_HARNESS, "cannot compile the emulator's run time (%s): %.300s", r.code, r.log);
	if (rc == 0)
		box_kit_add(k, BOX_RUNTIME_FILE, &made.artefact);
	box_result_free(&r);
	made_free(&made);
	return rc;
}

int box_is_cuda(const struct box_request *q)
{
	return strcmp(q->mode, "cuda") == 0;
}

static int prepare(const struct box_request *q, const char *box, struct box_kit *k, struct toolkit *t, struct err *e)
{
	if (box_is_cuda(q))
		return toolkit_find(t, e) || box_kit_cuda(box, k, e) ? -1 : 0;
	return box_kit_read(box, k, e) || runtime_add(q, box, k, e) ? -1 : 0;
}

int box_compile(const struct box_request *q, struct box_result *r, struct err *e)
{
	struct box_kit kit = {0};
	struct box_made made = {0};
	struct toolkit toolkit = {0};
	char box[PATH_MAX];
	memset(r, 0, sizeof *r);
	if (q->source_len > BOX_SOURCE_MAX)
		return err_set(e, EX_BADINPUT, "the source is larger than %u bytes", BOX_SOURCE_MAX);
	if (strncmp(q->mode, "emu-", 4) != 0 && !box_is_cuda(q))
		return err_set(e, EX_HARNESS, "the box has no mode '%s'", q->mode);
	if (box_is_cuda(q) && (!q->arch || strncmp(q->arch, "sm_", 3) != 0))
		return err_set(e, EX_HARNESS, "a compile for a GPU needs to know which: no architecture is given");
	const struct way y = {q, &kit, box_is_cuda(q) ? &toolkit : NULL, box};
	int rc = spawn_tool("box", box, sizeof box, e);
	if (rc == 0)
		rc = prepare(q, box, &kit, &toolkit, e);
	if (rc == 0)
		rc = compile(&y, r, &made, e);
	if (rc == 0)
		rc = out_write(q, r, &made, e);
	box_kit_free(&kit);
	made_free(&made);
	if (rc)
		box_result_free(r);
	return rc;
}
