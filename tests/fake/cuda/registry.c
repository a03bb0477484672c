/*
 * registry.c - the host builds of kernels that this library carries, by kernel name.
 *
 * FAKE_UNITS (the .cu files of kernels/ and check.cu) and fake_objects.h (their variables) come from
 * build.mk.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <string.h>

#define UNIT(name) extern const struct emu_entry fake_entries_##name[];
FAKE_UNITS
#undef UNIT
#define OBJECT(name, bytes) extern char name[];
#include "fake_objects.h"
#undef OBJECT

static const struct emu_entry *const units[] = {
#define UNIT(name) fake_entries_##name,
	FAKE_UNITS
#undef UNIT
};

static const struct {
	const char *name;
	char *at;
	size_t bytes;
} objects[] = {
#define OBJECT(name, bytes) {#name, name, bytes},
#include "fake_objects.h"
#undef OBJECT
	{NULL, NULL, 0},
};

const struct emu_entry *fake_host_find(const char *kernel)
{
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		for (const struct emu_entry *e = units[i]; e->name; e++)
			if (strcmp(e->name, kernel) == 0)
				return e;
	return NULL;
}

void *fake_host_object(const char *name, size_t *bytes)
{
	for (size_t i = 0; objects[i].name; i++)
		if (strcmp(objects[i].name, name) == 0) {
			*bytes = objects[i].bytes;
			return objects[i].at;
		}
	return NULL;
}
