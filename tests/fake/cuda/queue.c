/*
 * queue.c - the device thread, streams and events of the fake driver.
 *
 * The device's clock is the CPU time of its thread, plus fixed costs of events and launches, plus what
 * kernels ask for with __nanosleep: other jobs on this host hardly disturb it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct task {
	struct task *next;
	struct fake_ops ops;
	uint64_t seq;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, less = PTHREAD_COND_INITIALIZER;
static struct task *head, **tail = &head;
static uint64_t queued, finished;
static volatile int sticky;
static int running;
static struct CUstream_st null_stream;

/* Of the device thread. */
static _Thread_local int mine;
static sigjmp_buf back;
static volatile int fault;
static uint64_t added;

int fake_sticky(void)
{
	return sticky;
}

/* --- clock --- */

uint64_t fake_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + added;
}

void fake_clock_add(uint64_t ns)
{
	added += ns;
}

/* --- the device thread --- */

void fake_fault(int code)
{
	fault = code;
	siglongjmp(back, 1);
}

static void on_signal(int sig)
{
	if (!mine) { /* somebody else's crash */
		signal(sig, SIG_DFL);
		raise(sig);
		return;
	}
	fake_fault(sig == SIGSEGV || sig == SIGBUS ? CUDA_ILLEGAL_ADDRESS : FAKE_LAUNCH_FAILED);
}

static void signals_take(void)
{
	static char space[65536];
	static const int all[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	stack_t s = {.ss_sp = space, .ss_size = sizeof space};
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = on_signal;
	a.sa_flags = SA_ONSTACK | SA_NODEFER;
	sigaltstack(&s, NULL);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		sigaction(all[i], &a, NULL);
}

static void set32(uint64_t to, unsigned value, size_t n)
{
	uint32_t *p = (void *)(uintptr_t)to;
	for (size_t i = 0; i < n; i++)
		p[i] = value;
}

static void op_run(const struct fake_op *op)
{
	switch (op->kind) {
	case FAKE_KERNEL:
		added += FAKE_KERNEL_NS;
		fake_run_kernel(op);
		break;
	case FAKE_COPY:
		memmove((void *)(uintptr_t)op->to, op->staged ? op->staged : (void *)(uintptr_t)op->from, op->n);
		break;
	case FAKE_SET8:
		memset((void *)(uintptr_t)op->to, (int)op->value, op->n);
		break;
	case FAKE_SET32:
		set32(op->to, op->value, op->n);
		break;
	case FAKE_EVENT:
		added += FAKE_EVENT_NS;
		op->event->ns = fake_clock() / FAKE_TICK_NS * FAKE_TICK_NS;
		op->event->done = 1;
		break;
	}
}

static void task_run(struct task *t)
{
	for (volatile size_t i = 0; i < t->ops.n && !sticky; i++) {
		const struct fake_op *op = &t->ops.op[i];
		if (sigsetjmp(back, 0) == 0) {
			op_run(op);
		} else {
			fake_say("%s: error %d", op->kind == FAKE_KERNEL ? op->func->name : "copy", fault);
			sticky = fault;
		}
	}
}

static void *device(void *unused)
{
	(void)unused;
	mine = 1;
	signals_take();
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!head)
			pthread_cond_wait(&more, &lock);
		struct task *t = head;
		pthread_mutex_unlock(&lock);
		task_run(t);
		fake_ops_free(&t->ops);
		pthread_mutex_lock(&lock);
		head = t->next;
		if (!head)
			tail = &head;
		finished = t->seq;
		free(t);
		pthread_cond_broadcast(&less);
	}
	return NULL;
}

int fake_thread_start(void)
{
	pthread_t id;
	pthread_attr_t a;
	sigset_t all, old;
	if (running)
		return 0;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, (size_t)8 << 20);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int failed = pthread_create(&id, &a, device, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&a);
	if (failed)
		return CUDA_OUT_OF_MEMORY;
	pthread_detach(id);
	running = 1;
	return 0;
}

uint64_t fake_submit(struct fake_ops *ops)
{
	struct task *t = calloc(1, sizeof *t);
	if (!t)
		abort();
	t->ops = *ops;
	pthread_mutex_lock(&lock);
	t->seq = ++queued;
	uint64_t seq = t->seq;
	*tail = t;
	tail = &t->next;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
	return seq;
}

int fake_wait(uint64_t seq)
{
	pthread_mutex_lock(&lock);
	while (finished < seq)
		pthread_cond_wait(&less, &lock);
	pthread_mutex_unlock(&lock);
	return sticky;
}

int fake_drain(void)
{
	pthread_mutex_lock(&lock);
	uint64_t seq = queued;
	pthread_mutex_unlock(&lock);
	return fake_wait(seq);
}

/* --- streams --- */

int fake_enqueue(CUstream s, const struct fake_op *op)
{
	struct fake_ops one = {0};
	if (!s)
		s = &null_stream;
	if (s->capture)
		return s->invalid ? FAKE_CAPTURE_INVALIDATED : fake_ops_add(&s->capture->ops, op);
	int r = fake_ops_add(&one, op);
	if (r)
		return r;
	s->seq = fake_submit(&one);
	if (op->kind == FAKE_EVENT)
		op->event->seq = s->seq;
	return 0;
}

CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
	int r = fake_ready();
	if (r || flags > 1)
		return r ? r : CUDA_INVALID_VALUE;
	*s = calloc(1, sizeof **s);
	return *s ? 0 : CUDA_OUT_OF_MEMORY;
}

CUresult cuStreamSynchronize(CUstream s)
{
	int r = fake_ready_uncaptured();
	return r ? r : fake_wait(s ? s->seq : null_stream.seq);
}

CUresult cuStreamBeginCapture_v2(CUstream s, int mode)
{
	int r = fake_ready();
	if (r)
		return r;
	if (!s || mode < 0 || mode > 2)
		return s ? CUDA_INVALID_VALUE : FAKE_CAPTURE_UNSUPPORTED;
	if (s->capture)
		return 401; /* illegal state */
	s->capture = calloc(1, sizeof *s->capture);
	s->invalid = 0;
	if (!s->capture)
		return CUDA_OUT_OF_MEMORY;
	fake_capture_begin(1);
	return 0;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	*g = NULL;
	if (!s || !s->capture)
		return FAKE_CAPTURE_UNMATCHED;
	int spoiled = fake_capture_begin(-1);
	*g = s->capture;
	s->capture = NULL;
	if (!spoiled && !s->invalid)
		return fake_ready();
	cuGraphDestroy(*g);
	*g = NULL;
	return FAKE_CAPTURE_INVALIDATED;
}

/* A stream of ours is one line of work: its last node is all that anything depends on. */
CUresult cuStreamGetCaptureInfo_v2(CUstream s, int *status, uint64_t *id, CUgraph *g, const CUgraphNode **deps,
				   size_t *n)
{
	static CUgraphNode last;
	int r = fake_ready();
	if (r)
		return r;
	*status = s && s->capture ? s->invalid ? 2 : 1 : 0;
	*id = 1;
	if (g)
		*g = s ? s->capture : NULL;
	last = s && s->capture && s->capture->ops.n ? (CUgraphNode)(uintptr_t)s->capture->ops.n : NULL;
	if (deps)
		*deps = &last;
	if (n)
		*n = last != NULL;
	return 0;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream s, CUgraphNode *deps, size_t n, unsigned flags)
{
	int r = fake_ready();
	if (r)
		return r;
	if (!s || !s->capture || flags > 1)
		return CUDA_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if ((uintptr_t)deps[i] < 1 || (uintptr_t)deps[i] > s->capture->ops.n)
			return CUDA_INVALID_VALUE;
	return 0;
}

/* --- events --- */

CUresult cuEventCreate(CUevent *e, unsigned flags)
{
	int r = fake_ready();
	if (r || flags > 7)
		return r ? r : CUDA_INVALID_VALUE;
	*e = calloc(1, sizeof **e);
	if (!*e)
		return CUDA_OUT_OF_MEMORY;
	(*e)->timing = !(flags & 2);
	return 0;
}

CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned flags)
{
	int r = fake_ready();
	if (r)
		return r;
	if (!e || flags > 1)
		return e ? CUDA_INVALID_VALUE : FAKE_INVALID_HANDLE;
	int capturing = s && s->capture;
	if (flags == CU_EVENT_EXTERNAL && !capturing)
		return CUDA_INVALID_VALUE;
	if (capturing && !flags) { /* a dependency, nothing that ever has a time */
		e->captured = 1;
		return 0;
	}
	e->captured = 0;
	e->recorded = 1;
	if (!capturing)
		e->done = 0;
	struct fake_op op = {.kind = FAKE_EVENT, .event = e};
	return fake_enqueue(s, &op);
}

CUresult cuEventRecord(CUevent e, CUstream s)
{
	return cuEventRecordWithFlags(e, s, 0);
}

CUresult cuEventQuery(CUevent e)
{
	int r = fake_ready_uncaptured();
	if (r)
		return r;
	if (!e || e->captured)
		return e ? FAKE_CAPTURED_EVENT : FAKE_INVALID_HANDLE;
	return !e->recorded || e->done ? 0 : CUDA_NOT_READY;
}

CUresult cuEventSynchronize(CUevent e)
{
	int r = fake_ready_uncaptured();
	if (r)
		return r;
	if (!e || e->captured)
		return e ? FAKE_CAPTURED_EVENT : FAKE_INVALID_HANDLE;
	return fake_wait(e->seq);
}

CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
	int r = fake_ready();
	if (r)
		return r;
	if (!a || !b || a->captured || b->captured || !a->recorded || !b->recorded || !a->timing || !b->timing)
		return FAKE_INVALID_HANDLE;
	if (!a->done || !b->done)
		return CUDA_NOT_READY;
	*ms = (float)((double)((int64_t)b->ns - (int64_t)a->ns) * 1e-6);
	return 0;
}
