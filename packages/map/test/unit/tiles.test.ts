import { expect, it } from "vitest";
import { KINDS, MapModel } from "../../page/map-model.ts";
import { TilePainter } from "../../page/tiles.ts";
import type { MapHeader } from "../../server/map-records.ts";

it("a pixel of free addresses and another cluster's is half of each, and nothing of those outside", () => {
  const header: MapHeader = {
    ...{ pool: "lan", subnet: "10.6.0.0/24", family: 4, segments: [{ first: "10.6.0.0", bits: 8 }], reserved: [] },
    ranges: [{ first: "10.6.0.2", last: "10.6.0.3" }],
    elsewhere: [{ first: "10.6.0.0", last: "10.6.0.1", member: "west" }],
    planes: [],
  };
  const colours: Readonly<Record<string, number>> = { Free: 0x0000ff, Elsewhere: 0xff0000, Outside: 0x00ff00 };
  const ground = KINDS.map((kind) => colours[kind] ?? 0xffffff);
  const painter = new TilePainter(new MapModel(header, []), { ground, ink: ground, empty: 0 });
  // Red, green and blue as a pixel has them in memory.
  expect([0, 4].map((start) => painter.pixelAt(start, 1))).toEqual([0xff800080, 0xff00ff00]);
});
