/*
 * script.h - what the test server answers.
 *
 * A script is {"replies": [R, ...]}; request n gets R number n, later ones the last (or, with
 * --model, a proposal). Members of R, all optional:
 *   status 200, headers {..}, delay_ms 0 (before the first byte)
 *   one of  text      wrapped into a chat completion, with the members below
 *           body      literal        body_file  literal, from a file
 *           hex       literal bytes
 *           model     true: a proposal made from the prompt
 *           drop      true: close without an answer     reset: true: with a TCP reset
 *   content null instead of text ("content": null), refusal "..", tool_calls true
 *   finish_reason "stop", usage {..} or null, model_name, reasoning "..", reasoning_field
 *   stream true: as server-sent events, a few characters a chunk; keepalive true: comments
 *     between; chunk_delay_ms; usage_chunk false: none; done false: no [DONE], no finish_reason
 *   chunked true: Transfer-Encoding: chunked; cut N: close after N bytes of the body
 *   no_length true: no Content-Length, the end is the close
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_TEST_SCRIPT_H
#define TS_TEST_SCRIPT_H

#include "../../stages/lib/buf.h"
#include "../../stages/lib/err.h"

/* Answer request n (from 1) whose body is `request` on fd. */
int script_answer(int fd, const char *script, int model, int n, const struct buf *request, struct err *e);

/* model.c: a legal proposal for the prompt inside a chat request; deterministic. */
int model_reply(const struct buf *request, struct buf *text, struct err *e);

#endif
