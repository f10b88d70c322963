import { afterAll, describe, expect, it } from "vitest";
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

describe("a pool does what the reference model does", () => {
  it.each(edgeShapes())("over $name", (shape) => {
    walk("release", shape, 8_000);
    walk("debug", shape, 4_000);
  });

  it.each(Array.from({ length: 30 }, (_, index) => index))("over random shape %i", () => {
    const shape = randomShape(random);
    walk("release", shape, 5_000);
    walk("debug", shape, 2_000);
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
    expect(operations).toBeGreaterThanOrEqual(500_000);
  });
});
