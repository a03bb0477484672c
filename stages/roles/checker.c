/*
 * checker.c - holds the run key, the references and the input sets; answers a stage's requests.
 *
 * Reads trials/runs/R/key and the spec; writes nothing but the memory it hands out; runs the
 * reference and the baseline as confined children of its own. Never tells a key before the
 * verdict (SUBKEY ends its service), never a reference, and of an input set only the one now in
 * memory. Requests come over descriptor 3 (stages/lib/checker_wire.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "buf.h"
#include "checker_part.h"
#include "checker_wire.h"
#include "defence.h"
#include "child_call.h"
#include "engine_spec.h"
#include "file.h"
#include "gpu_copy.h"
#include "hash.h"
#include "ieee.h"
#include "oracle.h"
#include "oracle_gpu.h"
#include "rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const char HELP[] =
	"checker - keys, references and comparison; started by judge, bench, unittest, tune, check\n"
	"\n"
	"usage: checker --trial ID --stage NAME [--run trials/runs/R] [--spec DIR] [--device D]\n"
	"       checker --trial ID --stage NAME --run trials/runs/R --hand keys\n"
	"\n"
	"  --run DIR    take the key from DIR/key and the spec from DIR/spec\n"
	"  --spec DIR   take the spec from here; without --run the key is thrown away at the end\n"
	"  --device D   where references run: emu, or the slug of a GPU's model (the first that the driver shows)\n"
	"\n"
	"  --hand keys  write the two keys of this step of this trial to standard output and end: what a\n"
	"               runner's far side gets instead of DIR/key, as DIR/keys.NAME (hand-over, not for people)\n"
	"\n"
	"Speaks on descriptor 3 only. Not for people.\n";

static struct keys *keys; /* a locked page */
static struct spec *spec; /* NULL of an engine problem: keys and signatures are all there is */
static const char *spec_dir, *device = "emu";
/* One of the two, by the device. */
struct work {
	int open;
	struct oracle *emu;
	struct oracle_gpu *gpu;
	struct gpu_copy copy;
	struct checker_request late; /* a touch that waits for AGAIN; magic 0: none */
};

static struct work work[CHECKER_WORKLOADS];
static struct oracle_kit kit;
static struct oracle_gpu_kit gpu_kit;
static int on_gpu;
static int published;

/* Inputs of a workload depend on this key only. */
static void work_key(const struct checker_open *q, uint8_t out[32])
{
	rng_key(out, keys->stage, "work:%d:%u:%d", (int)q->mode, q->index, q->emu);
}

/* ---- requests ---- */

/* Who has the stage key knows every input that could still be drawn. */
static int is_published(void)
{
	return published && DEFENCE("key.published");
}

static uint64_t next_word(void *ctx)
{
	return rng_u64(ctx);
}

static int draw(const struct checker_open *q, struct axes *out, struct err *e)
{
	struct rng r;
	uint8_t key[32];

	if (is_published())
		return err_set(e, EX_HARNESS, "the stage key is public: no more drawing");
	if (!spec)
		return err_set(e, EX_HARNESS, "an engine problem has no inputs here");
	if (q->mode == CHECKER_HELD_OUT) {
		work_key(q, key);
		rng_open(&r, key, "axes");
		int probe = q->index >= (uint32_t)spec->held_out_count;
		int rc = spec_draw(spec, q->emu, probe, next_word, &r, out, e);
		rng_close(&r);
		rng_wipe(key, sizeof key);
		return rc;
	}
	int n = q->mode == CHECKER_TINY ? spec->ntiny : spec->npublic;
	if (q->index >= (uint32_t)n)
		return err_set(e, EX_HARNESS, "spec '%s' has no workload %u", spec->name, q->index);
	const struct spec_workload *w =
		&(q->mode == CHECKER_TINY ? spec->tiny : spec->public)[q->index];
	*out = q->emu ? w->emu : w->gpu;
	return 0;
}

static void work_close(struct work *w)
{
	if (w->emu)
		oracle_close(w->emu);
	free(w->emu);
	oracle_gpu_close(w->gpu);
	gpu_copy_close(&w->copy);
	memset(w, 0, sizeof *w);
}

static int open_emu(struct work *w, struct checker_reply *r, const struct checker_open *q,
		    const uint8_t key[32], struct err *e)
{
	w->emu = xcalloc(1, sizeof *w->emu);
	if (oracle_open(w->emu, &kit, spec, device, &r->axes, q, key, e) < 0)
		return -1;
	r->regimes = w->emu->regimes;
	r->layout = w->emu->mem.l;
	return 0;
}

static int open_gpu(struct work *w, struct checker_reply *r, const struct checker_open *q,
		    const uint8_t key[32], struct err *e)
{
	const struct mem_layout *others[CHECKER_WORKLOADS];
	int n = 0;

	for (int i = 0; i < CHECKER_WORKLOADS; i++)
		if (work[i].gpu)
			others[n++] = &oracle_gpu_memory(work[i].gpu)->l;
	if (oracle_gpu_open(&w->gpu, &gpu_kit, spec, &r->axes, q, key, others, n, e) < 0)
		return -1;
	r->regimes = oracle_gpu_regimes(w->gpu);
	r->ref_ns = oracle_gpu_reference_ns(w->gpu);
	r->layout = oracle_gpu_memory(w->gpu)->l;
	return 0;
}

static int do_open(const struct checker_open *q, struct checker_reply *r, struct err *e)
{
	uint32_t id = 0;
	uint8_t key[32];

	if (q->n_ws > CHECKER_WS)
		return err_set(e, EX_HARNESS, "too many workspaces");
	if (draw(q, &r->axes, e) < 0)
		return -1;
	while (id < CHECKER_WORKLOADS && work[id].open)
		id++;
	if (id == CHECKER_WORKLOADS)
		return err_set(e, EX_HARNESS, "too many workloads open");
	work_key(q, key);
	int rc = on_gpu ? open_gpu(&work[id], r, q, key, e) : open_emu(&work[id], r, q, key, e);
	rng_wipe(key, sizeof key);
	if (rc < 0) {
		work_close(&work[id]);
		return -1;
	}
	work[id].open = 1;
	r->work = id;
	return 0;
}

static int do_touch(struct work *w, const struct checker_request *q, struct err *e)
{
	const struct mem_layout *l = w->gpu ? &oracle_gpu_memory(w->gpu)->l : &w->emu->mem.l;

	if (!mem_reaches(l, q->buffer, q->at))
		return err_set(e, EX_HARNESS, "no such byte to touch");
	if (w->gpu)
		return gpu_copy_touch(oracle_gpu_memory(w->gpu), q->buffer, q->at, e);
	((uint8_t *)mem_at(&w->emu->mem, &l->buf[q->buffer]))[q->at] ^= 1;
	return 0;
}

/* In a run nobody but a candidate writes outputs, and nobody sees inputs. */
static int do_copy(struct work *w, const struct checker_request *q, struct err *e)
{
	int touch = q->way >= CHECKER_TOUCH;

	if (kit.run || (!w->gpu && !touch))
		return err_set(e, EX_HARNESS, "memory is copied or touched with a throw-away key alone");
	if (q->way == CHECKER_TOUCH_LATE)
		w->late = *q;
	else if (touch)
		return do_touch(w, q, e);
	return touch ? 0 : gpu_copy_run(&w->copy, oracle_gpu_memory(w->gpu),
					q->way == CHECKER_PUT ? CHECKER_PUT : CHECKER_GET, e);
}

static int do_again(struct work *w, struct checker_reply *r, struct err *e)
{
	if (w->late.magic && do_touch(w, &w->late, e) < 0)
		return -1;
	w->late.magic = 0;
	return on_gpu ? oracle_gpu_again(w->gpu, &r->same, e) : oracle_again(w->emu, &r->same, e);
}

static void do_mac(const uint8_t digest[32], char out[HASH_HEX])
{
	uint8_t text[4 + 32] = {'m', 'a', 'c', ':'}, mac[32];

	memcpy(text + 4, digest, 32);
	hash_hmac(keys->mac, 32, text, sizeof text, mac);
	hash_to_hex(mac, out);
}

static int serve(const struct checker_request *q, struct checker_reply *r, struct err *e)
{
	struct work *o = q->work < CHECKER_WORKLOADS && work[q->work].open ? &work[q->work] : NULL;
	int needs = q->op == CHECKER_OP_CLOSE || q->op == CHECKER_OP_PREPARE ||
		    q->op == CHECKER_OP_VERIFY || q->op == CHECKER_OP_AGAIN || q->op == CHECKER_OP_COPY;

	if (needs && !o)
		return err_set(e, EX_HARNESS, "workload %u is not open", q->work);
	switch (q->op) {
	case CHECKER_OP_DRAW: return draw(&q->open, &r->axes, e);
	case CHECKER_OP_OPEN: return do_open(&q->open, r, e);
	case CHECKER_OP_CLOSE:
		work_close(o);
		return 0;
	case CHECKER_OP_PREPARE:
		if (is_published())
			return err_set(e, EX_HARNESS, "the stage key is public: no more inputs");
		return on_gpu ? oracle_gpu_prepare(o->gpu, &q->prep, r->scalars, e)
			      : oracle_prepare(o->emu, &q->prep, r->scalars, e);
	case CHECKER_OP_VERIFY:
		return on_gpu ? oracle_gpu_verify(o->gpu, &r->result, e) : oracle_verify(o->emu, &r->result, e);
	case CHECKER_OP_AGAIN: return do_again(o, r, e);
	case CHECKER_OP_COPY: return do_copy(o, q, e);
	case CHECKER_OP_MAC: do_mac(q->digest, r->hex); return 0;
	case CHECKER_OP_SUBKEY:
		published = 1;
		hash_to_hex(keys->stage, r->hex);
		return 0;
	default: return err_set(e, EX_HARNESS, "unknown request %u", q->op);
	}
}

/* ---- the socket ---- */

/* With the descriptors of the memory of `opened`, or with those of its copies. */
static int answer(struct checker_reply *r, const struct work *opened, int copies)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(MEM_MAX * sizeof(int))];
	} control;
	struct iovec v = {r, sizeof *r};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	memset(&control, 0, sizeof control);
	if (opened) {
		const struct gpu_mem *gpu = opened->gpu && !copies ? oracle_gpu_memory(opened->gpu) : NULL;
		int emu[2] = {opened->emu ? opened->emu->mem.in_fd : -1, opened->emu ? opened->emu->mem.rw_fd : -1};
		const int *fds = gpu ? gpu->fd : copies ? opened->copy.fd : emu;
		size_t bytes = (gpu ? gpu->l.n : 2) * sizeof(int);
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(bytes);
		control.h.cmsg_level = SOL_SOCKET;
		control.h.cmsg_type = SCM_RIGHTS;
		control.h.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.h), fds, bytes);
	}
	return sendmsg(CHECKER_FD, &m, MSG_NOSIGNAL) == (ssize_t)sizeof *r ? 0 : -1;
}

/* `broken`: why every request is refused, or NULL. */
static void loop(const struct err *broken)
{
	static struct checker_request q;
	static struct checker_reply r;

	for (;;) {
		struct err e = {0};
		ssize_t n = recv(CHECKER_FD, &q, sizeof q, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return; /* the stage is done */
		if (n != (ssize_t)sizeof q || q.magic != CHECKER_MAGIC)
			die(EX_HARNESS, "malformed request");
		memset(&r, 0, sizeof r);
		r.magic = CHECKER_MAGIC;
		if (broken)
			e = *broken;
		if (broken || serve(&q, &r, &e) < 0) {
			/* only references run here: a killed one says nothing about the candidate */
			r.code = child_was_killed() ? EX_AGAIN : e.code ? e.code : EX_HARNESS;
			memcpy(r.text, e.text, sizeof r.text);
		}
		int copies = q.op == CHECKER_OP_COPY && q.way < CHECKER_TOUCH && r.code == 0;
		int opened = q.op == CHECKER_OP_OPEN && r.code == 0;
		if (answer(&r, copies ? &work[q.work] : opened ? &work[r.work] : NULL, copies) < 0)
			return;
	}
}

/* In a run every file of the spec is read through the run's pins. */
static int load_spec(const char *run_dir, struct err *e)
{
	static struct run run; /* kept to the end */
	struct buf text = BUF_INIT;

	kit.dir = gpu_kit.dir = spec_dir;
	if (!run_dir)
		return spec_load(spec_dir, &spec, e);
	const char *slash = strrchr(run_dir, '/');
	if (run_read(slash ? slash + 1 : run_dir, &run, e) < 0)
		return -1;
	kit.run = gpu_kit.run = &run;
	int r = run_spec_read(&run, "spec.json", 1 << 20, &text, NULL, e);
	enum spec_kind kind = SPEC_KERNEL;
	if (r == 0)
		r = spec_kind(buf_str(&text), text.len, &kind, e);
	if (r == 0 && kind == SPEC_KERNEL)
		r = spec_parse(buf_str(&text), text.len, "spec.json", &spec, e);
	buf_free(&text);
	return r;
}

int main(int argc, char **argv)
{
	const char *run_dir = NULL, *trial = NULL, *stage = NULL, *dir = NULL, *hand = NULL;
	struct err e = {0};
	struct rlimit none = {0, 0};

	prog_name(argv[0]);
	for (int i = 1; i < argc; i += 2) {
		const char *v = i + 1 < argc ? argv[i + 1] : NULL;
		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			fputs(HELP, stdout);
			return EX_DONE;
		}
		const char **to = !strcmp(argv[i], "--run")      ? &run_dir
				  : !strcmp(argv[i], "--spec")   ? &dir
				  : !strcmp(argv[i], "--trial")  ? &trial
				  : !strcmp(argv[i], "--stage")  ? &stage
				  : !strcmp(argv[i], "--device") ? &device
				  : !strcmp(argv[i], "--hand")   ? &hand
								 : NULL;
		if (!to || !v)
			die(EX_BADUSE, "unknown option '%s'; -h for help", argv[i]);
		*to = v;
	}
	if (!trial || !stage || (!run_dir && !dir))
		die(EX_BADUSE, "wants --trial, --stage and --run or --spec; -h for help");
	on_gpu = device_class_of(device) == DEVICE_CUDA;
	prctl(PR_SET_DUMPABLE, 0);
	setrlimit(RLIMIT_CORE, &none);
	if (hand && (!run_dir || keys_make(&keys, run_dir, trial, stage, &e) < 0))
		die(run_dir ? e.code : EX_BADUSE, "%s", run_dir ? e.text : "--hand wants --run");
	if (hand)
		return keys_hand(keys);
	const char *broken = ieee_broken();
	if (broken)
		die(EX_HARNESS, "floating point of this build does not follow IEEE 754: %s", broken);
	char *from_run = run_dir ? xasprintf("%s/spec", run_dir) : NULL;
	spec_dir = dir ? dir : from_run;
	if (keys_make(&keys, run_dir, trial, stage, &e) < 0 || load_spec(run_dir, &e) < 0 ||
	    (run_dir && keys_replay(keys, kit.run, run_dir, stage, &e) < 0))
		loop(&e); /* the stage says it, under its own name */
	else
		loop(NULL);
	for (int i = 0; i < CHECKER_WORKLOADS; i++)
		if (work[i].open)
			work_close(&work[i]);
	oracle_kit_free(&kit);
	if (gpu_kit.started)
		oracle_gpu_kit_free(&gpu_kit);
	keys_wipe(keys);
	spec_free(spec);
	free(from_run);
	return EX_DONE;
}
