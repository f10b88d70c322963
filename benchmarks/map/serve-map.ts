/**
 * The address map's page with a /8 in which 8 million addresses are in use, where Berth's own search has put them:
 * from a hash on, the next free one.
 * Effects: a server on loopback.
 */
import { readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { readCoreWasm } from "../../host/core/instance.ts";
import { PoolSpace } from "../../host/core/pool-space.ts";
import { parsePrefix } from "../../host/net/prefix.ts";
import type { MapHeader, PoolsAnswer } from "../../host/records/map-records.ts";
import { encodePlane, joinMap } from "../../host/web/encode-map.ts";
import { segmentsOf } from "../../host/web/segments.ts";
import { root } from "../../scripts/setup/paths.mjs";

const SUBNET = "10.0.0.0/8";
const SIZE = 2 ** 24;

/** Changes of one event, ten times a second. */
const CHANGES = 100;

interface Fill {
  readonly used: number;
  readonly cooling: number;
}

function requireSubnet() {
  const subnet = parsePrefix(SUBNET);
  if (subnet === undefined) throw new Error(SUBNET);
  return subnet;
}

/** Every number is another one: the multiplier is odd. */
function nextSeed(seed: number): number {
  return (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
}

/**
 * Returns the addresses of one pool over the whole /8 in the order of a search from a hash on: the worst case, for no
 * address says anything of another.
 */
function placeByHash(space: PoolSpace, used: number): Uint8Array {
  const subnet = requireSubnet();
  const range = { first: subnet.ip, last: { ...subnet.ip, value: subnet.ip.value + BigInt(SIZE - 1) } };
  using pool = space.createPool({ ranges: [range], masked: [] });
  const packed = new Uint8Array(4 * used);
  for (let taken = 0, seed = 1; taken < used; taken++) {
    seed = nextSeed(seed);
    packed.set(pool.allocateMany(1, "HASHED", seed), 4 * taken);
  }
  return packed;
}

/** Addresses of a pool of {@link placeByPools}. */
const POOL_SIZE = 4_096;

/**
 * Returns the addresses of pools of /20, as many of the 4,096 as it takes, in no order. Every second one gives its
 * addresses out in ascending order, and two of a hundred have been released since; the others choose by hash, and are
 * filled from 70 to 97 percent.
 */
function placeByPools(used: number): Uint8Array {
  const packed = new DataView(new ArrayBuffer(4 * used));
  const first = Number(requireSubnet().ip.value);
  let taken = 0;
  for (let place = 0, seed = 1; taken < used; place++) {
    // An odd step visits all.
    const start = first + ((place * 1_365) % (SIZE / POOL_SIZE)) * POOL_SIZE;
    seed = nextSeed(seed);
    const fill = 0.7 + (0.27 * (seed >>> 16)) / 2 ** 16;
    const isAscending = place % 2 === 0;
    for (let at = 0; at < POOL_SIZE && taken < used; at++) {
      seed = nextSeed(seed);
      const dice = (seed >>> 8) / 2 ** 24;
      const isUsed = isAscending ? at < fill * POOL_SIZE && dice >= 0.02 : dice < fill;
      if (isUsed) packed.setUint32(4 * taken++, start + at);
    }
  }
  return new Uint8Array(packed.buffer);
}

/** `cooling` of the addresses cool, the others are bound. */
function encodeWorld(place: (space: PoolSpace, used: number) => Uint8Array, { used, cooling }: Fill): Uint8Array {
  const space = PoolSpace.open(readCoreWasm());
  const segments = segmentsOf(requireSubnet(), []);
  const packed = place(space, used);
  const planes = [
    encodePlane(space, segments, "Bound", packed.subarray(4 * cooling)),
    encodePlane(space, segments, "Cooling", packed.subarray(0, 4 * cooling)),
  ].filter((plane) => plane.used > 0);
  const head: MapHeader = {
    pool: "bench",
    subnet: SUBNET,
    family: 4,
    segments: [{ first: "10.0.0.0", bits: 24 }],
    ranges: [{ first: "10.0.0.0", last: "10.255.255.255" }],
    reserved: [],
    planes: planes.map(({ state, snapshot, used: count }) => ({ state, bytes: snapshot.length, used: count })),
  };
  return joinMap(head, planes);
}

export interface ServedMap {
  readonly url: string;
  readonly mapBytes: number;
  /** Of a map with as many addresses in pools of their own. */
  readonly pooledMapBytes: number;
  readonly pageBytes: number;
  /** While set, every open page gets 1,000 changes a second. */
  isChanging: boolean;
  close(): Promise<void>;
}

export async function serveMap(fill: Fill): Promise<ServedMap> {
  const { used } = fill;
  const map = encodeWorld(placeByHash, fill);
  const pooledMapBytes = encodeWorld((_, count) => placeByPools(count), fill).length;
  const pools: PoolsAnswer = {
    mode: "embedded",
    canExplain: false,
    problems: [],
    pools: [
      {
        ...{ name: "bench", subnet: SUBNET, family: 4, addressSpace: "", size: String(SIZE), states: { Bound: used } },
        ...{ isDefault: true, isDisabled: false, conditions: [], alerts: [] },
      },
    ],
  };
  const read = (name: string) => readFileSync(join(root, "dist", "map", name));
  const page = { "/": read("index.html"), "/map.css": read("map.css"), "/map.js": read("map.js") };
  const types = { "/": "text/html", "/map.css": "text/css", "/map.js": "text/javascript" };
  const streams = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").replace(/\?.*/, "");
    const isFile = (name: string): name is keyof typeof page => Object.hasOwn(page, name);
    if (isFile(path)) response.writeHead(200, { "content-type": types[path] }).end(page[path]);
    else if (path === "/api/v1/pools") response.end(JSON.stringify(pools));
    else if (path === "/api/v1/map") response.end(map);
    else if (path === "/api/v1/usage") response.end(JSON.stringify({ stepSeconds: 60, used: [] }));
    else if (path === "/api/v1/addresses") response.end(JSON.stringify({ addresses: [], isCut: false }));
    else if (path === "/api/v1/changes") {
      streams.add(response);
      response.writeHead(200, { "content-type": "text/event-stream" }).write("event: open\ndata: {}\n\n");
      response.once("close", () => streams.delete(response));
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const served: ServedMap = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    mapBytes: map.length,
    pooledMapBytes,
    pageBytes: Object.values(page).reduce((sum, file) => sum + file.length, 0),
    isChanging: false,
    close: async () => {
      clearInterval(timer);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const timer = setInterval(
    () => {
      if (!served.isChanging) return;
      const changes = Array.from({ length: CHANGES }, () => [
        Math.floor(Math.random() * SIZE),
        Math.floor(Math.random() * 4),
      ]);
      for (const stream of streams) stream.write(`event: changes\ndata: ${JSON.stringify(changes)}\n\n`);
    },
    (1_000 * CHANGES) / 1_000,
  );
  return served;
}
