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

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

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

/* An instance, with room for the addresses that calls write; NULL without memory. Closing one ends all that is in it. */
struct berth_core;
struct berth_core *berth_core_open(void);
void berth_core_close(struct berth_core *core);

/* The place of an address of the core's memory, up to the next call. */
uint8_t *berth_core_memory(struct berth_core *core, uint32_t address);

/* Writes the input of the next call to the exchange buffer: 0, or a status. */
int berth_raw_write(struct berth_core *core, const void *input, size_t length);

/* The exchange buffer: what the last call has written. */
const uint8_t *berth_raw_output(struct berth_core *core);

/* Calls an export by its name; ends the program if there is none. */
int32_t berth_raw_call(struct berth_core *core, const char *name, const int32_t *args);
${calls.map((call) => `\n/*\n${prefixed(" * ", [call.doc, ...call.facts])} */\n${prototype(call)};\n`).join("")}
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
`;
}

function source({ statuses, calls }: Binding): string {
  const rows = statuses.map(({ name, value, doc }) => `    [-(${value})] = {"${name}", ${JSON.stringify(doc)}},\n`);
  return `#include "berth_raw.h"

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
