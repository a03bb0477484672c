/* SPDX-License-Identifier: Apache-2.0 */
#error "not emulable: <cuda_fp8.h> is not available on the emu device"
