/*
 * zoo.cu - the host builds of specimens of the zoo (tests/zoo/fake.sh), from their own text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../../zoo/cheat/N21-oob_stash/kernel.cu"
#include "../../../zoo/cheat/N22-slow_champion/champion.cu"
#include "../../../zoo/cheat/N22-slow_champion/kernel.cu"
