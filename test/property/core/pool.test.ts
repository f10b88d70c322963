import { afterAll, describe, expect, it } from "vitest";
import { times } from "../../world/long-cases.ts";
import { Seeded } from "../../world/seeded.ts";
import { PoolWalk } from "./pool-walk.ts";
import { edgeShapes, randomShape, type Shape } from "./shapes.ts";

const SEED = Number(process.env.SEED ?? 20261120);
const random = new Seeded(SEED);
let operations = 0;

function walk(build: "release" | "debug", shape: Shape, count: number): void {
  const seed = random.u32();
  const pool = new PoolWalk(build, shape, new Seeded(seed));
  try {
    pool.run(count);
  } catch (error) {
    throw new Error(`seed ${seed}, shape "${shape.name}", operation ${pool.operations}`, { cause: error });
  }
  operations += count;
}

describe("a pool equals the reference model", () => {
  it.each(edgeShapes())("over $name", (shape) => {
    walk("release", shape, times(3_000));
    walk("debug", shape, times(1_500));
  });

  it.each(Array.from({ length: 30 }, (_, index) => index))("over random shape %i", () => {
    const shape = randomShape(random);
    walk("release", shape, times(2_000));
    walk("debug", shape, times(800));
  });

  it.each(edgeShapes())("the debug build ends with the same memory over $name", (shape) => {
    const seed = random.u32();
    const states = (["release", "debug"] as const).map((build) => {
      const pool = new PoolWalk(build, shape, new Seeded(seed));
      pool.run(300);
      return pool.state();
    });
    expect(Buffer.compare(states[0] ?? Buffer.alloc(0), states[1] ?? Buffer.alloc(1))).toBe(0);
  });

  afterAll(() => {
    console.log(`core pools: ${operations} random operations from seed ${SEED}`);
    expect(operations).toBeGreaterThanOrEqual(times(200_000));
  });
});
