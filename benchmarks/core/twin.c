/*
 * The core's pool in C: the same structure and the same duties (a checked handle, chunks on demand, used and masked
 * planes, counts), compiled natively. It says what Wasm costs, not what a smaller program could do.
 *
 * A Node.js addon, so that it takes turns with the others in one process:
 *   open(bits, fill, packed, high, low)  makes the pool, whose first address has that high half and those last four bytes
 *                                and is an IPv4 one when the half is 0: the sum of 1,000 searches, modulo 2^32
 *   turn(operation, count)       runs the loop of an operation, by its index in OPERATION_NAMES
 *   load(bits, count)            loads from random places of 2^bits bytes, one after the other: what memory takes
 */
#include <node_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;

#define ALL (~0ull)

/* The address of 64 words of used bits; the lowest bit says that 64 words of masked ones follow. 0 when the chunk is absent. */
typedef uintptr_t entry;

#define HAS_MASKED 1

struct pool {
  u32 window, used, masked, used_masked, family;
  u64 first_high, first_low;
  u64 top, groups[64];
  entry *chunks;
  u64 *summaries;
};

static struct { struct pool *pool; u32 key; } table[64];
static u32 table_size = 64, bits;

static u32 next(u32 x) {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ (x << 5);
}

static struct pool *resolve(u32 handle) {
  u32 index = handle & 0xffff;
  if (index >= table_size || table[index].key != ((handle & 0xffff0000) | 2)) return NULL;
  return table[index].pool;
}

static entry require_chunk(struct pool *p, u32 chunk, u32 flag) {
  entry present = p->chunks[chunk];
  if (present) return present;
  entry fresh = (entry)calloc(64 << flag, sizeof(u64));
  return p->chunks[chunk] = fresh ? fresh | flag : 0;
}

static u64 *word_at(entry e, u32 o) { return (u64 *)(e & ~(entry)HAS_MASKED) + ((o >> 6) & 63); }

static u64 used_word(entry e, u32 o) { return e ? *word_at(e, o) : 0; }

static u64 masked_word(entry e, u32 o) { return e & HAS_MASKED ? word_at(e, o)[64] : 0; }

static int put(u64 *word, u32 bit, int value) {
  u64 before = *word;
  *word = value ? before | 1ull << bit : before & ~(1ull << bit);
  return (before == ALL) != (*word == ALL);
}

static void rise(struct pool *p, u32 o, int full) {
  u32 chunk = o >> 12;
  if (put(&p->summaries[chunk], (o >> 6) & 63, full) && put(&p->groups[chunk >> 6], chunk & 63, full))
    put(&p->top, chunk >> 6, full);
}

__attribute__((noinline)) static int test_at(u32 handle, u32 o) {
  struct pool *p = resolve(handle);
  if (!p) return -1;
  if (o >= p->window) return -8;
  return used_word(p->chunks[o >> 12], o) >> (o & 63) & 1;
}

__attribute__((noinline)) static int claim_at(u32 handle, u32 o) {
  struct pool *p = resolve(handle);
  if (!p) return -1;
  if (o >= p->window) return -8;
  entry e = require_chunk(p, o >> 12, 0);
  if (!e) return -6;
  u64 *word = word_at(e, o), bit = 1ull << (o & 63), used = *word;
  if (used & bit) return 0;
  *word = used | bit;
  p->used++;
  u64 masked = masked_word(e, o);
  if (masked & bit) p->used_masked++;
  else if ((used | bit | masked) == ALL) rise(p, o, 1);
  return 1;
}

__attribute__((noinline)) static int release_at(u32 handle, u32 o) {
  struct pool *p = resolve(handle);
  if (!p) return -1;
  if (o >= p->window) return -8;
  entry e = p->chunks[o >> 12];
  if (!e) return 0;
  u64 *word = word_at(e, o), bit = 1ull << (o & 63), used = *word;
  if (!(used & bit)) return 0;
  *word = used & ~bit;
  p->used--;
  u64 masked = masked_word(e, o);
  if (masked & bit) p->used_masked--;
  else if ((used | masked) == ALL) rise(p, o, 0);
  return 1;
}

static u64 free_word(struct pool *p, u32 o) {
  entry e = p->chunks[o >> 12];
  return ~(used_word(e, o) | masked_word(e, o));
}

static u64 above(u32 at) { return ALL << at << 1; }

static int find_from(struct pool *p, u32 start) {
  u32 chunk = start >> 12;
  u64 summary = p->summaries[chunk];
  if (!(summary >> ((start >> 6) & 63) & 1)) {
    u64 free = free_word(p, start) & ALL << (start & 63);
    if (free) return (start & ~63u) | __builtin_ctzll(free);
  }
  u64 words = ~summary & above((start >> 6) & 63);
  if (!words) {
    u32 group = chunk >> 6;
    u64 chunks = ~p->groups[group] & above(chunk & 63);
    if (!chunks) {
      u64 groups = ~p->top & above(group);
      if (!groups) return -9;
      group = __builtin_ctzll(groups);
      chunks = ~p->groups[group];
    }
    chunk = group << 6 | __builtin_ctzll(chunks);
    words = ~p->summaries[chunk];
  }
  u32 first = chunk << 12 | __builtin_ctzll(words) << 6;
  return first | __builtin_ctzll(free_word(p, first));
}

__attribute__((noinline)) static int find(u32 handle, u32 start) {
  struct pool *p = resolve(handle);
  if (!p) return -1;
  if (!p->window) return -9;
  int found = find_from(p, start < p->window ? start : start % p->window);
  return found < 0 ? find_from(p, 0) : found;
}

static unsigned char exchange[16];

static u32 big32(const unsigned char *at) {
  u32 value;
  memcpy(&value, at, sizeof value);
  return __builtin_bswap32(value);
}

static u64 big64(const unsigned char *at) { return (u64)big32(at) << 32 | big32(at + 4); }

/* Is the address in the exchange buffer used? */
__attribute__((noinline)) static int test_address(u32 handle) {
  struct pool *p = resolve(handle);
  if (!p) return -1;
  u64 high = p->family == 4 ? 0 : big64(exchange);
  u64 low = p->family == 4 ? big32(exchange) : big64(exchange + 8);
  u64 o = low - p->first_low;
  if (high != p->first_high || o >= p->window) return -8;
  return used_word(p->chunks[o >> 12], o) >> (o & 63) & 1;
}

/* Finds and claims. */
__attribute__((noinline)) static int allocate(u32 handle, u32 start) {
  int found = find(handle, start);
  return found < 0 || claim_at(handle, found) < 0 ? -9 : found;
}

static u32 make(u32 window) {
  struct pool *p = calloc(1, sizeof *p);
  u32 chunks = (window + 4095) >> 12, groups = (chunks + 63) >> 6;
  p->window = window;
  p->chunks = calloc(chunks, sizeof *p->chunks);
  p->summaries = calloc(chunks, sizeof *p->summaries);
  p->top = groups < 64 ? ALL << groups : 0;
  if (chunks & 63) p->groups[groups - 1] = ALL << (chunks & 63);
  if (window & 4095) {
    entry last = require_chunk(p, chunks - 1, HAS_MASKED);
    for (u32 o = window; o < chunks << 12; o++) {
      u64 *masked = word_at(last, o) + 64;
      *masked |= 1ull << (o & 63);
      if (*masked == ALL) rise(p, o, 1);
    }
  }
  table[3].pool = p;
  table[3].key = 7u << 16 | 2;
  return 7u << 16 | 3;
}

/* The pool, the last four bytes of its first address, and where they stand in the exchange buffer. */
static u32 pool, low, at;

static void fill(u32 size, double share, int packed) {
  u32 most = size - 1, seed = 2463534242u;
  double wanted = (double)size * share;
  u32 limit = wanted > most ? most : (u32)wanted;
  u64 chance = (u64)(share * 4294967296.0);
  for (u32 o = 0; o < most; o++) {
    seed = next(seed);
    if (packed ? o < limit : seed < chance) claim_at(pool, o);
  }
}

static volatile u32 sink;

static void turn(int operation, u32 count) {
  u32 x = 2463534242u, sum = 0;
  for (u32 i = 0; i < count; i++) {
    u32 o;
    switch (operation) {
    case 0: x = next(x); release_at(pool, allocate(pool, x)); break;
    case 1: release_at(pool, allocate(pool, 0)); break;
    case 2: x = next(x); sum += find(pool, x); break;
    case 3: x = next(x); sum += test_at(pool, x >> (32 - bits)); break;
    case 5:
      x = next(x);
      o = __builtin_bswap32(low + (x >> (32 - bits)));
      memcpy(exchange + at, &o, sizeof o);
      sum += test_address(pool);
      break;
    default:
      x = next(x);
      o = x >> (32 - bits);
      if (release_at(pool, o) == 1) claim_at(pool, o);
      else claim_at(pool, o), release_at(pool, o);
    }
  }
  sink = sum + x;
}

static napi_value open_pool(napi_env env, napi_callback_info info) {
  napi_value args[5], result;
  size_t count = 5;
  double share;
  bool packed, lossless;
  u64 high;
  napi_get_cb_info(env, info, &count, args, NULL, NULL);
  napi_get_value_uint32(env, args[0], &bits);
  napi_get_value_double(env, args[1], &share);
  napi_get_value_bool(env, args[2], &packed);
  napi_get_value_bigint_uint64(env, args[3], &high, &lossless);
  napi_get_value_uint32(env, args[4], &low);
  pool = make(1u << bits);
  struct pool *p = resolve(pool);
  p->family = high ? 6 : 4;
  p->first_high = high;
  p->first_low = low;
  at = high ? 12 : 0;
  u64 big = __builtin_bswap64(high);
  memset(exchange, 0, sizeof exchange);
  if (high) memcpy(exchange, &big, sizeof big);
  fill(1u << bits, share, packed);
  u32 audit = 0, x = 2463534242u;
  for (int i = 0; i < 1000; i++) audit += find(pool, x = next(x));
  napi_create_uint32(env, audit, &result);
  return result;
}

static napi_value run_turn(napi_env env, napi_callback_info info) {
  napi_value args[2];
  size_t count = 2;
  u32 operation, turns;
  napi_get_cb_info(env, info, &count, args, NULL, NULL);
  napi_get_value_uint32(env, args[0], &operation);
  napi_get_value_uint32(env, args[1], &turns);
  turn(operation, turns);
  return NULL;
}

static napi_value run_loads(napi_env env, napi_callback_info info) {
  static u32 *buffers[32];
  napi_value args[2];
  size_t count = 2;
  u32 log, loads, x = 2463534242u, loaded = 0;
  napi_get_cb_info(env, info, &count, args, NULL, NULL);
  napi_get_value_uint32(env, args[0], &log);
  napi_get_value_uint32(env, args[1], &loads);
  if (!buffers[log]) memset(buffers[log] = malloc(1u << log), 0, 1u << log);
  u32 words = (1u << log) / sizeof(u32);
  for (u32 i = 0; i < loads; i++) {
    x = next(x);
    loaded = buffers[log][(x + loaded) & (words - 1)];
  }
  sink = x + loaded;
  return NULL;
}

NAPI_MODULE_INIT() {
  napi_value open, run, load;
  napi_create_function(env, "open", NAPI_AUTO_LENGTH, open_pool, NULL, &open);
  napi_create_function(env, "turn", NAPI_AUTO_LENGTH, run_turn, NULL, &run);
  napi_set_named_property(env, exports, "open", open);
  napi_create_function(env, "load", NAPI_AUTO_LENGTH, run_loads, NULL, &load);
  napi_set_named_property(env, exports, "turn", run);
  napi_set_named_property(env, exports, "load", load);
  return exports;
}
