/* Its contents come with emu_prefix.h.
 *
 * SPDX-License-Identifier: MIT
 */
