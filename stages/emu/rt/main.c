/* Entry of an image: reads commands, runs them, replies. See ../protocol.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rt.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef EMU_CHECK
enum { STACK_KIB = 256 };
#else
enum { STACK_KIB = 64 };
#endif

static int fd_in = 3;

static int number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);
	return *text && !*end && n >= 0 && n < 1024 ? (int)n : -1;
}

static int command_read(struct emu_command *c)
{
	size_t have = 0;
	while (have < sizeof *c) {
		ssize_t n = read(fd_in, (char *)c + have, sizeof *c - have);
		if (n <= 0)
			return 0;
		have += (size_t)n;
	}
	return c->magic == EMU_MAGIC;
}

int main(int argc, char **argv)
{
	int fd_out = 4;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--fd-in"))
			fd_in = number(argv[i + 1]);
		else if (!strcmp(argv[i], "--fd-out"))
			fd_out = number(argv[i + 1]);
		else
			return 2;
	}
	if (argc % 2 == 0 || fd_in < 0 || fd_out < 0)
		return 2;
	report_io(fd_in, fd_out);
	wipe_init();
	report_install();
	tick_install();
	emu_g.index = UINT32_MAX;
	emu_hot.busy = 1;

	struct emu_command c;
	const char *wrong;
	unsigned kib;
	while (command_read(&c)) {
		switch (c.kind) {
		case EMU_CMD_MAP:
			wrong = script_map();
			if (wrong)
				report_fail(EMU_BAD_SCRIPT, 0, 0, NULL, "%s", wrong);
			hook_init();
			kib = script_get()->stack_kib;
			wipe_seal((kib ? kib : STACK_KIB) * 1024);
			report_reply(EMU_OK, "");
			break;
		case EMU_CMD_RUN:
			if (!script_get())
				report_fail(EMU_BAD_SCRIPT, 0, 0, NULL, "RUN before MAP");
			wrong = c.flags & EMU_COMMAND_ARGS ? script_args() : NULL;
			if (wrong)
				report_fail(EMU_BAD_SCRIPT, 0, 0, NULL, "%s", wrong);
			script_run(&c);
			report_reply(EMU_OK, "");
			break;
		case EMU_CMD_WIPE:
			wipe_back(); /* goes on behind wipe_seal, and replies there */
		case EMU_CMD_QUIT:
			report_reply(EMU_OK, "");
			_exit(0);
		default:
			report_fail(EMU_BAD_SCRIPT, 0, 0, NULL, "unknown command %u", c.kind);
		}
	}
	_exit(0);
}
