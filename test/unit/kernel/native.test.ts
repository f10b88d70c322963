import { join } from "node:path";
import { expect, it } from "vitest";
import { addonPath, loadNative } from "../../../host/kernel/native.ts";

const root = join(import.meta.dirname, "../../..");

it("the addon is sought in dist, from the source and from a bundle", () => {
  expect(addonPath()).toBe(join(root, "dist/native/berth.node"));
  expect(addonPath("/opt/berth/host/kernel")).toBe("/opt/berth/dist/native/berth.node");
  expect(addonPath("/opt/berth/dist")).toBe("/opt/berth/dist/native/berth.node");
});

it("an addon that is missing is named", () => {
  expect(() => loadNative("/nonexistent/berth.node")).toThrow(/\/nonexistent\/berth\.node/);
});

it("a module that is no addon of ours is refused", () => {
  const other = join(root, "package.json");
  expect(() => loadNative(other)).toThrow(/is older than this program: run native\/build.sh addon/);
});
