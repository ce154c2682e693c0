// SPDX-License-Identifier: MIT
/*
 * Whom to tell when a communicator is destroyed or resumed: functions that parts of a
 * program register for all communicators of the process, each under a name.
 */
#include <stdlib.h>
#include "comm.h"

#define MOST	64u

struct entry {
	char name[HCCL_NAME];
	HcclCommStateCallback fn;
	void *args;
};

static struct {
	pthread_mutex_t lock;
	u32 n;
	struct entry entry[MOST];
} cb = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* cb.lock held: under a name there is one, and it may be replaced. */
static HcclResult enter(const char *what, const char *name, HcclCommStateCallback fn, void *args)
{
	u32 i;

	for (i = 0; i < cb.n && strcmp(cb.entry[i].name, name); i++)
		;
	if (i == MOST)
		return hccl_fail(HCCL_E_UNAVAIL, "EI0003", "%s: %u callbacks are registered, the most there can be", what, MOST);
	memcpy(cb.entry[i].name, name, strlen(name) + 1);
	cb.entry[i].fn = fn;
	cb.entry[i].args = args;
	cb.n += i == cb.n;
	return HCCL_SUCCESS;
}

HcclResult HcclCommRegCommStateCallback(const char *regName, HcclCommStateCallback callback, void *args)
{
	static const char what[] = "HcclCommRegCommStateCallback";
	HcclResult ret;
	size_t n;

	if (!regName || !callback)
		return hccl_fail(HCCL_E_PTR, "EI0003", "%s: %s is NULL", what, regName ? "callback" : "regName");
	n = strnlen(regName, HCCL_NAME);
	if (!n || n == HCCL_NAME)
		return hccl_fail(HCCL_E_PARA, "EI0003", "%s: regName has %zu%s letters; 1 to %u", what, n, n ? " or more" : "",
				 HCCL_NAME - 1);
	pthread_mutex_lock(&cb.lock);
	ret = enter(what, regName, callback, args);
	pthread_mutex_unlock(&cb.lock);
	return ret;
}

void hccl_state_tell(HcclComm handle, HcclCommStatePhase phase)
{
	struct entry list[MOST];
	HcclResult ret;
	u32 n, i;

	if (likely(!READ_ONCE(cb.n)))
		return;
	/* they may register others, and call anything else */
	pthread_mutex_lock(&cb.lock);
	n = cb.n;
	memcpy(list, cb.entry, n * sizeof(list[0]));
	pthread_mutex_unlock(&cb.lock);
	for (i = 0; i < n; i++) {
		ret = list[i].fn(handle, phase, list[i].args);
		if (ret)
			npuemu_log(NPUEMU_LOG_WARN, "hccl: the state callback \"%s\" gave %d in phase %d; it goes on", list[i].name,
				   (int)ret, (int)phase);
	}
}
