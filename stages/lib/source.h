/*
 * source.h - what kernel.cu may say, told early and in words.
 *
 * These rules are for friendly errors and defence in depth; what decides is the artefact and the
 * measured behaviour (design: judge behaviour, not spelling). All of them read the tokens of
 * lexer.h, so they agree with each other about what is code.
 *
 * Each check returns 0 when the text passes, 1 with the first finding. Nothing fails otherwise.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_SOURCE_H
#define TS_SOURCE_H

#include <stddef.h>

struct source_finding {
	const char *code;  /* a reason code, static */
	int line;          /* 1-based; 0 none */
	char message[240]; /* printable ASCII; quotes at most 64 characters of the source */
};

struct source_rules {
	int asm_ok;                  /* 0: inline assembly cannot run on this device */
	const char *const *headers;  /* declared header trees of the spec ("cutlass"), NULL-terminated or NULL */
	int expanded;                /* 1: text as the preprocessor left it; see source_expanded */
};

/* Printable ASCII, tab and newline only; 1..max bytes. `name` is the file's. */
int source_ascii(const char *name, const char *text, size_t len, size_t max, struct source_finding *f);
/* Strings that look like keys and tokens of well-known services. */
int source_credential(const char *name, const char *text, size_t len, struct source_finding *f);
/* Lexical oddities, directives, headers, attributes, reserved names, host code, assembly. */
int source_check(const char *text, size_t len, const struct source_rules *r, struct source_finding *f);

/* What the host's preprocessor makes of kernel.cu: words put together from pieces are whole in it, and so
 * are attributes, pragmas and builtins that only a host's compiler knows. `text` is all of its output. */
int source_expanded(const char *text, size_t len, struct source_finding *f);

/* 1 when `name` stands anywhere in the code. */
int source_names(const char *text, size_t len, const char *name);

#endif
