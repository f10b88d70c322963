/** The raw layer of the C embedding: a header with its constants and a function for each export; and its source. */
import type { GeneratedText } from "../generated-text.ts";
import { type Binding, type Call, type Constant, prefixed } from "./binding.ts";

export function renderCBindings(binding: Binding): GeneratedText[] {
  return [
    { path: "embeddings/c/berth_raw.h", text: header(binding) },
    { path: "embeddings/c/raw.c", text: source(binding) },
  ];
}

function header({ version, statuses, policies, ceilings, counts, calls }: Binding): string {
  return `/* The raw calls of the core, on handles and ordinals. A result below 0 is a status. */
#ifndef BERTH_RAW_H
#define BERTH_RAW_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
#define BERTH_BEGIN_C extern "C" {
#define BERTH_END_C }
#else
#define BERTH_BEGIN_C
#define BERTH_END_C
#endif

BERTH_BEGIN_C

enum { BERTH_ABI_MAJOR = ${version.major}, BERTH_ABI_MINOR = ${version.minor} };
enum berth_status {
${members("STATUS_", statuses)}};
enum berth_policy {
${members("", policies)}};
enum {
${members("", ceilings)}};
/* Where berth_raw_pool_counts writes each number. */
enum {
${members("COUNTS_AT_", counts)}};

/* The meaning of a status as a sentence, and its name ("BAD_HANDLE"). Never NULL. */
const char *berth_strerror(int status);
const char *berth_status_name(int status);

/* An instance, with room for the output of calls; NULL without memory. Closing one ends its objects. */
struct berth_core;
struct berth_core *berth_core_open(void);
void berth_core_close(struct berth_core *core);

/* The place of an address of the core's memory, up to the next call. */
uint8_t *berth_core_memory(struct berth_core *core, uint32_t address);

/* Writes the input of the next call to the exchange buffer: 0, or a status. */
int berth_raw_write(struct berth_core *core, const void *input, size_t length);

/* The exchange buffer: the output of the last call. */
const uint8_t *berth_raw_output(struct berth_core *core);

/* An address of AF_INET or AF_INET6, in the first 4 bytes or all of them. An IPv4-mapped address is an IPv6 one. */
struct berth_ip {
    sa_family_t family;
    uint8_t bytes[16];
};

/* All addresses from \`first\` to \`last\`, both included; all that share the first \`length\` bits with \`ip\`. */
struct berth_range {
    struct berth_ip first, last;
};
struct berth_prefix {
    struct berth_ip ip;
    uint8_t length;
};

/* A number of addresses; that of all IPv6 addresses is one too small. */
__extension__ typedef unsigned __int128 berth_size;

/* "10.0.0.1", "10.0.0.0/24": 0, or BERTH_STATUS_BAD_ARGUMENT. The addresses of a prefix. The text of an address. */
int berth_ip_parse(const char *text, struct berth_ip *ip);
int berth_prefix_parse(const char *text, struct berth_prefix *prefix);
struct berth_range berth_range_of(const struct berth_prefix *prefix);
const char *berth_ip_format(const struct berth_ip *ip, char text[INET6_ADDRSTRLEN]);

/* How the exchange buffer has them: bytes of an address, the number of a family, an address, 17 bytes, 4 bytes. */
size_t berth_width(sa_family_t family);
int32_t berth_family(sa_family_t family);
struct berth_ip berth_read_ip(const uint8_t *bytes, sa_family_t family);
berth_size berth_read_size(const uint8_t *bytes);
uint32_t berth_read_word(const uint8_t *bytes);

/* Calls an export by its name; ends the program if there is none. */
int32_t berth_raw_call(struct berth_core *core, const char *name, const int32_t *args);
${calls.map((call) => `\n/*\n${prefixed(" * ", [call.doc, ...call.facts])} */\n${prototype(call)};\n`).join("")}
BERTH_END_C

#endif
`;
}

function source({ statuses, calls }: Binding): string {
  const rows = statuses.map(({ name, value, doc }) => `    [-(${value})] = {"${name}", ${JSON.stringify(doc)}},\n`);
  return `#include "berth_raw.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "wasm.h"

struct berth_core {
    Z_berth_core_instance_t wasm;
};

static const char *const texts[${statuses.length}][2] = {
${rows.join("")}};

const char *berth_strerror(int status)
{
    return status <= 0 && status > -${statuses.length} ? texts[-status][1] : "Not a status.";
}

const char *berth_status_name(int status)
{
    return status <= 0 && status > -${statuses.length} ? texts[-status][0] : "UNKNOWN";
}

struct berth_core *berth_core_open(void)
{
    struct berth_core *core = calloc(1, sizeof *core);
    if (core == NULL)
        return NULL;
    /* Z_berth_core_init_module would fill statics for tables, and the core has none: instances share nothing. */
    Z_berth_core_instantiate(&core->wasm);
    berth_raw_exchange(core, 64);
    return core;
}

void berth_core_close(struct berth_core *core)
{
    if (core != NULL)
        Z_berth_core_free(&core->wasm);
    free(core);
}

uint8_t *berth_core_memory(struct berth_core *core, uint32_t address)
{
    return core->wasm.w2c_memory.data + address;
}

int berth_raw_write(struct berth_core *core, const void *input, size_t length)
{
    int32_t at = berth_raw_exchange(core, length > BERTH_MAX_EXCHANGE ? BERTH_MAX_EXCHANGE + 1 : (int32_t)length);
    if (at < 0)
        return at;
    if (length > 0)
        memcpy(berth_core_memory(core, (uint32_t)at), input, length);
    return 0;
}

const uint8_t *berth_raw_output(struct berth_core *core)
{
    return berth_core_memory(core, (uint32_t)berth_raw_exchange(core, 0));
}

size_t berth_width(sa_family_t family)
{
    return family == AF_INET ? 4 : 16;
}

int32_t berth_family(sa_family_t family)
{
    return family == AF_INET ? 4 : 6;
}

struct berth_ip berth_read_ip(const uint8_t *bytes, sa_family_t family)
{
    struct berth_ip ip = {.family = family};
    memcpy(ip.bytes, bytes, berth_width(family));
    return ip;
}

int berth_ip_parse(const char *text, struct berth_ip *ip)
{
    ip->family = strchr(text, ':') == NULL ? AF_INET : AF_INET6;
    return inet_pton(ip->family, text, ip->bytes) == 1 ? 0 : BERTH_STATUS_BAD_ARGUMENT;
}

const char *berth_ip_format(const struct berth_ip *ip, char text[INET6_ADDRSTRLEN])
{
    return inet_ntop(ip->family, ip->bytes, text, INET6_ADDRSTRLEN);
}

int berth_prefix_parse(const char *text, struct berth_prefix *prefix)
{
    char head[INET6_ADDRSTRLEN] = "", *end;
    const char *slash = strchr(text, '/');
    if (slash == NULL || (size_t)(slash - text) >= sizeof head || slash[1] < '0' || slash[1] > '9')
        return BERTH_STATUS_BAD_ARGUMENT;
    unsigned long length = strtoul(slash + 1, &end, 10);
    if (berth_ip_parse(memcpy(head, text, (size_t)(slash - text)), &prefix->ip) < 0 || *end != '\\0')
        return BERTH_STATUS_BAD_ARGUMENT;
    prefix->length = (uint8_t)length;
    return length > 8 * berth_width(prefix->ip.family) ? BERTH_STATUS_BAD_ARGUMENT : 0;
}

struct berth_range berth_range_of(const struct berth_prefix *prefix)
{
    struct berth_range range = {prefix->ip, prefix->ip};
    for (size_t bit = prefix->length; bit < 8 * berth_width(prefix->ip.family); bit++) {
        range.first.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
        range.last.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    }
    return range;
}

berth_size berth_read_size(const uint8_t *bytes)
{
    berth_size size = 0;
    for (int i = 1; i <= 16; i++)
        size = size << 8 | bytes[i];
    return bytes[0] == 0 ? size : ~size;
}

/* The core writes it little-endian. */
uint32_t berth_read_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

int32_t berth_raw_call(struct berth_core *core, const char *name, const int32_t *args)
{
${calls.map(dispatch).join("")}    abort();
}
${calls.map(definition).join("")}`;
}

function members(prefix: string, items: readonly Constant[]): string {
  return items.map(({ name, value, doc }) => `    /* ${doc} */\n    BERTH_${prefix}${name} = ${value},\n`).join("");
}

const typeOf = ({ isUnsigned }: Call["params"][number]) => (isUnsigned ? "uint32_t" : "int32_t");

function prototype({ name, params }: Call): string {
  const list = params.map((param) => `, ${typeOf(param)} ${param.name}`).join("");
  return `int32_t berth_raw_${name}(struct berth_core *core${list})`;
}

/** The parameters' type in wasm2c's code is that of all 32 bits. */
function definition(call: Call): string {
  const args = call.params.map(({ name }) => `, (uint32_t)${name}`).join("");
  return `
${prototype(call)}
{
    return (int32_t)Z_berth_coreZ_${call.name}(&core->wasm${args});
}
`;
}

function dispatch({ name, params }: Call): string {
  const args = params.map((param, at) => `, (${typeOf(param)})args[${at}]`).join("");
  return `    if (strcmp(name, "${name}") == 0)\n        return berth_raw_${name}(core${args});\n`;
}
