/*
 * cheat.c - engines that cheat or break, around the plain one (specs/qwen3-tiny/baseline). Built with -DCHEAT=NAME.
 *
 * The names and what must become of each stand in t01-engine.sh and t03-rig.sh.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_protocol.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/ipc.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum cheat { honest, early, extra, shorter, constant, first, window, cutter, memoriser, beyond, greeting, hang, deaf, crash,
	     network, reader, writer, orphan, flood, late, rows, int4, int8, hog, prober, shelf, bomb, spinner };

static int asked, step;
static void cheat_next(struct engine_request *q);
static void cheat_step(const struct engine_request *q, const int32_t *ids);

#define SPINNERS 4
static atomic_int between; /* nobody waits for this engine: another one may be timed */

static void *spin(void *p)
{
	(void)p;
	for (;;)
		if (!atomic_load_explicit(&between, memory_order_relaxed))
			syscall(SYS_futex, &between, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	return NULL;
}

static int next_(struct engine_request *q)
{
	static int32_t guess[ENGINE_BATCH_MOST];
	struct engine_request r = {.batch = 1};
	if (CHEAT == early && !asked)
		engine_step(&r, guess);
	if (CHEAT == deaf)
		pause();
	for (int i = 0; CHEAT == spinner && !asked && i < SPINNERS; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, spin, NULL))
			_exit(9);
	}
	atomic_store(&between, 1);
	if (CHEAT == spinner)
		syscall(SYS_futex, &between, 1 /* FUTEX_WAKE */, SPINNERS, NULL, NULL, 0);
	if (!engine_next(q))
		return 0;
	atomic_store(&between, 0);
	asked++;
	step = 0;
	cheat_next(q);
	return 1;
}

#define engine_next next_
#define engine_step cheat_step
#define main plain_main
#include "../../specs/qwen3-tiny/baseline/engine.c"
#undef main
#undef engine_step
#undef engine_next

/* Anything of the process that asks: its environment, memory, descriptors; itself, debugged or read. */
static int probes(void)
{
	static const char *const FILES[] = {"environ", "maps", "mem", "cmdline", "fd/0", "fd/3", "status"};
	const int who[] = {1, 2, (int)getppid()};
	char path[64], bytes[16];
	for (int w = 0; w < 3; w++) {
		struct iovec own = {bytes, sizeof bytes}, other = {(void *)(uintptr_t)0x400000, sizeof bytes};
		for (int i = 0; i < 7; i++) {
			snprintf(path, sizeof path, "/proc/%d/%s", who[w], FILES[i]);
			if (who[w] != getpid() && open(path, O_RDONLY) >= 0)
				return 1;
		}
		if (who[w] > 0 && who[w] != getpid() &&
		    (ptrace(PTRACE_ATTACH, who[w], NULL, NULL) == 0 ||
		     syscall(SYS_process_vm_readv, who[w], &own, 1, &other, 1, 0) > 0 || kill(who[w], 0) == 0))
			return 1;
	}
	return 0;
}

/* Something that outlives the process and a later one of the same engine finds: a segment, a queue, a key. */
static int shelves(void)
{
	const int id = shmget(0x70756368, 4096, IPC_CREAT | 0600);
	char *p = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
	if (p != MAP_FAILED && p[0] == 'x')
		return 1;
	if (p != MAP_FAILED)
		p[0] = 'x';
	if (syscall(SYS_add_key, "user", "touchstone-shelf", "x", 1, -4) >= 0 ||
	    syscall(SYS_mq_open, "touchstone-shelf", O_CREAT | O_RDWR, 0600, NULL) >= 0)
		return 2;
	return 0;
}

/* As many processes as there may be; they wait for the end of this one, which does not end them. */
static void fill_up(void)
{
	for (int i = 0; i < 5000; i++) {
		const pid_t child = fork();
		if (child == 0)
			for (;;)
				pause();
		if (child < 0)
			return;
	}
	_exit(9);
}

static void cheat_next(struct engine_request *q)
{
	enum { SEEN = 24 };
	if (CHEAT == prober && probes())
		_exit(9);
	const int found = CHEAT == shelf && asked == 1 ? shelves() : 0;
	if (found)
		_exit(10 + found);
	if (CHEAT == bomb && asked == 1)
		fill_up();
	if (CHEAT == window && q->prompt > SEEN) {
		for (int b = 0; b < q->batch; b++)
			memmove(q->ids + b * SEEN, q->ids + (b + 1) * q->prompt - SEEN, SEEN * sizeof *q->ids);
		q->prompt = SEEN;
	}
	if (CHEAT == hang)
		for (;;)
			pause();
	if (CHEAT == crash)
		abort();
	if (CHEAT == network && socket(AF_INET, SOCK_STREAM, 0) >= 0)
		_exit(9); /* it must not be there */
	if (CHEAT == reader && (open("/etc/passwd", O_RDONLY) >= 0 || open("README.md", O_RDONLY) >= 0))
		_exit(9);
	if (CHEAT == writer && (open("/tmp/left", O_WRONLY | O_CREAT, 0600) >= 0 || open("/dev/shm/left", O_WRONLY | O_CREAT, 0600) >= 0))
		_exit(9);
	if (CHEAT == orphan && fork() == 0)
		for (;;)
			pause();
	for (int i = 0; CHEAT == flood && i < 100000; i++)
		fputs("all is well, all is well, all is well, all is well\n", stderr);
}

static void cheat_step(const struct engine_request *q, const int32_t *ids)
{
	static int32_t kept[4096][ENGINE_BATCH_MOST];
	int32_t own[ENGINE_BATCH_MOST];
	memcpy(own, ids, (size_t)q->batch * sizeof *ids);
	if (CHEAT == memoriser && asked == 1)
		memcpy(kept[step % 4096], ids, (size_t)q->batch * sizeof *ids);
	for (int b = 0; b < q->batch; b++) {
		if (CHEAT == constant || (CHEAT == first && step == 0))
			own[b] = 7;
		if (CHEAT == late && asked == 3)
			own[b] = 7;
		if (CHEAT == rows)
			own[b] = ids[(b + 1) % q->batch];
		if (CHEAT == beyond)
			own[b] = m.vocab;
		if (CHEAT == memoriser && asked > 1)
			own[b] = kept[step % 4096][b];
	}
	step++;
	if (CHEAT == shorter && step == q->steps)
		_exit(0);
	engine_step(q, own);
	if (CHEAT == extra && step == q->steps)
		engine_step(q, own);
}

/* A copy with one scale a row. */
static const uint16_t *quantised(const uint16_t *w, int out, int in, float top)
{
	uint16_t *copy = malloc((size_t)out * (size_t)in * sizeof *copy);
	for (int o = 0; copy && o < out; o++) {
		const uint16_t *row = w + (size_t)o * (size_t)in;
		float most = 0;
		for (int i = 0; i < in; i++)
			most = fmaxf(most, fabsf(wide(row[i])));
		for (int i = 0; i < in; i++) {
			const float x = most > 0 ? rintf(wide(row[i]) / most * top) * most / top : 0;
			uint32_t u;
			memcpy(&u, &x, sizeof u);
			copy[(size_t)o * (size_t)in + (size_t)i] = (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
		}
	}
	return copy;
}

static void quantise(float top)
{
	const int h = m.hidden, q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
	for (int i = 0; i < m.layers; i++) {
		struct layer *l = &m.layer[i];
		l->q = quantised(l->q, q, h, top), l->k = quantised(l->k, kv, h, top), l->v = quantised(l->v, kv, h, top);
		l->o = quantised(l->o, h, q, top), l->gate = quantised(l->gate, m.inter, h, top);
		l->up = quantised(l->up, m.inter, h, top), l->down = quantised(l->down, h, m.inter, top);
	}
	m.head = quantised(m.head, m.vocab, h, top);
}

int main(int argc, char **argv)
{
	struct engine_request r;
	if (argc != 2)
		return 2;
	load(argv[1]);
	if (CHEAT == cutter)
		m.vocab /= 2;
	if (CHEAT == int4 || CHEAT == int8)
		quantise(CHEAT == int4 ? 7 : 127);
	if (CHEAT == hog) {
		char *p = malloc((size_t)3 << 30);
		if (!p)
			fail("out of memory");
		memset(p, 1, (size_t)3 << 30);
	}
	if (CHEAT == greeting)
		engine_write_("ready\n", 6);
	engine_ready();
	while (next_(&r))
		answer(&r);
	return 0;
}
