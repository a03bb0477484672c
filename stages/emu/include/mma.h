/* SPDX-License-Identifier: MIT */
#error "not emulable: <mma.h> is not available on the emu device"
