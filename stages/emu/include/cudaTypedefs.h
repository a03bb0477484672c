/* SPDX-License-Identifier: MIT */
#error "not emulable: <cudaTypedefs.h> is not available on the emu device"
