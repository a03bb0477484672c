/*
 * host_cuda.h - what comes between the emulated device's prefix and a kernel that is built for the
 * fake driver. Everything else is the emulated device's CUDA C: stages/emu/include.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FAKE_HOST_CUDA_H
#define FAKE_HOST_CUDA_H

#define FAKE_CUDA_HOST 1

/* Code that has another way where there are no warps takes it: a host's shuffles are switches of stacks. */
#undef __CUDA_ARCH__

/* On the device's clock only: the host does not wait. */
extern "C" void fake_nanosleep(unsigned ns);
#define __nanosleep fake_nanosleep

/* A kernel runs on the host's copy of a variable; where its module keeps that one, and what lies beside: */
extern "C" void *fake_own(const void *variable);
#define OWN(variable) ((volatile unsigned *)fake_own(&(variable)))

#endif
