/*
 * hash.c - see hash.h.
 *
 * SPDX-License-Identifier: MIT
 */
/* The low-level SHA256_* calls skip OpenSSL 3's provider look-up, which costs more than
 * hashing a verdict does; every stage starts with one. */
#define OPENSSL_API_COMPAT 0x10100000L
#define OPENSSL_SUPPRESS_DEPRECATED 1
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void hash_bytes(const void *data, size_t len, uint8_t out[32])
{
	SHA256_CTX c;
	SHA256_Init(&c);
	SHA256_Update(&c, len ? data : "", len);
	SHA256_Final(out, &c);
}

void hash_to_hex(const uint8_t in[32], char out[HASH_HEX])
{
	static const char digit[] = "0123456789abcdef";
	for (int i = 0; i < 32; i++) {
		out[2 * i] = digit[in[i] >> 4];
		out[2 * i + 1] = digit[in[i] & 15];
	}
	out[64] = '\0';
}

void hash_hex(const void *data, size_t len, char out[HASH_HEX])
{
	uint8_t raw[32];
	hash_bytes(data, len, raw);
	hash_to_hex(raw, out);
}

int hash_file(const char *path, char out[HASH_HEX], struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "cannot open '%s'", path);
	struct stat st;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, EX_BADINPUT, "'%s' is not a regular file", path);
	}
	SHA256_CTX c;
	SHA256_Init(&c);
	char block[65536];
	for (;;) {
		ssize_t n = read(fd, block, sizeof block);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_sys(e, "cannot read '%s'", path);
			close(fd);
			return -1;
		}
		if (!n)
			break;
		SHA256_Update(&c, block, (size_t)n);
	}
	close(fd);
	uint8_t raw[32];
	SHA256_Final(raw, &c);
	hash_to_hex(raw, out);
	return 0;
}

/* RFC 2104 over libcrypto's SHA-256; written out because libcrypto's own HMAC() goes through
 * the slow provider look-up. Checked against RFC 4231 vectors in tests/unit/test_base.c. */
void hash_hmac(const void *key, size_t keylen, const void *data, size_t len, uint8_t out[32])
{
	uint8_t block[64] = {0}, pad[64], inner[32];
	if (keylen > sizeof block)
		hash_bytes(key, keylen, block);
	else if (keylen)
		memcpy(block, key, keylen);
	SHA256_CTX c;
	for (int i = 0; i < 64; i++)
		pad[i] = block[i] ^ 0x36;
	SHA256_Init(&c);
	SHA256_Update(&c, pad, sizeof pad);
	SHA256_Update(&c, len ? data : "", len);
	SHA256_Final(inner, &c);
	for (int i = 0; i < 64; i++)
		pad[i] = block[i] ^ 0x5c;
	SHA256_Init(&c);
	SHA256_Update(&c, pad, sizeof pad);
	SHA256_Update(&c, inner, sizeof inner);
	SHA256_Final(out, &c);
	OPENSSL_cleanse(block, sizeof block);
	OPENSSL_cleanse(pad, sizeof pad);
}

int hash_is_hex(const char *s)
{
	return s && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

int hash_equal(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}
