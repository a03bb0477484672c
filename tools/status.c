/*
 * status.c - how the newest run stands, the champions, and which records other builds made.
 *
 * Reads trials/, champion/ and its own folder of programs; writes nothing and takes no lock, so
 * it works from another terminal while a run is on. (--calibrate takes the lane of each GPU in turn.)
 *
 * SPDX-License-Identifier: MIT
 */
#include "../stages/lib/device.h"
#include "../stages/lib/file.h"
#include "../stages/lib/gpu.h"
#include "../stages/lib/json.h"
#include "../stages/lib/lock.h"
#include "../stages/lib/run.h"
#include "../stages/lib/runs.h"
#include "../stages/lib/spawn.h"
#include "../stages/lib/summary.h"
#include "../stages/lib/verdict.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
	"usage: status [--champion [--SPEC=name] | --stale | --devices |\n"
	"              --calibrate]\n"
	"\n"
	"  (none)       the newest run: trials by verdict and reason, champion, spend, what is in\n"
	"               flight\n"
	"  --champion   the best candidate of every problem (or of SPEC) on every device\n"
	"  --stale      trials with verdicts of programs other than the present builds\n"
	"  --devices    what this machine can run on, and why not on the rest\n"
	"  --calibrate  the same, after measuring the ceilings of every usable GPU anew; they are kept\n"
	"               below .build/cache/devices/\n"
	"\n"
	"exit: 0 done, 2 usage, 3 malformed record\n";

/* The last step of an open trial that has a verdict, and whether a program is at work on it. */
static void print_open(const char *id)
{
	char path[TRIAL_PATH], name[40];
	int last = -1;
	for (int i = 0; i < STEP_COUNT; i++) {
		trial_step_path(path, id, (enum step)i);
		if (file_exists(path))
			last = i;
	}
	snprintf(name, sizeof name, "trial-%s", id);
	long pid = lock_holder(name);
	if (pid)
		printf("  in flight %s at %s (process %ld)\n", id,
		       step_info((enum step)(last + 1))->name, pid);
	else if (last >= 0)
		printf("  open      %s, next %s\n", id, step_info((enum step)(last + 1))->name);
}

static int print_run(struct err *e)
{
	char name[TRIAL_ID], path[TRIAL_PATH];
	struct run r;
	struct summary s;
	if (runs_newest(name, e))
		return -1;
	if (!*name)
		return puts("no run yet; `make iterate` makes one") < 0;
	if (run_read(name, &r, e))
		return -1;
	long pid = lock_holder("run");
	const char *note = summary_note(&r);
	printf("run %s: %s on %s%s%s%s, proposer %s, ", name, r.spec, r.device, *note ? " (" : "",
	       note, *note ? ")" : "", r.proposer);
	if (runs_finished(name))
		puts("finished");
	else if (pid)
		printf("running (process %ld)\n", pid);
	else
		puts("interrupted; `make resume` goes on");
	summary_read(&r, &s);
	summary_rows(&r, &s);
	if (pid)
		summary_lanes(&r);
	summary_free(&s);
	char id[TRIAL_ID];
	for (int64_t i = 0; run_trial(&r, i, id) == 0; i++) {
		trial_step_path(path, id, STEP_PROMOTE);
		if (!file_exists(path))
			print_open(id);
	}
	run_free(&r);
	return 0;
}

static int by_name(const char *dir, struct dirent ***list)
{
	*list = NULL;
	int n = scandir(dir, list, NULL, alphasort);
	return n < 0 ? 0 : n;
}

static void names_free(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* The first of data.relies, or NULL. */
static const cJSON *rules(const cJSON *data)
{
	const cJSON *list = json_get(data, "relies");
	return list ? list->child : NULL;
}

static void print_champion(const char *spec, const char *device)
{
	char path[TRIAL_PATH];
	snprintf(path, sizeof path, "champion/%.64s/%.64s/evidence/promote.json", spec, device);
	cJSON *j = json_read(path, &JSON_OURS, NULL, NULL);
	const cJSON *data = j ? json_get(j, "data") : NULL;
	if (!data)
		return;
	const char *note = device_note(device);
	double ratio = json_get_num(data, "ratio_baseline", 0);
	printf("%s on %s: trial %s", spec, device, json_get_str(j, "trial", "?"));
	if (ratio > 0)
		printf(", %.3fx of the baseline", ratio);
	const char *file = "kernel.cu";
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "engine.cu" : "engine.c";
		snprintf(path, sizeof path, "champion/%.64s/%.64s/%s", spec, device, name);
		file = file_exists(path) ? name : file;
	}
	const int engine = strcmp(file, "kernel.cu") != 0;
	printf("%s%s%s\n  champion/%s/%s/%s\n", *note && !engine ? " (" : "", engine ? "" : note, *note && !engine ? ")" : "",
	       spec, device, file);
	for (const cJSON *i = rules(data); i; i = i->next)
		printf("  %s, %s: %s\n", json_get_str(j, "status", ""), json_get_str(i, "rule", ""),
		       json_get_str(i, "words", ""));
	cJSON_Delete(j);
}

static int print_champions(const char *only)
{
	struct dirent **specs, **devices;
	int n = by_name("champion", &specs), shown = 0;
	for (int i = 0; i < n; i++) {
		const char *spec = specs[i]->d_name;
		char dir[TRIAL_PATH];
		if (!trial_name_ok(spec) || strcmp(spec, "shipped") == 0 || (only && strcmp(only, spec) != 0))
			continue;
		snprintf(dir, sizeof dir, "champion/%.64s", spec);
		int m = by_name(dir, &devices);
		for (int k = 0; k < m; k++)
			if (trial_name_ok(devices[k]->d_name)) {
				print_champion(spec, devices[k]->d_name);
				shown++;
			}
		names_free(devices, m);
	}
	names_free(specs, n);
	if (!shown)
		puts("no champion yet: the baseline stands");
	return 0;
}

/* Hash of the present build of a tool; "" when there is none. Cached for a handful of names. */
static const char *present(const char *tool)
{
	static struct { char name[40], sha[HASH_HEX]; } cache[16];
	char path[512];
	int i = 0;
	while (i < 15 && *cache[i].name && strcmp(cache[i].name, tool) != 0)
		i++;
	if (strcmp(cache[i].name, tool) != 0) {
		snprintf(cache[i].name, sizeof cache[i].name, "%s", tool);
		if (spawn_tool(tool, path, sizeof path, NULL) ||
		    hash_file(path, cache[i].sha, NULL))
			cache[i].sha[0] = '\0';
	}
	return cache[i].sha;
}

static int print_stale(void)
{
	struct dirent **list;
	int n = by_name("trials", &list), stale = 0;
	for (int i = 0; i < n; i++) {
		const char *id = list[i]->d_name;
		int any = 0;
		for (int k = 0; trial_id_ok(id) && k < STEP_COUNT; k++) {
			struct verdict_in in;
			if (verdict_read(id, (enum step)k, &in, NULL))
				continue;
			const cJSON *tool = json_get(in.json, "tool");
			const char *sha = tool ? json_get_str(tool, "sha256", "") : "";
			const char *name = tool ? json_get_str(tool, "name", "") : "";
			if (in.kind != V_SKIP && trial_name_ok(name) &&
			    strcmp(sha, present(name)) != 0)
				printf("%s %s", any++ ? "" : id, step_info((enum step)k)->name);
			verdict_in_free(&in);
		}
		if (any)
			putchar('\n');
		stale += any > 0;
	}
	printf("%d trial%s made by other builds than the present ones\n", stale,
	       stale == 1 ? " was" : "s were");
	return 0;
}

static void print_gpu(const struct gpu *g, int best)
{
	static const char *const yes[] = {"unknown", "off", "on"};
	const struct facts *f = &g->facts;
	const struct worker_ceilings *c = &g->ceilings;
	printf("%-5s %s: %s, GPU %d%s\n", "cuda", f->slug, f->name, g->index, best ? "  (default)" : "");
	if (!g->usable)
		printf("        not usable: %s\n", g->why);
	if (g->mig == 1)
		puts("        an instance of a GPU (MIG): its neighbours share clocks and power with it");
	printf("        %s\n", g->uuid);
	printf("        %s, driver %s, CUDA %d.%d, compute mode %s, ECC %s, MPS %s, persistence %s\n", g->arch,
	       *g->driver_version ? g->driver_version : "unknown", g->cuda / 1000, g->cuda % 1000 / 10,
	       g->compute_mode, yes[g->ecc + 1], yes[g->mps + 1], yes[g->persistence + 1]);
	printf("        %lld SMs to %d MHz, %.1f GiB at %d MHz, %.1f MiB L2, %lld bytes shared a block, %lld "
	       "registers an SM, %d W\n", (long long)f->sm_count, g->sm_mhz_max,
	       (double)g->memory_bytes / (1 << 30), g->mem_mhz_max, (double)f->l2_bytes / (1 << 20),
	       (long long)f->max_shared, (long long)f->max_registers_sm, g->power_limit_w);
	if (g->others)
		printf("        %s\n", g->others < 0 ? "other processes: not told" : "other processes compute on it");
	if (g->sees == 0)
		puts("        its list of processes has other pids than this namespace: others' may not be noticed");
	if (c->copy_gbs > 0)
		printf("        measured: copy %.0f, read %.0f, write %.0f GB/s; fp32 %.1f, bf16 %.0f, fp16 %.0f "
		       "TFLOP/s\n", c->copy_gbs, c->read_gbs, c->write_gbs, c->fp32_tflops, c->bf16_tflops,
		       c->fp16_tflops);
}

static int devices(int measure, struct err *e)
{
	static struct gpu g[GPU_MAX];
	char why[GPU_WHY];
	struct err no;
	int n;
	if (gpu_list(g, &n, why, e))
		return -1;
	const char *best = device_default();
	int which = gpu_pick(g, n, best);
	for (int i = 0; i < n; i++) {
		if (g[i].usable && measure && gpu_measure(&g[i], &no))
			printf("GPU %d is not measured: %s\n", g[i].index, no.text);
		gpu_known_ceilings(&g[i]);
		print_gpu(&g[i], i == which);
	}
	if (!n)
		printf("%-5s %s\n", "cuda", why);
	else if (which < 0 && device_check("cuda", &no))
		printf("%-5s not the default: %s\n", "cuda", no.text);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "sim" : "emu";
		int bad = device_check(name, &no);
		printf("%-5s %s%s\n", name, bad ? no.text : device_note(name),
		       strcmp(name, best) == 0 ? "  (default)" : "");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct err e = {0};
	const char *spec = NULL;
	int champion = 0, stale = 0, list = 0, measure = 0;
	prog_name(argv[0]);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-h") == 0) {
			fputs(HELP, stdout);
			return fflush(stdout) ? EX_SYS : EX_DONE;
		}
		if (strcmp(argv[i], "--champion") == 0)
			champion = 1;
		else if (strcmp(argv[i], "--devices") == 0)
			list = 1;
		else if (strcmp(argv[i], "--calibrate") == 0)
			list = measure = 1;
		else if (strcmp(argv[i], "--stale") == 0)
			stale = 1;
		else if (strncmp(argv[i], "--SPEC=", 7) == 0)
			spec = argv[i] + 7;
		else
			die(EX_BADUSE, "'%s' is no option; -h for help", argv[i]);
	}
	int rc = list ? devices(measure, &e)
	       : champion ? print_champions(spec)
	       : stale ? print_stale() : print_run(&e);
	if (rc < 0)
		die_err(&e);
	return EX_DONE;
}
