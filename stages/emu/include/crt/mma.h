/* SPDX-License-Identifier: Apache-2.0 */
#error "not emulable: <crt/mma.h> is not available on the emu device"
