/*
 * checker_keys.c - where the checker's keys come from. See checker_part.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "checker_part.h"

#include "buf.h"
#include "defence.h"
#include "file.h"
#include "hash.h"
#include "rng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int keys_read(struct keys *keys, const char *run_dir, struct err *e)
{
	char *path = xasprintf("%s/key", run_dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	int r = 0;

	if (fd < 0)
		r = err_set(e, EX_NOENV,
			    "cannot open the run's key '%s' (%s): put it back with mode 0600 and resume; "
			    "if it is lost, start a new run (NEW=1)", path, strerror(errno));
	else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != 32)
		r = err_set(e, EX_BADINPUT,
			    "'%s' is not a key of 32 bytes: put the run's key back, or start a new run (NEW=1)",
			    path);
	else if (st.st_mode & 077)
		r = err_set(e, EX_BADINPUT,
			    "'%s' may be read by others: set its mode to 0600 and resume", path);
	else if (read(fd, keys->run, 32) != 32)
		r = err_sys(e, "cannot read '%s'", path);
	if (fd >= 0)
		close(fd);
	free(path);
	return r;
}

static void take_hex(const char *hex, uint8_t out[32])
{
	char byte[3] = "";
	for (int i = 0; i < 32; i++) {
		memcpy(byte, hex + 2 * i, 2);
		out[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
}

/* A replay (tools/replay.c) puts the stage key that a verdict published into its scratch run, as
 * stage_key.STAGE, so that the same inputs are drawn again. run.json of such a run says so, and
 * neither iterate nor promote has to do with it; in any other run the file is an attempt to choose
 * the inputs. */
int keys_replay(struct keys *keys, const struct run *run, const char *run_dir, const char *stage, struct err *e)
{
	char *path = xasprintf("%s/stage_key.%s", run_dir, stage);
	struct buf text = BUF_INIT;
	int r = 0;

	if (file_exists(path) && !run_is_replay(run))
		r = err_set(e, EX_BADINPUT, "'%s' has no place in a run that is no replay: remove it", path);
	else if (file_exists(path))
		r = file_read(path, 64, &text, e);
	if (!r && text.len && !hash_is_hex(buf_str(&text)))
		r = err_set(e, EX_BADINPUT, "'%s' is not a key", path);
	if (!r && text.len)
		take_hex(buf_str(&text), keys->stage);
	buf_free(&text);
	free(path);
	return r;
}

/* On a runner's far side there is no run key but the two keys of the step (tools/far.c): 64 digits, a line
 * end, 64 digits, a line end. 1 when they were there. A file of somebody's own making signs nothing that
 * promote believes. */
static int keys_handed(struct keys *keys, const char *run_dir, const char *stage, struct err *e)
{
	char *key = xasprintf("%s/key", run_dir), *path = xasprintf("%s/keys.%s", run_dir, stage);
	struct buf text = BUF_INIT;
	int r = !file_exists(key) && file_exists(path);

	if (r && file_read(path, 130, &text, e) < 0)
		r = -1;
	if (r > 0) {
		char *p = text.data;
		int ok = text.len == 130 && p[64] == '\n' && p[129] == '\n';
		if (ok)
			p[64] = p[129] = '\0';
		if (!ok || !hash_is_hex(p) || !hash_is_hex(p + 65)) {
			r = err_set(e, EX_BADINPUT, "'%s' holds no keys", path);
		} else {
			take_hex(p, keys->stage);
			take_hex(p + 65, keys->mac);
		}
	}
	if (text.data)
		rng_wipe(text.data, text.len);
	buf_free(&text);
	free(path);
	free(key);
	return r;
}

int keys_hand(const struct keys *keys)
{
	char text[2 * HASH_HEX];

	hash_to_hex(keys->stage, text);
	hash_to_hex(keys->mac, text + 65);
	text[64] = text[129] = '\n';
	int ok = write(1, text, sizeof text) == (ssize_t)sizeof text;
	rng_wipe(text, sizeof text);
	return ok ? EX_DONE : EX_SYS;
}

int keys_make(struct keys **out, const char *run_dir, const char *trial, const char *stage, struct err *e)
{
	uint8_t sub[32];
	int handed = 0;

	struct keys *keys = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (keys == MAP_FAILED)
		return err_sys(e, "cannot map a page");
	*out = keys;
	mlock(keys, 4096); /* best effort: a small memlock limit must not stop the run */
	madvise(keys, 4096, MADV_DONTDUMP);
	if (run_dir) {
		handed = keys_handed(keys, run_dir, stage, e);
		if (handed)
			return handed < 0 ? -1 : 0;
		if (keys_read(keys, run_dir, e) < 0)
			return -1;
	} else if (getrandom(keys->run, 32, 0) != 32) {
		return err_sys(e, "cannot draw a key");
	}
	rng_key(sub, keys->run, "trial:%s", DEFENCE("key.trial") ? trial : "");
	rng_key(keys->stage, sub, "stage:%s", stage);
	rng_key(keys->mac, sub, "mac");
	rng_wipe(sub, sizeof sub);
	return 0;
}

void keys_wipe(struct keys *keys)
{
	if (keys)
		rng_wipe(keys, sizeof *keys);
}
