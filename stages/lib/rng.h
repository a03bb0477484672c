/*
 * rng.h - keyed random streams and the key tree.
 *
 * A stream is ChaCha20 (libcrypto) under HMAC-SHA-256(key, label): knowing any output, or any
 * number of sibling streams, tells nothing about the rest. Same key and label, same stream, on
 * every machine.
 *
 *   run key (32 random bytes, trials/runs/R/key)
 *     trial key = HMAC(run key, "trial:" id)
 *       stage key = HMAC(trial key, "stage:" name)   published with that stage's verdict
 *         workload key = HMAC(stage key, "work:" ...)  what its shape, sets and reps are drawn from
 *           rep key  = HMAC(workload key, "rep:" ...)  one way: a rep tells nothing of the next
 *
 * rng_open ... rng_close; close wipes. Out of memory or a broken libcrypto aborts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_RNG_H
#define TS_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	void *ctx; /* EVP_CIPHER_CTX */
	uint8_t buf[4096];
	size_t pos, len;
};

void rng_key(uint8_t out[32], const uint8_t key[32], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void rng_open(struct rng *r, const uint8_t key[32], const char *label);
void rng_close(struct rng *r);
void rng_wipe(void *p, size_t n); /* not optimised away */

uint64_t rng_u64(struct rng *r);
uint32_t rng_u32(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* uniform in [0,n), unbiased; 0 when n == 0 */
double rng_unit(struct rng *r);                /* [0,1), 53 bits */
double rng_normal(struct rng *r);              /* mean 0, deviation 1 */
void rng_bytes(struct rng *r, void *out, size_t n);

#endif
