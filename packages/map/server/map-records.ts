/**
 * The answers to the address map's page: one schema per answer. The page and its tests decode by these; the server
 * makes the records. Keys may be added; none changes its meaning.
 */
import * as z from "zod";

/**
 * The displayed state of an address that is not free. `InUse` stands for all of the others where the viewer may not
 * know more. The order is that of the planes of a map, and of the numbers in a change: 1 is Bound; 0 is free.
 */
export const MAP_STATES = ["Bound", "Cooling", "Kept", "Quarantined", "InUse"] as const;

export type MapState = (typeof MAP_STATES)[number];

/** A decimal number as text: an IPv6 pool has more addresses than a JSON number can count. */
const count = z.string().regex(/^[0-9]{1,39}$/);

const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string(),
  /** Empty for a viewer without access to all namespaces: it names pods. */
  message: z.string(),
});

const alert = z.object({
  /** `Quarantined`: the page shows the addresses. */
  kind: z.enum(["Full", "NearlyFull", "Quarantined"]),
  /** A sentence. */
  text: z.string(),
});

const states = z.partialRecord(z.enum(MAP_STATES), z.int().min(0));

const pool = z.object({
  name: z.string(),
  subnet: z.string(),
  family: z.union([z.literal(4), z.literal(6)]),
  addressSpace: z.string(),
  /** Addresses of the pool's ranges, with those that are reserved or excluded. */
  size: count,
  /** Addresses that it may hand out and that are free. */
  free: count,
  /** Addresses claimed from the pool, by state. */
  states,
  isDefault: z.boolean(),
  isDisabled: z.boolean(),
  /** `Subnet blue, for Deployment shop/web`; absent of a pool that is not generated. */
  generated: z.string().optional(),
  conditions: z.array(condition),
  /** By the pool's counts, the worst first. */
  alerts: z.array(alert),
});

/** The answer to GET /api/v1/pools. */
export const poolsAnswer = z.object({
  mode: z.enum(["embedded", "cluster"]),
  /** Of the server: `0.5.0`. */
  version: z.string(),
  /** Whether the server answers /api/v1/explain and /api/v1/history; else the page names the command that does. */
  canExplain: z.boolean(),
  /** Problems of the agent or the controller: sentences. */
  problems: z.array(z.string()),
  pools: z.array(pool),
});

const range = z.object({ first: z.string(), last: z.string() });

/** A part of the pool's subnet whose addresses are numbered on: `first`, and 2^`bits` addresses from there on. */
const segment = z.object({ first: z.string(), bits: z.int().min(0).max(24) });

/**
 * The head of the answer to GET /api/v1/map, before its planes (layout: docs/develop/http.md). The segments number
 * their addresses from 0 on, in their order. A subnet of up to 2^24 addresses is one segment; of a larger one only
 * the islands in use are there.
 */
export const mapHeader = z.object({
  pool: z.string(),
  subnet: z.string(),
  family: z.union([z.literal(4), z.literal(6)]),
  segments: z.array(segment),
  /**
   * Number of islands in use; more than there are segments if the list is cut. Absent for a subnet that is one
   * segment.
   */
  islands: z.int().optional(),
  /**
   * The addresses that the pool hands out: its ranges without the excluded addresses. All else of the subnet is
   * outside.
   */
  ranges: z.array(range),
  /** Names are empty for a viewer without access to all namespaces. */
  reserved: z.array(range.extend({ name: z.string() })),
  /** Addresses in blocks of other clusters; the names are empty for a viewer without access to all namespaces. */
  elsewhere: z.array(range.extend({ member: z.string() })).optional(),
  gateway: z.string().optional(),
  /**
   * Addresses of the ranges that routers and other machines have, with clauses that say so; empty for a viewer
   * without access to all namespaces.
   */
  exceptions: z.array(z.object({ address: z.string(), why: z.string() })).optional(),
  /** The planes in the order of the bytes that follow; a state without an address has none. */
  planes: z.array(z.object({ state: z.enum(MAP_STATES), bytes: z.int().min(0), used: z.int().min(0) })),
});

const holder = z.object({ namespace: z.string(), pod: z.string(), interface: z.string(), node: z.string() });

const address = z.object({
  address: z.string(),
  addressSpace: z.string(),
  state: z.enum(MAP_STATES),
  /** Empty in the state InUse, as all texts below. */
  pool: z.string(),
  holders: z.array(holder),
  /** `StatefulSet shop/web, member web-0` */
  workload: z.string(),
  mac: z.string(),
  /** RFC 3339. */
  since: z.string(),
});

/** The answer to GET /api/v1/addresses: those of a span that are not free, ascending. */
export const addressesAnswer = z.object({ addresses: z.array(address), isCut: z.boolean() });

/** The answer to GET /api/v1/search. */
export const searchAnswer = z.object({
  pools: z.array(z.string()),
  /** `pools` are those whose subnet has the address, in the order of their names. */
  addresses: z.array(address.extend({ pools: z.array(z.string()) })),
  isCut: z.boolean(),
});

/** The answer to GET /api/v1/usage: samples of one pool since the process started, the oldest first. */
export const usageAnswer = z.object({
  /** RFC 3339, of the first sample. */
  from: z.string().optional(),
  stepSeconds: z.int(),
  used: z.array(z.int().min(0)),
});

/**
 * The answer to GET /api/v1/history: lines of the audit logs about an address, ascending. Pods of namespaces that the
 * viewer may not see are left out.
 */
export const historyAnswer = z.object({
  lines: z.array(
    z.object({
      /** RFC 3339. */
      time: z.string(),
      /** As docs/audit-log.md has it: ADD, DEL, … */
      audit: z.string(),
      node: z.string(),
      namespace: z.string(),
      pod: z.string(),
      interface: z.string(),
      /** 0, or the code of a refusal. */
      code: z.int(),
    }),
  ),
  /** Why lines may be missing, such as nodes that did not answer: sentences. */
  problems: z.array(z.string()),
});

/** An event `changes` of GET /api/v1/changes: pairs of an address and the number of its state (0: free). */
export type ChangesEvent = readonly (readonly [address: string, state: number])[];

export type PoolsAnswer = z.output<typeof poolsAnswer>;
export type MapHeader = z.output<typeof mapHeader>;
export type MapAddress = z.output<typeof address>;
export type AddressesAnswer = z.output<typeof addressesAnswer>;
export type SearchAnswer = z.output<typeof searchAnswer>;
export type PoolAlert = z.output<typeof alert>;
export type HistoryAnswer = z.output<typeof historyAnswer>;
export type UsageAnswer = z.output<typeof usageAnswer>;
