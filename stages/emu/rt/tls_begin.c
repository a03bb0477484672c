/* First object of the link: where the candidate's thread-local block begins.
 *
 * SPDX-License-Identifier: MIT
 */
_Alignas(1024) _Thread_local char emu_tls_begin[1024];
