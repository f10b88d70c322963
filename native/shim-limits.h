#ifndef BERTH_SHIM_LIMITS_H
#define BERTH_SHIM_LIMITS_H

/* The shim's limits. Those marked are in docs/limits.md. */

/* Largest network configuration on stdin: bytes. @limit */
#define STDIN_LIMIT 1048576
/* Longest variable of the environment that is forwarded: bytes. @limit */
#define VARIABLE_LIMIT 65536
/* Largest head of the agent's answer: bytes. */
#define HTTP_HEAD_LIMIT 16384
/* Largest body of the agent's answer: bytes. */
#define HTTP_BODY_LIMIT 1048576
/* Deepest nesting of JSON, one bit each; CNI configurations and results need less than ten. */
#define JSON_DEPTH_LIMIT 64
/* Longest cniVersion that is repeated in an error: bytes. Real ones are a few digits and dots. */
#define VERSION_LIMIT 64
/* Longest part of a foreign text, such as a notice, that is shown: bytes. */
#define TEXT_QUOTE_LIMIT 4096
/* Highest value of BERTH_CONNECT_WAIT and BERTH_REQUEST_LIMIT: seconds. */
#define TEXT_SECONDS_LIMIT 3600
/*
 * Time for which ADD, CHECK and GC try to connect to the agent, unless BERTH_CONNECT_WAIT is set: milliseconds.
 * @limit
 */
#define CONNECT_WAIT_MS 20000
/*
 * Time for which ADD waits for the answer after connecting: milliseconds. Reading stdin may take as long, for every
 * verb.
 * @limit
 */
#define ADD_LIMIT_MS 90000
/* Time for which CHECK waits for the answer: milliseconds. */
#define CHECK_LIMIT_MS 10000
/* Time for which DEL waits for the answer before it is spooled: milliseconds. @limit */
#define DEL_LIMIT_MS 10000
/* Time for which GC waits for the answer: milliseconds. */
#define GC_LIMIT_MS 60000
/* Time for which STATUS waits for the answer: milliseconds. */
#define STATUS_LIMIT_MS 2000
/* Time for which CREATE, which only looks at a network, waits for the answer: milliseconds. */
#define CREATE_LIMIT_MS 10000
/* Time for which a probe waits for the answer, less than the timeouts of the chart's probes: milliseconds. */
#define PROBE_LIMIT_MS 9000
/* Time for which VERSION, which does not contact the agent, reads its stdin: milliseconds. */
#define VERSION_LIMIT_MS 2000

#endif
