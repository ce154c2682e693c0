// SPDX-License-Identifier: MIT
/* Messages: of the calling thread's last failed call, and of statuses. */
#include <stdio.h>
#include <stdlib.h>
#include "core.h"

static __thread char message[512];

void npuemu_fail_say(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	npuemu_log(NPUEMU_LOG_INFO, "call failed (%d): %s", err, message);
}

NPUEMU_API const char *npuemu_errmsg(void)
{
	return message;
}

const char *npuemu_getenv(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

bool npuemu_env_flag(const char *name)
{
	const char *v = npuemu_getenv(name);

	return v && strcmp(v, "0");
}

s64 npuemu_env_number(const char *name, s64 otherwise)
{
	const char *v = npuemu_getenv(name);
	char *end;
	long long n;

	if (!v)
		return otherwise;
	n = strtoll(v, &end, 0);
	if (*end || n < 0) {
		npuemu_log(NPUEMU_LOG_WARN, "%s=%s is not a number: %lld is used", name, v,
			   (long long)otherwise);
		return otherwise;
	}
	return n;
}

static const struct {
	u32 status;
	const char *text;
} statuses[] = {
	{ NPUEMU_ST_SUCCESS, "SUCCESS (0.0)" },
	{ NPUEMU_ST_UNSUPPORTED_OPCODE,
	  "UNSUPPORTED_OPCODE (1.0): the chip does not know this opcode, or the WQE is malformed" },
	{ NPUEMU_ST_LOC_LEN,
	  "LOC_LEN (2.1): a length or alignment in the WQE is not possible" },
	{ NPUEMU_ST_LOC_ACCESS,
	  "LOC_ACCESS (2.2): a local address is not in a buffer or registered memory" },
	{ NPUEMU_ST_REM_RESP_LEN,
	  "REM_RESP_LEN (2.3): the message is longer than the receive buffer" },
	{ NPUEMU_ST_LOC_DATA_POISON, "LOC_DATA_POISON (2.4): local data is marked bad" },
	{ NPUEMU_ST_REM_UNSUPPORTED_REQ,
	  "REM_UNSUPPORTED_REQ (3.1): the remote side does not do this (alignment?)" },
	{ NPUEMU_ST_REM_ACCESS_ABORT,
	  "REM_ACCESS_ABORT (3.2): token, range or rights of the remote segment do not fit" },
	{ NPUEMU_ST_REM_DATA_POISON, "REM_DATA_POISON (3.4): remote data is marked bad" },
	{ NPUEMU_ST_RNR_RETRY_CNT_EXC,
	  "RNR_RETRY_CNT_EXC (4.0): the receiver had no receive buffer" },
	{ NPUEMU_ST_ACK_TIMEOUT, "ACK_TIMEOUT (5.0): the peer does not answer, or is dead" },
	{ NPUEMU_ST_WR_FLUSH_ERR,
	  "WR_FLUSH_ERR (6.0): not executed, the queue was in ERROR" },
};

NPUEMU_API const char *npuemu_status_str(uint32_t status)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].status == status)
			return statuses[i].text;
	return "no status of this device";
}
