/* SPDX-License-Identifier: MIT */
#error "not emulable: <crt/mma.h> is not available on the emu device"
