// SPDX-License-Identifier: MIT
/*
 * A main() for fuzz targets where libFuzzer is not at hand: the short run of
 * `make check`.  It first gives the target every corpus file, then random and
 * mutated buffers from a fixed seed, so that two runs do the same.
 *
 * Usage: fuzz_NAME [corpus file or folder]...
 * FUZZ_RUNS (20000), FUZZ_SEED (1), FUZZ_ARTIFACTS: folder for the input that
 * crashed (default: the working directory).  Give that file as the only
 * argument, with FUZZ_RUNS=0, to run it again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define MAX_LEN		4096
#define POOL		256	/* inputs that mutations start from */

struct input {
	size_t len;
	uint8_t data[MAX_LEN];
};

/* Values at which length, index and sign checks tend to break. */
static const uint64_t edges[] = {
	0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 255, 256,
	4095, 4096, 4097, 0x7fff, 0x8000, 0xffff, 0x10000, 0xffffff, 0x1000000,
	0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff,
	0x8000000000000000, 0xfffffffffffff000, 0xffffffffffffffff,
};

static struct input pool[POOL];
static unsigned int pooled;
static struct input cur;
static char crash_file[512];
static uint64_t rng;

void __sanitizer_set_death_callback(void (*cb)(void)) __attribute__((__weak__));

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng * 0x2545f4914f6cdd1dull;
}

static size_t below(size_t n)
{
	return n ? (next_random() >> 16) % n : 0;
}

/* Runs on the way out of a crash: only what is safe in a signal handler. */
static void save_input(void)
{
	static const char saved[] = "\nfuzz: the input is in ";
	static bool done;
	int fd;

	if (done)
		return;
	done = true;
	fd = open(crash_file, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (write(fd, cur.data, cur.len) == (ssize_t)cur.len &&
	    write(2, saved, sizeof(saved) - 1) > 0 &&
	    write(2, crash_file, strlen(crash_file)) > 0 && write(2, "\n", 1) > 0)
		close(fd);
}

static void on_signal(int sig)
{
	save_input();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void watch_for_crashes(const char *name)
{
	static const int fatal[] = { SIGABRT, SIGTERM, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
	const char *dir = getenv("FUZZ_ARTIFACTS");
	const char *base = strrchr(name, '/');

	snprintf(crash_file, sizeof(crash_file), "%s/crash-%s", dir ? dir : ".",
		 base ? base + 1 : name);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(save_input);
	/* A sanitizer reports SIGSEGV and its like itself. */
	for (size_t i = 0; i < (__sanitizer_set_death_callback ? 2 : 6); i++)
		signal(fatal[i], on_signal);
}

/* The target gets a block of the exact size, so that ASan sees an overrun. */
static void run(void)
{
	uint8_t *data = malloc(cur.len ? cur.len : 1);

	if (!data) {
		perror("fuzz: malloc");
		exit(1);
	}
	memcpy(data, cur.data, cur.len);
	LLVMFuzzerTestOneInput(data, cur.len);
	free(data);
}

static void remember(void)
{
	unsigned int at = pooled < POOL ? pooled++ : below(POOL);

	pool[at] = cur;
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	bool bad;

	if (!f) {
		fprintf(stderr, "fuzz: %s: %s\n", path, strerror(errno));
		return -1;
	}
	cur.len = fread(cur.data, 1, MAX_LEN, f);
	bad = ferror(f);
	fclose(f);
	if (bad) {
		fprintf(stderr, "fuzz: %s: cannot be read\n", path);
		return -1;
	}
	run();
	remember();
	return 1;
}

/* Number of inputs found below @path, or -1. */
static int run_path(const char *path)
{
	struct dirent **list;
	struct stat st;
	int n, got, total = 0;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return run_file(path);
	/* Sorted: the order of a folder is not the same everywhere. */
	n = scandir(path, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, list[i]->d_name);
		if (list[i]->d_name[0] != '.' && total >= 0) {
			got = run_path(file);
			total = got < 0 ? -1 : total + got;
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n < 0 ? -1 : total;
}

static void put_edge(void)
{
	size_t width = (size_t)1 << below(4);
	uint64_t value = edges[below(sizeof(edges) / sizeof(edges[0]))];
	size_t at;

	if (cur.len < width)
		return;
	at = below(cur.len - width + 1);
	if (below(4))
		at -= at % width;
	memcpy(cur.data + at, &value, width);
}

static void move_chunk(void)
{
	size_t len = 1 + below(cur.len < 128 ? cur.len : 128);
	size_t from, to;

	if (cur.len < len)
		return;
	from = below(cur.len - len + 1);
	to = below(cur.len - len + 1);
	memmove(cur.data + to, cur.data + from, len);
}

static void cross_over(void)
{
	const struct input *other = &pool[below(pooled)];
	size_t at = below(cur.len + 1);
	size_t len;

	if (at >= other->len)
		return;
	len = other->len - at;
	memcpy(cur.data + at, other->data + at, len);
	cur.len = at + len;
}

static void resize(void)
{
	size_t len = below(3) ? below(cur.len + 1) : below(MAX_LEN + 1);

	if (below(2))		/* whole basic blocks get further */
		len = (len + 63) & ~(size_t)63;
	for (size_t i = cur.len; i < len; i++)
		cur.data[i] = (uint8_t)next_random();
	cur.len = len;
}

static void mutate(void)
{
	for (size_t n = 1 + below(8); n; n--) {
		switch (below(7)) {
		case 0:
			if (cur.len)
				cur.data[below(cur.len)] ^= 1u << below(8);
			break;
		case 1:
			if (cur.len)
				cur.data[below(cur.len)] = (uint8_t)next_random();
			break;
		case 2:
		case 3:
			put_edge();
			break;
		case 4:
			move_chunk();
			break;
		case 5:
			cross_over();
			break;
		default:
			if (!below(4))
				resize();
		}
	}
}

static void fresh(void)
{
	cur.len = below(2) ? below(MAX_LEN + 1) : 64 * below(MAX_LEN / 64 + 1);
	for (size_t i = 0; i < cur.len; i++)
		cur.data[i] = (uint8_t)next_random();
}

static uint64_t env_number(const char *name, uint64_t value)
{
	const char *s = getenv(name);
	char *end;

	if (!s || !*s)
		return value;
	errno = 0;
	value = strtoull(s, &end, 0);
	if (errno || *end || *s == '-') {
		fprintf(stderr, "fuzz: %s=%s is not a number\n", name, s);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	uint64_t runs = env_number("FUZZ_RUNS", 20000);
	uint64_t seed = env_number("FUZZ_SEED", 1);
	int files = 0;

	watch_for_crashes(argv[0]);
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		int n = run_path(argv[i]);

		if (n < 0)
			return 2;
		files += n;
	}
	/* xorshift must not start from 0 */
	rng = seed * 0x9e3779b97f4a7c15ull ^ 0xd1b54a32d192ed03ull;
	if (!rng)
		rng = 1;
	for (uint64_t i = 0; i < runs; i++) {
		if (!pooled || !below(8)) {
			fresh();
		} else {
			cur = pool[below(pooled)];
			mutate();
		}
		run();
		if (pooled < POOL || !below(16))
			remember();
	}
	printf("%d corpus files, %llu inputs from seed %llu\n", files,
	       (unsigned long long)runs, (unsigned long long)seed);
	return 0;
}
