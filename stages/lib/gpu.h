/*
 * gpu.h - the GPUs of this machine, as the probe role (stages/roles/probe.c) reports them.
 *
 * No process of ours but probe opens NVML; the driver is opened by probe, worker and checker only.
 * gpu_list runs `probe devices` (0.3 s a GPU); gpu_state runs `probe state UUID`, which needs no
 * context. Everything is queried, nothing assumed.
 *
 * device.json of a run (trials/runs/R/device.json, pinned in run.json) is the report of the GPU that
 * the run is for, with its ceilings; facts_of_run reads it, so that every step resolves plans with
 * the same numbers. A stage that times takes any GPU of that model whose facts are equal (gpu_take):
 * one lane each.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TS_GPU_H
#define TS_GPU_H

#include "buf.h"
#include "err.h"
#include "facts.h"
#include "jsonw.h"
#include "lane.h"
#include "run.h"
#include "spawn.h"
#include "worker_call.h"

#include <cjson/cJSON.h>
#include <stdint.h>

enum { GPU_MAX = 16, GPU_UUID = 48, GPU_WHY = 160 };

struct gpu {
	int index;
	char uuid[GPU_UUID];         /* "GPU-xxxxxxxx-..." */
	struct facts facts;          /* class cuda, name, slug "nvidia-h200", ... */
	char arch[16];               /* "sm_90a": what to compile for */
	int capability;              /* 90 */
	int64_t memory_bytes;
	int driver, cuda;            /* 580 (major), 13000 */
	char driver_version[32];     /* "580.159.04" */
	int sm_mhz_max, mem_mhz_max, power_limit_w;
	/* 1, 0, -1 unknown. mig: this is an instance. sees: NVML shows us our own processes by their
	 * pids, so that it would show others'. */
	int ecc, mig, mps, persistence, vmm_export, sees;
	int others;                  /* compute processes that are not ours, when it was asked; -1 unknown */
	char compute_mode[24];       /* "default", "exclusive_process", "prohibited" */
	int usable;
	char why[GPU_WHY];           /* when not */
	struct worker_ceilings ceilings; /* zeros: not measured */
};

/* Momentary state, for bench.json: per session, before and after. */
struct gpu_state {
	int temperature_c, power_w, sm_mhz, mem_mhz;
	uint64_t throttle_reasons;   /* NVML clocks event reasons */
	uint64_t power_violation_ns, thermal_violation_ns; /* counters since boot; 0 unknown */
	int foreign;                 /* compute processes that are not ours; -1 cannot be told here */
	int foreign_pid;             /* one of them */
	int graphics;                /* graphics processes: lowers the claim */
};

/* n GPUs into g[]; 0 when none. *why says why none (no driver...). */
int gpu_list(struct gpu g[GPU_MAX], int *n, char why[GPU_WHY], struct err *e);
void gpu_forget(void); /* gpu_list asks once per process; the next call asks again */
/* Ours are the programs of this build, by the file they run. */
int gpu_state(const char *uuid, struct gpu_state *s, struct err *e);
/* The same in two steps: what takes time meanwhile costs nothing. What was asked must be told. */
struct gpu_question {
	struct spawn_proc probe;
};
int gpu_state_ask(struct gpu_question *q, const char *uuid, struct err *e);
int gpu_state_told(struct gpu_question *q, struct gpu_state *s, struct err *e);
/* Of the text that `probe devices` writes, and `probe state`. */
int gpu_list_parse(const char *text, size_t len, struct gpu g[GPU_MAX], int *n, char why[GPU_WHY],
		   struct err *e);
int gpu_state_parse(const char *text, size_t len, struct gpu_state *s, struct err *e);
void gpu_write(const struct gpu *g, struct jsonw *w, const char *key);
void gpu_ceilings_write(const struct worker_ceilings *c, struct jsonw *w, const char *key); /* or null */
int gpu_parse(const cJSON *json, const char *what, struct gpu *g, struct err *e);
void gpu_state_write(const struct gpu_state *s, struct jsonw *w, const char *key);

/* Of n GPUs the ablest usable one, of any kind ("cuda") or of one model (a slug); -1 none. */
int gpu_pick(const struct gpu *g, int n, const char *device);
/* The same of this machine. EX_NOENV with the reason. */
int gpu_find(const char *device, struct gpu *g, struct err *e);
/* Ceilings of g: from .build/cache/devices/, else measured (2-3 s, under its lane) and kept there. */
int gpu_calibrate(struct gpu *g, struct err *e);
int gpu_measure(struct gpu *g, struct err *e); /* measured in any case */
int gpu_known_ceilings(struct gpu *g);         /* only what is kept; 1 when there is any */

/* device.json: written (its hash into sha) and read. gpu_pin makes that of a new run in DIR
 * and counts the usable GPUs here with its facts. */
int gpu_save(const struct gpu *g, const char *toolkit, const char *path, char sha[HASH_HEX], struct err *e);
int gpu_device_parse(const char *text, size_t len, const char *what, struct gpu *g, char toolkit[32],
		     struct err *e);
int gpu_pin(const char *dir, const char *device, int *gpus, char sha[HASH_HEX], struct err *e);

/* trials/runs/R/device.json, checked against its pin. */
int gpu_of_run(const struct run *r, struct gpu *g, struct err *e);
int gpu_of_run_toolkit(const struct run *r, struct gpu *g, char toolkit[32], struct err *e);
/* emu and sim: constants; else gpu_of_run. What stages call. */
int facts_of_run(const struct run *r, const char *device, struct facts *f, struct err *e);

/* 1 and what differs when plans would resolve differently on the two. */
int gpu_differs(const struct gpu *want, const struct gpu *got, char out[GPU_WHY]);
/* Which GPUs here may serve the run: noted in trials/runs/R/gpus.json. EX_NOENV, with what differs,
 * when none. Nothing to do on emu and sim. iterate calls it at every start. */
int gpu_admit(const struct run *r, struct err *e);
/* Take the lane of one of them: the first free one, else wait. `g` gets it, with the run's ceilings.
 * On emu and sim: lane_exclusive, g is left alone. */
int gpu_take(const struct run *r, struct lane *l, struct gpu *g, struct err *e);
/* For reports: those GPUs and who holds their lanes (0 nobody). How many; 0 on emu and sim. */
int gpu_lanes(const struct run *r, struct gpu g[GPU_MAX], long holder[GPU_MAX], struct err *e);

#endif
