/*
 * defence.h - the rules of the judge by name, and one build in which a test can switch them off.
 *
 * DEFENCE("judge.rel_l2") stands where the rule decides. In every build that judges anything it is
 * the constant 1: nothing can switch a rule off, and the names are not even in the programs. Built
 * with ZOO=1 (folder .build-zoo, for tests/zoo and the mutation test alone) it is 0 when the variable
 * TS_OFF, names separated by commas, holds the name; every process that spawn starts inherits TS_OFF.
 *
 * A rule with a reason code is called by it ("guard.include"); a mechanism that makes rules work
 * has a name of its own ("poison.outputs", "fresh.inputs"). Names are literals, each
 * decision has one, and tests/zoo shows for each what gets through without it. Where one function says
 * no for many rules (source.c, the gates of the box, reply.c), the name is the reason code it is given.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_DEFENCE_H
#define TS_DEFENCE_H

#ifdef TS_ZOO
int defence_on(const char *name); /* 0 when TS_OFF names it */
const char *defences_off(void);   /* the whole list: what is made with it is kept apart */
#define DEFENCE(name) defence_on(name)
#define DEFENCES_OFF defences_off()
#else
#define DEFENCE(name) 1
#define DEFENCES_OFF ""
#endif

#endif
