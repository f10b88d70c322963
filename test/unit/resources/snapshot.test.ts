import { expect, it } from "vitest";
import { decodeManifests } from "../../../host/resources/manifest.ts";
import { assembleSnapshot } from "../../../host/resources/snapshot.ts";

/** A pool's manifest, with a /24 of its own. */
function manifest(name: string, third: number, isDefault: boolean): object {
  const spec = { subnet: `10.0.${third}.0/24`, ips: [`10.0.${third}.2-10.0.${third}.9`], default: isDefault };
  return { apiVersion: "ipam.vendor.io/v1", kind: "IPPool", metadata: { name }, spec };
}

it("gives the pools in the order of their names, and the defaults without a look at the others", () => {
  const files = { "b.yaml": manifest("green", 1, true), "c.yaml": manifest("blue", 2, false) };
  const sources = Object.entries(files).map(([source, object]) => ({
    source,
    resources: decodeManifests(JSON.stringify(object), source),
  }));
  const { pools } = assembleSnapshot(sources);
  expect([...pools.keys()]).toEqual(["blue", "green"]);
  expect([...pools.defaults].map(({ name }) => name)).toEqual(["green"]);
});

it("says of each pool which others give out its addresses, too", () => {
  const all = [manifest("a", 0, false), manifest("b", 0, false), manifest("c", 1, false)];
  const resources = all.flatMap((each) => decodeManifests(JSON.stringify(each), "a"));
  const { problems } = assembleSnapshot([{ source: "a", resources }]);
  const says = (name: string, other: string) =>
    `IPPool "${name}": 8 addresses, from 10.0.0.2 on, are also in IPPools "${other}"; each address is still given out once`;
  expect(problems).toEqual([says("a", "b"), says("b", "a")]);
});

it("uses the Coordinator named default, and reports the others", () => {
  const named = (name: string) =>
    `{apiVersion: ipam.vendor.io/v1, kind: Coordinator, metadata: {name: ${name}}, spec: {}}`;
  const assemble = (...names: string[]) =>
    assembleSnapshot([{ source: "a.yaml", resources: decodeManifests(names.map(named).join("\n---\n"), "a.yaml") }]);
  expect(assemble("default")).toMatchObject({ coordinator: { name: "default" }, problems: [] });
  const problems = ["lan", "other"].map(
    (name) =>
      `Coordinator "${name}" of a.yaml is ignored: only the one named "default" is used. Move its settings there and delete it`,
  );
  expect(assemble("lan", "default", "other")).toMatchObject({ coordinator: { name: "default" }, problems });
  expect(assemble("lan")).toMatchObject({ coordinator: undefined });
});
