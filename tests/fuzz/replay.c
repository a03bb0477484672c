/*
 * replay.c - feed files, or every file of a folder, to a fuzz target: for compilers without libFuzzer.
 *
 *   fuzz_NAME FILE|FOLDER ...
 *
 * Ends with 0 when every input came back; a finding aborts, the last line says with which file.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static int runs;

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(1 << 20);
	if (!f || !data) {
		perror(path);
		free(data);
		return 1;
	}
	size_t n = fread(data, 1, 1 << 20, f);
	fclose(f);
	/* exact size: reading beyond the input is a finding */
	uint8_t *exact = malloc(n ? n : 1);
	if (exact && n)
		memcpy(exact, data, n);
	free(data);
	fprintf(stderr, "%s\r", path);
	if (exact)
		LLVMFuzzerTestOneInput(exact, n);
	free(exact);
	runs++;
	return 0;
}

static int replay_folder(const char *path)
{
	DIR *d = opendir(path);
	int bad = 0;
	if (!d)
		return replay_file(path);
	for (struct dirent *e; (e = readdir(d));) {
		char name[4096];
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		bad |= replay_file(name);
	}
	closedir(d);
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0;
	for (int i = 1; i < argc; i++)
		bad |= replay_folder(argv[i]);
	fprintf(stderr, "\n");
	printf("%d inputs\n", runs);
	return bad;
}
