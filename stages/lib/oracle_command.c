/*
 * oracle_command.c - a reference that is a command: tensors as files. See oracle.h.
 *
 * In a private temporary folder: NAME.bin per input (raw, little endian, row-major) and
 * meta.json with axes, scalars, and for each tensor file, dtype and shape. The command gets the
 * folder as its last argument, runs in the spec's folder, and writes NAME.bin per output:
 * float64 for float outputs, the output's own type otherwise. The folder is removed afterwards.
 * The command is the operator's own, as trusted as the spec; candidates cannot see the folder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "file.h"
#include "jsonw.h"
#include "oracle.h"
#include "spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int describe(struct jsonw *w, const struct spec *s, const struct spec_tensor *t,
		    const struct axes *a, enum dtype dt, struct err *e)
{
	int64_t dims[SPEC_MAX_RANK], n;
	char file[SPEC_NAME + 8];

	if (spec_shape(s, t, a, dims, &n, e) < 0)
		return -1;
	snprintf(file, sizeof file, "%s.bin", t->name);
	jw_obj(w, t->name);
	jw_str(w, "file", file);
	jw_str(w, "dtype", dtype_name(dt));
	jw_arr(w, "shape");
	for (int i = 0; i < t->rank; i++)
		jw_int(w, NULL, dims[i]);
	jw_end(w);
	jw_end(w);
	return 0;
}

static int write_meta(const struct spec *s, const struct axes *a, const double *scalars,
		      const char *dir, struct err *e)
{
	struct jsonw w = {.pretty = 1};
	int r = 0;

	jw_obj(&w, NULL);
	jw_obj(&w, "axes");
	for (int i = 0; i < s->naxes; i++)
		jw_int(&w, s->axis[i].name, a->v[i]);
	jw_end(&w);
	jw_obj(&w, "scalars");
	for (int i = 0; i < s->ninputs; i++)
		if (s->input[i].scalar)
			jw_num(&w, s->input[i].name, scalars[i]);
	jw_end(&w);
	jw_obj(&w, "inputs");
	for (int i = 0; i < s->ninputs && r == 0; i++)
		if (!s->input[i].scalar)
			r = describe(&w, s, &s->input[i], a, s->input[i].dtype, e);
	jw_end(&w);
	jw_obj(&w, "outputs");
	for (int i = 0; i < s->noutputs && r == 0; i++) {
		enum dtype dt = s->output[i].dtype;
		r = describe(&w, s, &s->output[i], a, dtype_is_float(dt) ? DT_F64 : dt, e);
	}
	jw_end(&w);
	jw_end(&w);
	char *path = xasprintf("%s/meta.json", dir);
	if (r == 0)
		r = file_write(path, w.out.data, w.out.len, 0600, e);
	free(path);
	jw_free(&w);
	return r;
}

static int write_inputs(const struct spec *s, const struct axes *a, const uint8_t *in,
			const char *dir, struct err *e)
{
	for (int i = 0; i < s->ninputs; i++) {
		int64_t n;
		if (s->input[i].scalar)
			continue;
		if (spec_bytes(s, &s->input[i], a, &n, e) < 0)
			return -1;
		char *path = xasprintf("%s/%s.bin", dir, s->input[i].name);
		int r = file_write(path, in, (size_t)n, 0600, e);
		free(path);
		if (r < 0)
			return -1;
		in += oracle_step((uint64_t)n);
	}
	return 0;
}

static int read_outputs(const struct spec *s, const struct axes *a, const char *dir, uint8_t *ref,
			struct err *e)
{
	for (int i = 0; i < s->noutputs; i++) {
		struct buf b = BUF_INIT;
		int64_t n;
		if (spec_reference_bytes(s, &s->output[i], a, &n, e) < 0)
			return -1;
		char *path = xasprintf("%s/%s.bin", dir, s->output[i].name);
		int r = file_read(path, (size_t)n, &b, e);
		if (r == 0 && b.len != (size_t)n)
			r = err_set(e, EX_BADINPUT, "reference command: output '%s' has %zu bytes, not %lld",
				    s->output[i].name, b.len, (long long)n);
		if (r == 0)
			memcpy(ref, b.data, b.len);
		buf_free(&b);
		free(path);
		if (r < 0)
			return -1;
		ref += oracle_step((uint64_t)n);
	}
	return 0;
}

static int run(const struct spec *s, const char *spec_dir, const char *dir, struct err *e)
{
	const char *argv[SPEC_MAX_ARGV + 2];
	struct spawn_result r;
	char words[96];
	int n = 0;

	for (; n < s->reference_argc; n++)
		argv[n] = s->reference_argv[n];
	argv[n++] = dir;
	argv[n] = NULL;
	struct spawn_request q = {.argv = argv, .cwd = spec_dir, .err = SPAWN_CAPTURE,
				  .err_cap = 4096, .wall_s = 300};
	if (spawn_run(&q, &r, e) < 0)
		return -1;
	int bad = r.code != 0;
	if (bad)
		err_set(e, EX_BADINPUT, "reference command of '%s': %s: %.200s", s->name,
			spawn_words(&r, words), buf_str(&r.err));
	spawn_result_free(&r);
	return bad ? -1 : 0;
}

int oracle_command(const struct spec *s, const char *spec_dir, const struct axes *a,
		   const uint8_t *in, const double *scalars, uint8_t *ref, struct err *e)
{
	char dir[] = "/tmp/touchstone-reference-XXXXXX";

	if (s->reference_argc == 0)
		return err_set(e, EX_BADINPUT, "spec '%s' has no reference", s->name);
	if (!mkdtemp(dir))
		return err_sys(e, "cannot make a temporary folder");
	int r = write_meta(s, a, scalars, dir, e) < 0 || write_inputs(s, a, in, dir, e) < 0 ||
				run(s, spec_dir, dir, e) < 0 || read_outputs(s, a, dir, ref, e) < 0
			? -1
			: 0;
	dir_remove(dir, r < 0 ? NULL : e);
	return r;
}
