/* SPDX-License-Identifier: MIT */
#error "not emulable: <cuda_fp4.h> is not available on the emu device"
