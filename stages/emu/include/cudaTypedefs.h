/* SPDX-License-Identifier: Apache-2.0 */
#error "not emulable: <cudaTypedefs.h> is not available on the emu device"
