/*
 * roofline.c - see roofline.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roofline.h"

#include <math.h>
#include <string.h>

/* The unit that the operands of this spec are for; 0 none measured. */
static double unit(const struct spec *s, const struct worker_ceilings *c, enum roofline_use use)
{
	switch (s->operand) {
	case DT_BF16:
		return c->bf16_tflops;
	case DT_F16:
		return c->fp16_tflops;
	case DT_E4M3:
	case DT_E5M2:
		return 2 * c->fp16_tflops; /* half the bits, twice the rate, on every tensor core that has them */
	case DT_F32:
		if (s->tf32)
			return c->bf16_tflops / 2; /* twice the bits of bf16 */
		return use == ROOFLINE_LIMIT ? fmax(c->fp32_tflops, c->bf16_tflops / 3) : c->fp32_tflops;
	default:
		return 0;
	}
}

void roofline_of(const struct spec *s, const struct axes *a, const struct worker_ceilings *c,
		 enum roofline_use use, struct roofline *out)
{
	memset(out, 0, sizeof *out);
	if (c->copy_gbs <= 0 || spec_cost(s, a, &out->bytes, &out->flops, NULL))
		return;
	out->gbs = use == ROOFLINE_FAIR ? c->copy_gbs : fmax(c->copy_gbs, fmax(c->read_gbs, c->write_gbs));
	out->tflops = unit(s, c, use);
	if (out->bytes > 0)
		out->memory_ns = (double)out->bytes / out->gbs; /* GB/s is bytes a nanosecond */
	if (out->flops > 0 && out->tflops > 0)
		out->compute_ns = (double)out->flops / (1000 * out->tflops);
	out->floor_ns = fmax(out->memory_ns, out->compute_ns);
	if (out->floor_ns > 0)
		out->bound = out->memory_ns >= out->compute_ns ? ROOFLINE_MEMORY : ROOFLINE_COMPUTE;
}

const char *roofline_bound_name(enum roofline_bound b)
{
	return b == ROOFLINE_MEMORY ? "memory" : b == ROOFLINE_COMPUTE ? "compute" : "none";
}
