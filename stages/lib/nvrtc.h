/*
 * nvrtc.h - one compile by NVRTC, as a process of its own inside the box.
 *
 * box runs itself again as `box --nvrtc LIB OUT [NAME...] -- OPTION... [-- OPTION...]`: the library is opened there,
 * so whatever hostile text does to it ends with that process, and the gates of the box look at its
 * files from outside. Reads ./source; writes OUT.cubin, OUT.ptx; prints the version and, for each
 * NAME, the symbol it became. The compiler's log goes to stderr. With a second list of options the
 * source is compiled with those too, at the same time, into L.ptx: if OUT.ptx reads a clock.
 *
 * Exit: 0 done, 1 the source is refused, 4 out of memory or an internal error of the library,
 * 5 no such library or too old, 6 it has no such GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_NVRTC_H
#define TS_NVRTC_H

enum { NVRTC_DONE, NVRTC_REFUSED, NVRTC_BROKEN = 4, NVRTC_MISSING = 5, NVRTC_ARCH = 6, NVRTC_SYS = 7 };

int nvrtc_main(int argc, char **argv);

/* Standard headers that NVRTC lacks and candidates include by habit: names and texts, count. */
extern const char *const nvrtc_header_names[], *const nvrtc_header_texts[];
extern const int nvrtc_header_count;

#endif
