import { expect, it } from "vitest";
import { PoolWalk } from "../../property/core/pool-walk.ts";
import { edgeShapes, randomShape } from "../../property/core/shapes.ts";
import { Seeded } from "../../world/seeded.ts";

const SEED = Number(process.env.SEED ?? 4711);
const OPERATIONS = 10_000_000;
const SHAPES = 240;

it("10 million operations over 240 shapes give the results of the reference model", () => {
  const random = new Seeded(SEED);
  const shapes = edgeShapes();
  while (shapes.length < SHAPES) shapes.push(randomShape(random));
  const each = Math.ceil(OPERATIONS / shapes.length);
  let operations = 0;
  for (const shape of shapes) {
    const seed = random.u32();
    const pool = new PoolWalk("release", shape, new Seeded(seed));
    try {
      pool.run(each);
    } catch (error) {
      throw new Error(`seed ${seed}, shape "${shape.name}", operation ${pool.operations}`, { cause: error });
    }
    operations += pool.operations;
  }
  console.log(`core pools: ${operations} operations over ${shapes.length} shapes from seed ${SEED}`);
  expect(operations).toBeGreaterThanOrEqual(OPERATIONS);
});
