/*
 * new.c - make a new problem folder from the template, ready to check and edit.
 *
 * Reads tools/template/. Writes specs/NAME/, which must not exist yet; it appears whole (built
 * under a temporary name, then renamed). Never touches an existing problem.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/file.h"
#include "../stages/lib/trial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"usage: new NAME\n"
	"\n"
	"Make specs/NAME/ from the template: a small working problem to edit.\n"
	"NAME is 1 to 64 of a-z 0-9 _ -. See specs/README.md for what each file means.\n"
	"\n"
	"exit: 0 made, 2 usage or the problem exists, 111 a system call failed\n";

static const char *const FILES[] = {
	"spec.json", "reference.cu", "reference.json", "README.md",
	"baseline/kernel.cu", "baseline/plan.json", "baseline/README.md",
};

/* Copy one template file, writing the problem's name for @NAME@. */
static int copy_named(const char *file, const char *dir, const char *name, struct err *e)
{
	static const char MARK[] = "@NAME@";
	struct buf in = BUF_INIT, out = BUF_INIT;
	char *from = xasprintf("tools/template/%s", file), *to = xasprintf("%s/%s", dir, file);
	int r = file_read(from, (size_t)1 << 20, &in, e);
	if (!r) {
		const char *at = in.data, *hit;
		while ((hit = strstr(at, MARK))) {
			buf_add(&out, at, (size_t)(hit - at));
			buf_adds(&out, name);
			at = hit + sizeof MARK - 1;
		}
		buf_adds(&out, at);
		r = file_write(to, out.data, out.len, 0666, e);
	}
	free(from), free(to);
	buf_free(&in), buf_free(&out);
	return r;
}

static int make_spec(const char *name, struct err *e)
{
	char *dir = xasprintf("specs/%s", name);
	char *tmp = xasprintf("specs/.%s.tmp.%ld", name, (long)getpid());
	char *base = xasprintf("%s/baseline", tmp);
	int r = 0;
	if (file_exists(dir))
		r = err_set(e, EX_BADUSE, "'%s' exists; choose another name or edit it", dir);
	else
		r = dir_make(base, e);
	for (size_t i = 0; !r && i < sizeof FILES / sizeof *FILES; i++)
		r = copy_named(FILES[i], tmp, name, e);
	if (!r && rename(tmp, dir))
		r = err_sys(e, "cannot rename '%s' to '%s'", tmp, dir);
	if (r) {
		struct err ignore;
		dir_remove(tmp, &ignore); /* the first error is the one to report */
	}
	free(dir), free(tmp), free(base);
	return r;
}

int main(int argc, char **argv)
{
	prog_name(argv[0]);
	if (argc == 2 && !strcmp(argv[1], "-h")) {
		fputs(HELP, stdout);
		return 0;
	}
	if (argc != 2 || !trial_name_ok(argv[1]))
		die(EX_BADUSE, "want one name of 1 to 64 letters a-z, digits, _ or - (new -h explains)");
	struct err e = {0};
	if (make_spec(argv[1], &e))
		die_err(&e);
	printf("specs/%s is ready: edit it as specs/README.md says, then run: make check SPEC=%s\n",
	       argv[1], argv[1]);
	return 0;
}
