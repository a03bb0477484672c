/*
 * defence.c - the switch of the test-only build; empty in every other.
 *
 * SPDX-License-Identifier: MIT
 */
#include "defence.h"

#ifdef TS_ZOO
#include <stdlib.h>
#include <string.h>

int defence_on(const char *name)
{
	const char *p = getenv("TS_OFF");
	size_t n = strlen(name);

	while (p && *p) {
		size_t len = strcspn(p, ",");
		if (len == n && strncmp(p, name, n) == 0)
			return 0;
		p += len + (p[len] == ',');
	}
	return 1;
}

const char *defences_off(void)
{
	const char *off = getenv("TS_OFF");
	return off ? off : "";
}
#else
typedef int defence_c_is_empty; /* ISO C wants something in a file */
#endif
