/*
 * fuzz_elfscan.c - any bytes as a compiled candidate of the emulated device: scanned, said, patched.
 *
 * The program itself (stages/emu/elfscan.c) with its output caught. It ends by exit when it refuses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include "json.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static jmp_buf out_of_it;
static FILE *said;

static _Noreturn void leave(int code)
{
	longjmp(out_of_it, code ? code : 1);
}

/* Where the program ends, its memory goes with it. */
static void *kept[8];
static int nkept;

static void *keep(size_t n, size_t size)
{
	MUST(nkept < 8);
	return kept[nkept++] = calloc(n, size);
}

#define calloc keep
#define free(p) (void)(p)
#define main elfscan_main
#define exit leave
#define printf(...) fprintf(said, __VA_ARGS__)
#define putchar(c) putc(c, said)
#undef stderr
#define stderr said
#include "../../stages/emu/elfscan.c"
#undef calloc
#undef free
#undef main
#undef exit
#undef printf
#undef putchar
#undef stderr

static void scan(char **text, size_t *n)
{
	said = open_memstream(text, n);
	MUST(said);
	int code = setjmp(out_of_it);
	if (code) {
		MUST(code == 3);
		fclose(said);
		(*text)[0] = '\0';
		return;
	}
	list_count = 0;
	check();
	putc('{', said);
	print_symbols();
	print_sections();
	fclose(said);
}

static int patched(void)
{
	char *text;
	size_t n;
	said = open_memstream(&text, &n);
	MUST(said);
	int code = setjmp(out_of_it);
	if (!code)
		patch();
	fclose(said);
	free(text);
	return !code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t n = 0;
	file = malloc(size + 1);
	MUST(file);
	memcpy(file, data, size);
	file_bytes = size;
	scan(&text, &n);
	if (text[0]) {
		struct json_limits most = {.bytes = 64 << 20, .depth = 8};
		struct err e = {0};
		cJSON *j = json_parse(text, strlen(text), &most, "elfscan", &e);
		MUST(j || e.text[0]);
		cJSON_Delete(j);
		patched();
	}
	while (nkept)
		free(kept[--nkept]);
	free(text);
	free(file);
	return 0;
}
