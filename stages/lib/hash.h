/*
 * hash.h - SHA-256 and HMAC-SHA-256 by libcrypto, as 64 lower-case hex digits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_HASH_H
#define TS_HASH_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

#define HASH_HEX 65 /* 64 digits and the NUL */

void hash_bytes(const void *data, size_t len, uint8_t out[32]);
void hash_hex(const void *data, size_t len, char out[HASH_HEX]);
int hash_file(const char *path, char out[HASH_HEX], struct err *e); /* any size, regular files */
void hash_hmac(const void *key, size_t keylen, const void *data, size_t len, uint8_t out[32]);
void hash_to_hex(const uint8_t in[32], char out[HASH_HEX]);
int hash_is_hex(const char *s);                      /* exactly 64 lower-case hex digits */
int hash_equal(const void *a, const void *b, size_t len); /* constant time; 1 equal */

#endif
