/*
 * server.c - a scripted chat-completions server on the loopback interface, for tests.
 *
 * Reads a script of replies (script.h); writes one JSON line per request to a log, so that tests
 * can count calls and see what was sent. One connection, one request; a child per connection.
 * It ends when its parent does. Never listens elsewhere than on 127.0.0.1.
 *
 * SPDX-License-Identifier: MIT
 */
#include "script.h"

#include "../../stages/lib/file.h"
#include "../../stages/lib/hash.h"
#include "../../stages/lib/jsonw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char HELP[] =
	"usage: server [options]\n"
	"\n"
	"Answer chat completions by script. Prints its port.\n"
	"\n"
	"  --script FILE     replies, in order; the last one repeats (see script.h)\n"
	"  --model           answer every further request with a legal proposal made from the\n"
	"                    hash of its prompt\n"
	"  --log FILE        one JSON line per request\n"
	"  --save DIR        body of request N as DIR/N.json\n"
	"  --port-file FILE  the port, written whole\n"
	"  --port N          instead of any free one\n";

struct options {
	const char *script, *log, *save, *port_file;
	int model, port;
};

/* Read one request: head into `head`, body into `body`. */
static int read_request(int fd, struct buf *head, struct buf *body)
{
	char t[16384];
	const char *end = NULL, *cl;
	size_t want = 0;
	ssize_t n;

	while (!end || body->len < want) {
		n = read(fd, t, sizeof t);
		if (n <= 0)
			return -1;
		if (end) {
			buf_add(body, t, (size_t)n);
			continue;
		}
		buf_add(head, t, (size_t)n);
		end = memmem(head->data, head->len, "\r\n\r\n", 4);
		if (!end)
			continue;
		size_t k = (size_t)(end - head->data) + 4;
		buf_add(body, head->data + k, head->len - k);
		head->data[k - 2] = '\0';
		head->len = k - 2;
		cl = strcasestr(head->data, "\r\ncontent-length:");
		want = cl ? strtoul(cl + 17, NULL, 10) : 0;
	}
	return 0;
}

static void header_value(const char *head, const char *name, struct buf *out)
{
	char key[64];
	const char *p;
	size_t n;

	snprintf(key, sizeof key, "\r\n%s:", name);
	p = strcasestr(head, key);
	if (!p)
		return;
	p += strlen(key);
	p += strspn(p, " ");
	n = strcspn(p, "\r\n");
	buf_add(out, p, n);
}

static void log_request(const struct options *o, int n, const struct buf *head, const struct buf *body)
{
	struct buf auth = BUF_INIT, idem = BUF_INIT, line = BUF_INIT;
	struct jsonw w = {0};
	char sha[HASH_HEX], path[512];
	struct err e;

	header_value(head->data, "Authorization", &auth);
	header_value(head->data, "Idempotency-Key", &idem);
	buf_add(&line, head->data, strcspn(head->data, "\r\n"));
	hash_hex(buf_str(body), body->len, sha);
	jw_obj(&w, NULL);
	jw_int(&w, "n", n);
	jw_str(&w, "request", buf_str(&line));
	jw_str(&w, "auth", buf_str(&auth));
	jw_str(&w, "idempotency", buf_str(&idem));
	jw_str(&w, "body_sha256", sha);
	jw_int(&w, "bytes", (int64_t)body->len);
	jw_end(&w);
	if (o->log && file_append(o->log, buf_str(&w.out), &e))
		warn("%s", e.text);
	snprintf(path, sizeof path, "%s/%d.json", o->save ? o->save : "", n);
	if (o->save && file_write(path, buf_str(body), body->len, 0644, &e))
		warn("%s", e.text);
	jw_free(&w);
	buf_free(&auth);
	buf_free(&idem);
	buf_free(&line);
}

static void serve(int fd, const struct options *o, int n)
{
	struct buf head = BUF_INIT, body = BUF_INIT;
	struct err e = {0};

	if (!read_request(fd, &head, &body)) {
		log_request(o, n, &head, &body);
		if (script_answer(fd, o->script, o->model, n, &body, &e))
			warn("%s", e.text);
	}
	buf_free(&head);
	buf_free(&body);
	close(fd);
}

static int listen_on(int port, int *got)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	socklen_t len = sizeof a;
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		die(EX_SYS, "cannot listen: %s", strerror(errno));
	*got = ntohs(a.sin_port);
	return fd;
}

static void parse_args(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
		if (!strcmp(a, "-h")) {
			fputs(HELP, stdout);
			exit(0);
		}
		if (!strcmp(a, "--model")) {
			o->model = 1;
			continue;
		}
		if (!v)
			die(EX_BADUSE, "option '%s' needs a value, or is unknown", a);
		if (!strcmp(a, "--script"))
			o->script = v;
		else if (!strcmp(a, "--log"))
			o->log = v;
		else if (!strcmp(a, "--save"))
			o->save = v;
		else if (!strcmp(a, "--port-file"))
			o->port_file = v;
		else if (!strcmp(a, "--port"))
			o->port = atoi(v);
		else
			die(EX_BADUSE, "unknown option '%s'", a);
		i++;
	}
	if (!o->script && !o->model)
		die(EX_BADUSE, "give --script or --model");
}

int main(int argc, char **argv)
{
	struct options o = {0};
	char text[16];
	int port, n = 0, lfd;
	struct err e;

	prog_name(argv[0]);
	parse_args(argc, argv, &o);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == 1)
		return 0;
	signal(SIGPIPE, SIG_IGN);
	lfd = listen_on(o.port, &port);
	printf("%d\n", port);
	fflush(stdout);
	snprintf(text, sizeof text, "%d\n", port);
	if (o.port_file && file_write(o.port_file, text, strlen(text), 0644, &e))
		die_err(&e);
	for (;;) {
		int fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (fd < 0)
			continue;
		n++;
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(lfd);
			serve(fd, &o, n);
			_exit(0);
		}
		close(fd);
	}
}
