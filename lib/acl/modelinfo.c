// SPDX-License-Identifier: MIT
/*
 * What a model consists of: its name and number, its streams and their tasks, and all
 * of that as JSON, in the form that trace viewers read: a row a stream, a box a task.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include "graph.h"

/* ---- Name and number --------------------------------------------------------------------- */

aclError aclmdlRISetName(aclmdlRI modelRI, const char *name)
{
	static const char what[] = "aclmdlRISetName";
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (ret)
		return ret;
	if (!name)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: name is NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	snprintf(g->name, sizeof(g->name), "%s", name);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ACL_SUCCESS;
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name)
{
	static const char what[] = "aclmdlRIGetName";
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, what, &g);

	if (ret)
		return ret;
	if (!name || !maxLen)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what, name ? "maxLen is 0" : "name is NULL");
	pthread_mutex_lock(&npuacl_graph_lock);
	snprintf(name, maxLen, "%s", g->name);
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ACL_SUCCESS;
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t *modelRIId)
{
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, "aclmdlRIGetId", &g);

	if (ret)
		return ret;
	if (!modelRIId)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclmdlRIGetId: modelRIId is NULL");
	*modelRIId = g->id;
	return ACL_SUCCESS;
}

/* ---- Streams and tasks ---------------------------------------------------------------------- */

/* @room: what @num says there is; it gets how many there are.  Only that is asked without @list. */
static aclError check_room(const char *what, const void *list, u32 *num, u32 n)
{
	u32 room = *num;

	*num = n;
	if (!list || room >= n)
		return ACL_SUCCESS;
	return npuacl_fail(ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY, "%s: there are %u, and room for %u", what, n, room);
}

aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream *streams, uint32_t *numStreams)
{
	static const char what[] = "aclmdlRIGetStreams";
	struct npuacl_graph *g;
	struct npuacl_lane *l;
	aclError ret = npuacl_graph(modelRI, what, &g);
	u32 n = 0;

	if (ret)
		return ret;
	if (!numStreams)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: numStreams is NULL", what);
	pthread_mutex_lock(&npuacl_graph_lock);
	for (l = g->lanes; l; l = l->next)
		n += l->stream != NULL;
	ret = check_room(what, streams, numStreams, n);
	for (l = g->lanes, n = 0; !ret && streams && l; l = l->next)
		if (l->stream)
			streams[n++] = l->stream;
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask *tasks, uint32_t *numTasks)
{
	static const char what[] = "aclmdlRIGetTasksByStream";
	struct npuacl_stream *s;
	struct npuacl_lane *l;
	aclError ret;
	u32 i;

	if (!numTasks)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: numTasks is NULL", what);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	l = s->plays;
	if (!l)
		ret = npuacl_fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is not a model's (aclmdlRIGetStreams)", what,
				  s->id);
	else
		ret = check_room(what, tasks, numTasks, l->n);
	for (i = 0; !ret && tasks && i < l->n; i++)
		tasks[i] = l->node[i];
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ret;
}

/* ---- For debugging ------------------------------------------------------------------------------ */

static const char *kind_of(const struct npuacl_node *node)
{
	static const char *const name[] = {
		[NPUACL_SDMA] = "MEMORY", [NPUACL_EVENT_RECORD] = "EVENT_RECORD_EXTERNAL",
		[NPUACL_EVENT_WAIT] = "EVENT_WAIT_EXTERNAL", [NPUACL_EVENT_RESET] = "EVENT_RESET",
		[NPUACL_VALUE_WAIT] = "VALUE_WAIT", [NPUACL_NOTIFY_WAIT] = "NOTIFY_WAIT",
		[NPUACL_HOST_FUNC] = "HOST_FUNC", [NPUACL_CALL] = "CALL", [NPUACL_WORK] = "COLLECTIVE",
		[NPUACL_EDGE_RECORD] = "EVENT_RECORD",
		[NPUACL_EDGE_WAIT] = "EVENT_WAIT", [NPUACL_BRANCH] = "BRANCH", [NPUACL_NOTHING] = "MARK",
	};

	return node->flags & NPUACL_END ? "END" : name[node->kind];
}

static void print_task(FILE *f, const struct npuacl_graph *g, const struct npuacl_lane *l,
		       struct npuacl_node *node, bool verbose)
{
	char text[160];

	npuacl_task_text(npuacl_node_task(node), text, sizeof(text));
	fprintf(f, ",\n{\"name\": \"%s\", \"ph\": \"X\", \"pid\": %u, \"tid\": %u, \"ts\": %u, \"dur\": 1, \"args\": {\"Model Id\": %u, \"Stream Id\": %u, \"Task Id\": %u, \"Task Type\": \"%s\"",
		kind_of(node), g->id, l->stream ? l->stream->id : l->n, node->seq, g->id,
		l->stream ? l->stream->id : l->n, node->seq, kind_of(node));
	if (verbose)
		fprintf(f, ", \"Task\": \"%s\", \"Left Out\": %s", text,
			npuacl_node_task(node)->kind != node->kind ? "true" : "false");
	fprintf(f, "}}");
}

static void print_name(FILE *f, const char *name)
{
	for (; *name; name++)
		if (*name == '"' || *name == '\\')
			fprintf(f, "\\%c", *name);
		else if ((u8)*name < ' ')
			fprintf(f, "\\u%04x", (u8)*name);
		else
			fputc(*name, f);
}

/* The lock held.  Strings of ours have nothing in them that JSON minds. */
static void print_model(FILE *f, const struct npuacl_graph *g, bool verbose)
{
	const struct npuacl_lane *l;
	u32 i;

	fprintf(f, "[{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %u, \"args\": {\"name\": \"Model %u, device %u: ",
		g->id, g->id, g->ctx->dev->id);
	print_name(f, g->name);
	fprintf(f, "\"}}");
	for (l = g->lanes; l; l = l->next) {
		if (l->stream)
			fprintf(f, ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %u, \"tid\": %u, \"args\": {\"name\": \"Stream %u\"}}",
				g->id, l->stream->id, l->stream->id);
		for (i = 0; i < l->n; i++)
			print_task(f, g, l, l->node[i], verbose);
	}
	fprintf(f, "]\n");
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags)
{
	static const char what[] = "aclmdlRIDebugJsonPrint";
	struct npuacl_graph *g;
	aclError ret = npuacl_graph(modelRI, what, &g);
	bool failed;
	FILE *f;

	if (ret)
		return ret;
	if (!path || flags > ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %s", what,
				   path ? "flags are 0 (summary) or 1 (verbose)" : "path is NULL");
	f = fopen(path, "we");
	if (!f)
		return npuacl_fail(ACL_ERROR_RT_FILE_OPEN, "%s: cannot write %s: %s", what, path, strerror(errno));
	pthread_mutex_lock(&npuacl_graph_lock);
	print_model(f, g, flags);
	pthread_mutex_unlock(&npuacl_graph_lock);
	failed = ferror(f);
	failed |= fclose(f) != 0;
	return failed ? npuacl_fail(ACL_ERROR_RT_FILE_WRITE, "%s: cannot write all of it to %s", what, path) : ret;
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI)
{
	struct npuacl_graph *g;
	struct npuacl_lane *l;
	aclError ret = npuacl_graph(modelRI, "aclmdlRIDebugPrint", &g);
	char text[160];
	u32 i;

	if (ret)
		return ret;
	pthread_mutex_lock(&npuacl_graph_lock);
	npuemu_log(NPUEMU_LOG_INFO, "acl: model %u \"%s\" of device %u: %u streams, %u tasks", g->id, g->name,
		   g->ctx->dev->id, g->nlanes, g->nodes);
	for (l = g->lanes; l; l = l->next)
		for (i = 0; i < l->n; i++) {
			npuacl_task_text(npuacl_node_task(l->node[i]), text, sizeof(text));
			npuemu_log(NPUEMU_LOG_INFO, "acl: model %u: stream %d, task %u: %s, %s", g->id,
				   l->stream ? (s32)l->stream->id : -1, l->node[i]->seq, kind_of(l->node[i]), text);
		}
	pthread_mutex_unlock(&npuacl_graph_lock);
	return ACL_SUCCESS;
}
