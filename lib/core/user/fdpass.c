// SPDX-License-Identifier: MIT
/*
 * Arena descriptors over a socket, where /proc/PID/fd of the peer is closed
 * (hidepid, a process that is not dumpable).  The name is abstract, so it dies
 * with its process; only the same user gets an answer, and the receiver checks
 * the secret at the end of the arena.
 */
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "user.h"

static socklen_t address(const struct user *u, u32 slot, u64 life, struct sockaddr_un *a)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "npuemu-%08x-%u-%u",
		     u->head->board_id, slot, LIFE_GEN(life));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int fdpass_listen(struct user *u)
{
	struct sockaddr_un a;
	socklen_t n = address(u, u->slot_index, u->life, &a);

	u->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->listen_fd < 0)
		return -errno;
	if (bind(u->listen_fd, (void *)&a, n) || listen(u->listen_fd, 16)) {
		close(u->listen_fd);
		u->listen_fd = -1;
		return -errno;
	}
	return 0;
}

static bool same_user(int s)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return !getsockopt(s, SOL_SOCKET, SO_PEERCRED, &c, &n) && c.uid == geteuid();
}

static void send_fd(int s, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	char ok = fd >= 0;
	struct iovec v = { &ok, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *h;

		memset(&c, 0, sizeof(c));
		m.msg_control = c.buf;
		m.msg_controllen = sizeof(c.buf);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(int));
	}
	(void)!sendmsg(s, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Service thread: answer one client; it asks with a device number. */
void fdpass_serve(struct user *u)
{
	int s = accept4(u->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct pollfd p = { .fd = s, .events = POLLIN };
	struct user_arena *a;
	u32 device;

	if (s < 0) {
		usleep(10000);	/* no descriptor left: do not spin on it */
		return;
	}
	/* the request is sent right after connecting: nobody holds us up for long */
	if (same_user(s) && poll(&p, 1, 100) == 1 &&
	    recv(s, &device, sizeof(device), MSG_DONTWAIT) == sizeof(device) &&
	    device < NPUEMU_MAX_DEVICES) {
		a = smp_load_acquire(&u->arena[device]);
		send_fd(s, a ? a->fd : -1);
	}
	close(s);
}

int fdpass_fetch(struct user *u, u32 slot, u64 life, u32 device)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	struct timeval limit = { .tv_sec = 2 };
	struct sockaddr_un a;
	socklen_t n = address(u, slot, life, &a);
	char ok = 0;
	struct iovec v = { &ok, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = c.buf, .msg_controllen = sizeof(c.buf),
	};
	struct cmsghdr *h;
	int s, fd = -1;

	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s < 0)
		return -1;
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!connect(s, (void *)&a, n) && same_user(s) &&
	    send(s, &device, sizeof(device), MSG_NOSIGNAL) == sizeof(device) &&
	    recvmsg(s, &m, MSG_CMSG_CLOEXEC) == 1 && ok) {
		h = CMSG_FIRSTHDR(&m);
		if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(h), sizeof(fd));
	}
	close(s);
	return fd;
}
