import { join } from "node:path";
import { expect, it } from "vitest";
import { runCommand } from "../../../scripts/lab/command.ts";
import { root } from "../../../scripts/setup/paths.mjs";

const LOAD = `--import=${join(root, "scripts", "lab", "cluster", "shifted-clock.mjs")}`;
const PRINT = `console.log(JSON.stringify([Date.now(), +new Date(), new Date(5).getTime(), new Date() instanceof Date]))`;

const run = (shift: string) =>
  runCommand([process.execPath, "-e", PRINT], { env: { NODE_OPTIONS: LOAD, BERTH_LAB_CLOCK_MS: shift } });

it.each([86_400_000, -86_400_000])("dates are %d ms off, given ones are not", async (shiftMs) => {
  const { stdout, stderr } = await run(String(shiftMs));
  const [now, made, given, isDate] = JSON.parse(stdout || "[]");
  expect(stderr).toBe("");
  for (const date of [now, made]) expect(Math.abs(date - shiftMs - Date.now())).toBeLessThan(10_000);
  expect([given, isDate]).toEqual([5, true]);
});

it("a shift that is no number is refused", async () => {
  const { exitCode, stderr } = await run("a day");
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('BERTH_LAB_CLOCK_MS is "a day"');
});
