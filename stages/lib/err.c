/*
 * err.c - see err.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program = "touchstone";

/* A message is one line whatever was put into it: text from files must not forge a second. */
static void one_line(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
}

int err_put(struct err *e, int code, const char *fmt, ...)
{
	if (!e)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	one_line(e->text);
	e->code = code;
	return -1;
}

int err_put_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	if (!e)
		return -1;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	size_t n = strlen(e->text);
	snprintf(e->text + n, sizeof e->text - n, ": %s", strerror(saved));
	one_line(e->text);
	e->code = EX_SYS;
	errno = saved;
	return -1;
}

void prog_name(const char *argv0)
{
	const char *slash = strrchr(argv0, '/');
	program = slash ? slash + 1 : argv0;
}

const char *prog_get(void)
{
	return program;
}

void die(int code, const char *fmt, ...)
{
	struct err e;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e.text, sizeof e.text, fmt, ap);
	va_end(ap);
	one_line(e.text);
	e.code = code;
	die_err(&e);
}

void die_err(const struct err *e)
{
	fprintf(stderr, "%s: %s\n", program, e->text);
	exit(e->code ? e->code : EX_HARNESS);
}

void warn(const char *fmt, ...)
{
	char text[480];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	one_line(text);
	fprintf(stderr, "%s: %s\n", program, text);
}
