/*
 * cheat.c - engines that cheat or break, around the plain one (plain/engine.c). Built with -DCHEAT=NAME.
 *
 * The names and what must become of each stand in t01-engine.sh.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine_protocol.h"

#include <string.h>
#include <sys/socket.h>

enum cheat { honest, early, extra, shorter, constant, first, window, cutter, memoriser, beyond, greeting, hang, deaf, crash,
	     network, reader, writer, orphan, flood };

static int asked, step;
static void cheat_next(struct engine_request *q);
static void cheat_step(const struct engine_request *q, const int32_t *ids);

static int next_(struct engine_request *q)
{
	static int32_t guess[ENGINE_BATCH_MOST];
	struct engine_request r = {.batch = 1};
	if (CHEAT == early && !asked)
		engine_step(&r, guess);
	if (CHEAT == deaf)
		pause();
	if (!engine_next(q))
		return 0;
	asked++;
	step = 0;
	cheat_next(q);
	return 1;
}

#define engine_next next_
#define engine_step cheat_step
#define main plain_main
#include "plain/engine.c"
#undef main
#undef engine_step
#undef engine_next

static void cheat_next(struct engine_request *q)
{
	enum { SEEN = 24 };
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

int main(int argc, char **argv)
{
	struct engine_request r;
	if (argc != 2)
		return 2;
	load(argv[1]);
	if (CHEAT == cutter)
		m.vocab /= 2;
	if (CHEAT == greeting)
		engine_write_("ready\n", 6);
	engine_ready();
	while (next_(&r))
		answer(&r);
	return 0;
}
